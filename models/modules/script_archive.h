#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "models/skeleton/module_request.h"

namespace torch::jit {
struct Module;
}

namespace olrank {

/// Whether an operator draws random numbers: LibTorch says that it may, and no argument turns that off, as
/// in dropout after eval(). `value_of(k)` is argument k as an std::optional<c10::IValue>; nothing: not
/// known.
template <class ValueOf>
bool draws_random_numbers(const c10::OperatorName& name, const ValueOf& value_of) {
  const auto found = c10::Dispatcher::singleton().findSchema(name);
  if (!found || !found->hasTag(at::Tag::nondeterministic_seeded)) return false;
  const std::vector<c10::Argument>& arguments = found->schema().arguments();
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    const bool is_mode = arguments[k].name() == "train" || arguments[k].name() == "training";
    if (!is_mode && arguments[k].name() != "dropout_p") continue;
    const std::optional<c10::IValue> value = value_of(k);
    if (!value) continue;
    if (is_mode && value->isBool() && !value->toBool()) return false;
    if (!is_mode && value->isDouble() && value->toDouble() == 0.0) return false;
  }
  return true;
}

/// Reads a TorchScript file for the first time. Throws InvalidArgument if it unpacks to far more than it
/// has, or if a tensor would read beyond what the file holds of it, which LibTorch does not notice; and
/// what LibTorch throws of other damage.
void check_script_archive(const std::string& bytes, const std::string& path);

/// Throws InvalidArgument for a module in eval mode whose forward() draws random numbers, reaches for
/// files, changes its documents or, with `state` kRefuse, changes its own buffers or attributes: by the
/// operator's name, also where only some documents lead there.
void check_script_code(const torch::jit::Module& module, ModuleState state, const std::string& path);

}  // namespace olrank
