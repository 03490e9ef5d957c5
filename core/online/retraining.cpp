#include "core/online/retraining.h"

#include <fmt/format.h>

#include <cmath>

#include "core/throw_error.h"

namespace olrank {

TrainingExtent RetrainingSchedule::extent(const Sizes& sizes) const {
  if (rule_.retrain == Retrain::kEveryRound || sizes.observed < kShortHistory)
    return TrainingExtent::kHistory;
  const auto fresh = static_cast<double>(sizes.distinct - latest_.distinct);
  if (fresh >= rule_.growth * static_cast<double>(latest_.distinct) && fresh > 0.0)
    return TrainingExtent::kHistory;
  // Where the same pairs come again and again.
  const auto more = static_cast<double>(sizes.observed - latest_.observed);
  if (more >= rule_.growth * static_cast<double>(latest_.observed)) return TrainingExtent::kHistory;
  return rule_.replay_steps > 0 ? TrainingExtent::kSample : TrainingExtent::kNothing;
}

void throw_diverged(const DivergedTraining& training) {
  const std::string remedy =
      training.lambda ? fmt::format(", or a larger lambda than {}, keeps it finite", *training.lambda)
                      : " keeps it finite";
  // A NaN's sign is arbitrary, and a loss is never negative.
  throw_error<NumericError>(
      "Training failed in round {} at step {}: the loss is {:.3g}, even with a much smaller step. A "
      "smaller learning_rate than {}{}.",
      training.round, training.step, std::abs(training.loss), training.learning_rate, remedy);
}

std::string text_of(const CovarianceName& covariance) {
  std::string name = fmt::format("The {} covariance", covariance.form);
  if (covariance.pairs < 0) return name;
  return fmt::format("{} of {} pair{}", name, covariance.pairs, covariance.pairs == 1 ? "" : "s");
}

void throw_lost_precision(const CovarianceName& covariance, std::string_view what) {
  throw_error<NumericError>(
      "{} has lost its precision at lambda = {}: {}, even after a rebuild. Normalise the features, or "
      "choose a larger lambda.",
      text_of(covariance), covariance.lambda, what);
}

void throw_lost_list_widths(std::int64_t lost, std::int64_t docs) {
  throw_error<NumericError>(
      "Rounding has destroyed {} squared widths of {} documents: normalise the features, or choose a "
      "larger lambda.",
      lost, docs);
}

void throw_lost_widths(std::string_view covariance) {
  throw_error<NumericError>(
      "The squared widths of the {} covariance are not finite: the network's gradients exceed the range of "
      "float32. Use a smaller learning rate or normalised features.",
      covariance);
}

void throw_bad_score(std::int64_t doc) {
  throw_error<NumericError>("The score of document {} is not a number.", doc);
}

}  // namespace olrank
