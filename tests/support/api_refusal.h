#pragma once

#include <fmt/format.h>

#include <string>

#include "serve/api_error.h"

namespace olrank {

/// The ApiError that a call throws; where it throws none, one of status 200.
template <class Call>
ApiError refusal_of(const Call& call) {
  try {
    call();
  } catch (const ApiError& error) {
    return error;
  }
  return {200, "", ""};
}
template <class Call>
int status_of(const Call& call) {
  return refusal_of(call).status();
}
/// "status field: message" of the error, or "none".
template <class Call>
std::string refusal_text(const Call& call) {
  const ApiError refusal = refusal_of(call);
  if (refusal.status() == 200) return "none";
  return fmt::format("{} {}: {}", refusal.status(), refusal.field(), refusal.what());
}

}  // namespace olrank
