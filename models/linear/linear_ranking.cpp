#include "models/linear/linear_ranking.h"

#include "core/ops/folded_pair_gradient.h"

namespace olrank {

std::int64_t padded_features(std::int64_t features) {
  return (features + FoldedPairs::kPadding - 1) / FoldedPairs::kPadding * FoldedPairs::kPadding;
}

NewtonTrainer::Options newton_options(const TrainerSettings& settings) {
  return {.tolerance = settings.newton_tolerance,
          .max_steps = settings.steps,
          .replays = settings.retraining().replays()};
}

void set_newton_defaults(TrainerSettings& settings) {
  settings.steps = 50;
}

double ridge_weight(LossForm form, double lambda, std::int64_t observed) {
  return form == LossForm::kSum ? lambda : 2.0 * lambda * static_cast<double>(observed);
}

void write_difference_rows(FeatureMatrix docs, std::span<const PreferencePair> pairs,
                           std::span<double> rows) {
  std::size_t at = 0;
  for (const auto& [winner, loser] : pairs) {
    const auto x = docs.doc(winner);
    const auto y = docs.doc(loser);
    for (std::size_t k = 0; k < x.size(); ++k) rows[at++] = double{x[k]} - double{y[k]};
  }
}

}  // namespace olrank
