#include "core/fair/exposure.h"

#include <cassert>

namespace olrank {

// A list's terms are summed rank by rank, as TemplateTable does, so that a list has the very unfairness
// that its template promised.
void ExposureLedger::observe(const ExposureRule& rule, std::span<const DocGroup> groups,
                             std::span<const std::int32_t> shown) {
  PairFigures added{};
  const std::size_t ranks = std::min(shown.size(), rule.examination.size());
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const DocGroup group = groups[shown[rank]];
    rule.add(group, rule.examination[rank], added);
    exposure_[index_of(group)] += rule.examination[rank];
  }
  end_round(rule, added);
}

void ExposureLedger::observe_examined(const ExposureRule& rule, std::span<const DocGroup> groups,
                                      std::span<const std::int32_t> shown,
                                      std::span<const std::uint8_t> examined) {
  PairFigures added{};
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    if (examined[rank] == 0) continue;
    const DocGroup group = groups[shown[rank]];
    rule.add(group, 1.0, added);
    exposure_[index_of(group)] += 1.0;
  }
  end_round(rule, added);
}

void ExposureLedger::end_round(const ExposureRule& rule, const PairFigures& added) {
  for (std::size_t pair = 0; pair < rule.pairs(); ++pair) unfairness_[pair] += added[pair];
  ++rounds_;
  fair_rounds_ += std::abs(rule.farthest(unfairness_)) <= rule.epsilon ? 1 : 0;
}

void ExposureLedger::fields(StateFields& state, const ExposureRule& rule) {
  std::vector<double> sums(unfairness_.begin(), unfairness_.begin() + rule.pairs());
  sums.insert(sums.end(), exposure_.begin(), exposure_.begin() + rule.groups());
  state.sized("exposure.sums", sums);
  state.numbers("exposure.rounds", rounds_, fair_rounds_);
  if (!state.reads()) return;
  std::copy_n(sums.begin(), rule.pairs(), unfairness_.begin());
  std::copy_n(sums.begin() + rule.pairs(), rule.groups(), exposure_.begin());
}

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
