#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/online/query_grades.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// The user's reaction to a shown list. `examined` is for tests only; rankers never see it.
struct ClickLog {
  std::vector<std::uint8_t> clicks;    // [shown]
  std::vector<std::uint8_t> examined;  // [shown]
};

/// How likely a user examines each rank, in closed form: one of two forms.
struct ExaminationLaw {
  std::vector<double> by_rank;  // [ranks], whatever is shown
  std::vector<double> goes_on;  // [grades]: examines the rank behind a document that it has examined
};

/// A simulated user. Its coins belong to (round, document), so that they do not depend on the ranker.
class ClickModel {
 public:
  ClickModel() = default;
  virtual ~ClickModel() = default;
  ClickModel(const ClickModel&) = delete;
  ClickModel& operator=(const ClickModel&) = delete;

  /// `shown` are docs, best first; `key` is the trial's key of Purpose::kClick. Fills `log` and reuses
  /// its memory.
  virtual void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key,
                     std::uint32_t round, ClickLog& log) const = 0;

  /// None for users without such a form.
  virtual std::optional<ExaminationLaw> examination_law(std::int64_t /*ranks*/) const {
    return std::nullopt;
  }
};

}  // namespace olrank
