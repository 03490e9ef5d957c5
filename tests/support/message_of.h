#pragma once

#include <string>

#include "core/error.h"

namespace olrank {

/// What message_of() returns when the action throws nothing.
inline const std::string kNoError = "no error";

/// The message of the Exception that the action throws. Any other exception leaves the test.
template <typename Exception = Error, typename Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const Exception& error) {
    return error.what();
  }
  return kNoError;
}

}  // namespace olrank
