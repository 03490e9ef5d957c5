#include "core/fair/exposure.h"

#include <algorithm>
#include <cmath>

namespace olrank {

// A list's terms are summed rank by rank, as TemplateTable does, so that a list has the very unfairness
// that its template promised.
void ExposureLedger::observe(const ExposureRule& rule, std::span<const DocGroup> groups,
                             std::span<const std::int32_t> shown) {
  double added = 0.0;
  const std::size_t ranks = std::min(shown.size(), rule.examination.size());
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const DocGroup group = groups[shown[rank]];
    added += rule.term(group, rank);
    exposure_[static_cast<std::size_t>(group)] += rule.examination[rank];
  }
  end_round(rule, added);
}

void ExposureLedger::observe_examined(const ExposureRule& rule, std::span<const DocGroup> groups,
                                      std::span<const std::int32_t> shown,
                                      std::span<const std::uint8_t> examined) {
  double added = 0.0;
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    if (examined[rank] == 0) continue;
    const DocGroup group = groups[shown[rank]];
    added += group == DocGroup::kA ? 1.0 : -rule.beta;
    exposure_[static_cast<std::size_t>(group)] += 1.0;
  }
  end_round(rule, added);
}

void ExposureLedger::end_round(const ExposureRule& rule, double added) {
  unfairness_ += added;
  ++rounds_;
  fair_rounds_ += std::abs(unfairness_) <= rule.epsilon ? 1 : 0;
}

void ExposureLedger::save(StateWriter& state) const {
  const double values[] = {unfairness_, exposure_[0], exposure_[1]};
  const std::int64_t counts[] = {rounds_, fair_rounds_};
  state.put("exposure.sums", std::span<const double>(values));
  state.put("exposure.rounds", std::span<const std::int64_t>(counts));
}

void ExposureLedger::load(StateReader& state) {
  double values[3];
  std::int64_t counts[2];
  state.get_into("exposure.sums", std::span<double>(values));
  state.get_into("exposure.rounds", std::span<std::int64_t>(counts));
  unfairness_ = values[0];
  exposure_[0] = values[1];
  exposure_[1] = values[2];
  rounds_ = counts[0];
  fair_rounds_ = counts[1];
}

}  // namespace olrank
