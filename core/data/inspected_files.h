#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/data/inspection.h"

namespace olrank {

/// A file, and its inspection or the reason why it cannot be read.
struct InspectedFile {
  std::string path;
  std::optional<Inspection> found;
  std::string failure;
};

/// The files of a data folder, or the path itself.
std::vector<std::string> files_to_inspect(const std::string& path);

/// The query ids of a that b has, too.
std::int64_t shared_queries(const Inspection& a, const Inspection& b);

/// A part of a data folder whose number of features differs from the training set of its fold.
struct WidthFinding {
  std::string sentence;
  bool is_error;  // more features than the training set: a run would fail
};

/// Compares the parts of each fold of the folder, whose files are among `all`.
std::vector<WidthFinding> compare_widths(const std::string& folder, const std::vector<InspectedFile>& all);

}  // namespace olrank
