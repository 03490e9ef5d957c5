#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/modules/module_factors.h"
#include "models/modules/module_instance.h"

namespace olrank {

/// Trying a module shows these.
struct ModuleFindings {
  struct Parameter {
    std::string name;
    std::vector<std::int64_t> shape;
  };
  std::vector<Parameter> parameters;
  bool reads_lists = false;
  std::optional<ModuleFactors> factors;  // nothing: gradients are whole rows
  TangentShape rows;
  bool products_by_gradients = false;  // multiply_by_gradients() works, and factors are whole rows

  const TangentShape& shape() const { return factors ? factors->shape() : rows; }
};

/// θ of a module as it is.
std::vector<float> flat_parameters(const ScoringModule& module);

/// Tries a module on documents drawn from a fixed seed, in double: alone, together and in another order, at
/// its own parameters and near them; then likewise on the device where it is to compute. Throws
/// InvalidArgument, with what to change, for one that cannot be a ranker.
ModuleFindings check_module(const ModuleSource& source, const ModuleRequest& request,
                            const torch::Device& device);

}  // namespace olrank
