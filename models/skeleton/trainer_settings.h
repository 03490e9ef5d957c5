#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "core/device/training_kernel.h"
#include "core/online/retraining.h"
#include "core/ops/optimizer_step.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// The summed cross-entropy plus mλ/2 ‖θ − θ₀‖², or its mean plus λ‖θ‖².
enum class LossForm { kSum, kMean };

/// Where a training on the whole history starts: at the current parameters, at θ₀, or at parameters that
/// are drawn for it.
enum class Restart { kWarm, kFirst, kFresh };

/// How parameters are trained on the collected pairs.
struct TrainerSettings {
  Optimizer optimizer = Optimizer::kGradientDescent;
  LossForm loss = LossForm::kSum;
  Restart restart = Restart::kWarm;
  double learning_rate = 1.0;
  double learning_rate_decay = 1.0;
  std::int64_t steps = 20;
  std::int64_t epochs = 20;
  std::int64_t batch = 1024;
  double newton_tolerance = 1e-6;  // of the gradient's norm per pair; no setting of users
  TrainingKernel training_kernel = TrainingKernel::kAuto;
  Retrain retrain = Retrain::kEveryRound;
  double retrain_growth = 0.05;
  std::int64_t replay_steps = 4;
  std::int64_t replay = 256;

  RetrainingRule retraining() const { return {retrain, retrain_growth, replay_steps, replay}; }

  static const Schema& schema();
};

template <>
struct EnumNames<Retrain> {
  static constexpr std::array values = {std::pair{Retrain::kEveryRound, std::string_view("every-round")},
                                        std::pair{Retrain::kGrowth, std::string_view("growth")}};
};

template <>
struct EnumNames<Restart> {
  static constexpr std::array values = {std::pair{Restart::kWarm, std::string_view("warm")},
                                        std::pair{Restart::kFirst, std::string_view("first")},
                                        std::pair{Restart::kFresh, std::string_view("fresh")}};
};

template <>
struct EnumNames<LossForm> {
  static constexpr std::array values = {std::pair{LossForm::kSum, std::string_view("sum")},
                                        std::pair{LossForm::kMean, std::string_view("mean")}};
};

template <>
struct EnumNames<Optimizer> {
  static constexpr std::array values = {std::pair{Optimizer::kGradientDescent, std::string_view("gd")},
                                        std::pair{Optimizer::kNesterov, std::string_view("nesterov")},
                                        std::pair{Optimizer::kAdam, std::string_view("adam")}};
};

}  // namespace olrank
