#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/device/network_spec.h"
#include "core/online/retraining.h"
#include "core/ops/optimizer_step.h"
#include "core/ops/relu_network.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"
#include "models/skeleton/module_request.h"

namespace olrank {

enum class NetworkForm { kLinear, kMlp, kModule };
enum class Parameterisation { kNtk, kStandard };
/// Whether the width m enters outside f: 1/m in A and in w², m in the weight of the prior.
enum class WidthScaling { kWidth, kNone };
/// How a network's first parameters are drawn: as usual for its parameterisation, or as two halves that
/// cancel.
enum class FirstDraw { kUsual, kSymmetric };

/// The shape of the scoring function.
struct NetworkSettings {
  NetworkForm network = NetworkForm::kMlp;
  std::string module = "relu";
  Activation activation = Activation::kRelu;
  std::int64_t width = 100;
  std::int64_t depth = 2;
  Parameterisation parameterisation = Parameterisation::kNtk;
  WidthScaling scaling = WidthScaling::kWidth;
  FirstDraw initialisation = FirstDraw::kUsual;
  /// This is what the file `module` holds, where it comes with a model; else it is read. No setting.
  std::shared_ptr<const std::string> module_file = nullptr;

  static const Schema& schema();
};

template <>
struct EnumNames<NetworkForm> {
  static constexpr std::array values = names_in_order<NetworkForm>("linear", "mlp", "module");
};

template <>
struct EnumNames<Activation> {
  static constexpr std::array values = names_in_order<Activation>("relu", "gelu", "silu", "tanh");
};

template <>
struct EnumNames<Parameterisation> {
  static constexpr std::array values = names_in_order<Parameterisation>("ntk", "standard");
};

template <>
struct EnumNames<WidthScaling> {
  static constexpr std::array values = names_in_order<WidthScaling>("width", "none");
};

template <>
struct EnumNames<FirstDraw> {
  static constexpr std::array values = names_in_order<FirstDraw>("usual", "symmetric");
};

/// The network that the settings ask for. Throws InvalidArgument for settings that do not describe one.
NetworkShape network_shape(const NetworkSettings& settings, std::int64_t inputs);

/// The factor of the scores: √m for ntk, else 1.
double output_scale_of(const NetworkSettings& settings);

/// How a network with these settings starts: symmetric for ntk or if set, else uniform.
Initialisation initialisation_of(const NetworkSettings& settings);

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
  static constexpr std::array values = names_in_order<Retrain>("every-round", "growth");
};

template <>
struct EnumNames<Restart> {
  static constexpr std::array values = names_in_order<Restart>("warm", "first", "fresh");
};

template <>
struct EnumNames<LossForm> {
  static constexpr std::array values = names_in_order<LossForm>("sum", "mean");
};

template <>
struct EnumNames<Optimizer> {
  static constexpr std::array values = names_in_order<Optimizer>("gd", "nesterov", "adam");
};

}  // namespace olrank
