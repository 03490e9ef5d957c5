#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <optional>

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

}  // namespace olrank
