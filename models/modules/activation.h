#pragma once

#include <torch/types.h>

#include "models/skeleton/module_request.h"

namespace olrank {

/// φ(units).
inline torch::Tensor activate(Activation activation, const torch::Tensor& units) {
  switch (activation) {
    case Activation::kRelu:
      return torch::relu(units);
    case Activation::kGelu:
      return torch::gelu(units);
    case Activation::kSilu:
      return torch::silu(units);
    case Activation::kTanh:
      return torch::tanh(units);
  }
  return units;
}

}  // namespace olrank
