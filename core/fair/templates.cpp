#include "core/fair/templates.h"

#include <cassert>
#include <cmath>

namespace olrank {

TemplateTable::TemplateTable(const ExposureRule& rule, int length) : length_(length), gains_(1, 0.0) {
  assert(rule.groups() == 2 && length >= 0 && length <= kMostPlaces);
  gains_.reserve(size());
  for (int rank = 0; rank < length; ++rank) {
    const std::size_t shorter = gains_.size();
    PairFigures with_a{};
    PairFigures with_b{};
    rule.add(DocGroup::kA, rule.exposure_at(rank), with_a);
    rule.add(DocGroup::kB, rule.exposure_at(rank), with_b);
    for (std::size_t pattern = 0; pattern < shorter; ++pattern)
      gains_.push_back(gains_[pattern] + with_a[0]);
    for (std::size_t pattern = 0; pattern < shorter; ++pattern) gains_[pattern] += with_b[0];
  }
}

bool is_better(const FairChoice& candidate, const FairChoice& best, PhiloxKey key, std::uint32_t round) {
  if (candidate.violated != best.violated) return candidate.violated < best.violated;
  const double here = std::abs(candidate.unfairness);
  const double there = std::abs(best.unfairness);
  if (here != there) return here < there;
  // Documents have position 0.
  const auto coin = [&](TemplatePattern pattern) {
    return RngStream(key, round, 0, 1 + pattern).next_bits();
  };
  return coin(candidate.pattern) < coin(best.pattern);
}

}  // namespace olrank
