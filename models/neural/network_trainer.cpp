#include "models/neural/network_trainer.h"

#include <algorithm>
#include <cmath>

#include "models/neural/full_batch_trainer.h"
#include "models/neural/mini_batch_trainer.h"

namespace olrank {

std::unique_ptr<NetworkTrainer> make_network_trainer(const TrainerSpec& spec) {
  if (spec.settings.loss == LossForm::kSum) return std::make_unique<FullBatchTrainer>(spec);
  return std::make_unique<MiniBatchTrainer>(spec);
}

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

}  // namespace olrank
