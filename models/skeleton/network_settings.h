#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

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
  ModuleState module_state = ModuleState::kRefuse;
  Activation activation = Activation::kRelu;
  std::int64_t width = 100;
  std::int64_t depth = 2;
  Parameterisation parameterisation = Parameterisation::kNtk;
  WidthScaling scaling = WidthScaling::kWidth;
  FirstDraw initialisation = FirstDraw::kUsual;
  /// What the file `module` holds, where it comes with a model; else it is read. No setting.
  std::shared_ptr<const std::string> module_file = nullptr;

  static const Schema& schema();
};

template <>
struct EnumNames<NetworkForm> {
  static constexpr std::array values = {std::pair{NetworkForm::kLinear, std::string_view("linear")},
                                        std::pair{NetworkForm::kMlp, std::string_view("mlp")},
                                        std::pair{NetworkForm::kModule, std::string_view("module")}};
};

template <>
struct EnumNames<Activation> {
  static constexpr std::array values = {std::pair{Activation::kRelu, std::string_view("relu")},
                                        std::pair{Activation::kGelu, std::string_view("gelu")},
                                        std::pair{Activation::kSilu, std::string_view("silu")},
                                        std::pair{Activation::kTanh, std::string_view("tanh")}};
};

template <>
struct EnumNames<ModuleState> {
  static constexpr std::array values = {std::pair{ModuleState::kRefuse, std::string_view("refuse")},
                                        std::pair{ModuleState::kReset, std::string_view("reset")}};
};

template <>
struct EnumNames<Parameterisation> {
  static constexpr std::array values = {
      std::pair{Parameterisation::kNtk, std::string_view("ntk")},
      std::pair{Parameterisation::kStandard, std::string_view("standard")}};
};

template <>
struct EnumNames<WidthScaling> {
  static constexpr std::array values = {std::pair{WidthScaling::kWidth, std::string_view("width")},
                                        std::pair{WidthScaling::kNone, std::string_view("none")}};
};

template <>
struct EnumNames<FirstDraw> {
  static constexpr std::array values = {std::pair{FirstDraw::kUsual, std::string_view("usual")},
                                        std::pair{FirstDraw::kSymmetric, std::string_view("symmetric")}};
};

}  // namespace olrank
