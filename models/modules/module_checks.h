#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "models/modules/module_factors.h"
#include "models/modules/module_source.h"

namespace olrank {

/// What trying a module shows.
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

/// Tries a module on documents drawn from a fixed seed, in double: alone, together and in another order, at
/// its own parameters and near them. Throws InvalidArgument, with what to change, for one that cannot be a
/// ranker.
ModuleFindings check_module(const ModuleSource& source, const ModuleRequest& request);

/// θ of a module as it is.
std::vector<float> flat_parameters(const ScoringModule& module);

/// The first sentence of what LibTorch says, without the trace of calls.
std::string reason_of(const std::exception& error);

/// body(), with what LibTorch throws as an Error of olrank.
template <class Body>
auto told(const ModuleRequest& request, std::int64_t docs, const Body& body) {
  try {
    return body();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(
        fmt::format("Module '{}' failed on {} documents: {}.", request.module, docs, reason_of(error)));
  }
}

}  // namespace olrank
