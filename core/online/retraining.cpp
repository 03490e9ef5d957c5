#include "core/online/retraining.h"

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

}  // namespace olrank
