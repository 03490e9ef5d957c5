#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "report/final_tables.h"
#include "report/report.h"

namespace olrank {

/// Below this many seeds (or folds), spreads are too uncertain for bands around curves.
inline constexpr std::size_t kFewUnits = 4;

/// Findings are what one user's finished trials say, made from the tests of their final table.
struct UserFindings {
  std::string user;
  std::string data;                    // named only if the report has several data sets
  std::string headline;                // who is best offline and online, in one sentence
  std::vector<std::string> sentences;  // by how much, who is not distinguishable, and what would tell
};

UserFindings findings_of(const Report& report, const DataResults& data, const UserResults& user,
                         const FinalTable& table);

/// Whether every experiment is a study of covariances, whose findings are about structures instead of
/// rankers.
bool are_studies(const Report& report);

/// All users' findings for a terminal, wrapped at `columns`; 0 wraps nothing.
std::string findings_text(const Report& report, std::int64_t columns);

}  // namespace olrank
