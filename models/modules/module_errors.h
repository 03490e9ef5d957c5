#pragma once

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "core/error.h"
#include "models/skeleton/module_request.h"

namespace olrank {

/// The first sentence of what LibTorch says, without the trace of calls.
inline std::string reason_of(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  // The interpreter of TorchScript ends its trace of calls with the error itself.
  constexpr std::string_view kBeforeReason = "Error: ";
  const std::size_t last = text.rfind(kBeforeReason);
  if (last != std::string::npos) text.erase(0, last + kBeforeReason.size());
  text.erase(std::min(text.find('\n'), text.size()));
  while (text.ends_with('.') || text.ends_with(' ')) text.pop_back();
  return text;
}

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
