#include "models/skeleton/width_shadow.h"

#include <algorithm>
#include <utility>

#include "models/skeleton/width_comparison.h"

namespace olrank {

void ShadowComparison::start(std::span<const std::int32_t> shown, std::span<const float> scores,
                             std::span<const double> own_sq) {
  scores_.clear();
  own_sq_.clear();
  for (const std::int32_t i : shown) {
    scores_.push_back(double{scores[i]});
    for (const std::int32_t j : shown)
      own_sq_.push_back(own_sq[static_cast<std::size_t>(i) * scores.size() + static_cast<std::size_t>(j)]);
  }
  exact_sq_.resize(own_sq_.size());
}

void ShadowComparison::finish(const CertaintyRule& rule, RankedList& list) {
  list.turned_decisions = compare_widths({rule, scores_, own_sq_, exact_sq_}, ratios_);
  list.width_ratios = ratios_;
}

WidthShadow::WidthShadow(const TangentShape& shape, std::unique_ptr<Posterior> posterior)
    : shape_(shape), posterior_(std::move(posterior)) {}

TangentFactors WidthShadow::factors_of(std::span<const std::int32_t> shown, const Evidence& evidence) {
  const auto factors = static_cast<std::size_t>(shape_.factors());
  shown_factors_.clear();
  for (const std::int32_t doc : shown) {
    const auto row = evidence.factors.subspan(static_cast<std::size_t>(doc) * factors, factors);
    shown_factors_.insert(shown_factors_.end(), row.begin(), row.end());
  }
  return {shown_factors_.data(), std::ssize(shown)};
}

void WidthShadow::compare(ExecutionContext& context, std::span<const std::int32_t> shown,
                          const Evidence& evidence, const CertaintyRule& rule, RankedList& list) {
  comparison_.start(shown, evidence.scores, evidence.width_sq);
  posterior_->width_sq(context, factors_of(shown, evidence), comparison_.exact_sq());
  comparison_.finish(rule, list);
}

void WidthShadow::observe(ExecutionContext& context, std::span<const std::int32_t> shown,
                          const Evidence& evidence, std::span<const PreferencePair> pairs) {
  const auto rank_of = [&](std::int32_t doc) {
    return static_cast<std::int32_t>(std::find(shown.begin(), shown.end(), doc) - shown.begin());
  };
  shown_pairs_.clear();
  for (const PreferencePair& pair : pairs)
    shown_pairs_.push_back({rank_of(pair.winner), rank_of(pair.loser)});
  posterior_->observe(context, factors_of(shown, evidence), shown_pairs_);
}

}  // namespace olrank
