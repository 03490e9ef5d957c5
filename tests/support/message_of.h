#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "core/error.h"

namespace olrank {

/// message_of() returns this when the action throws nothing.
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

/// Whether a text has a part; a test that fails shows the text.
inline testing::AssertionResult contains(std::string_view text, std::string_view part) {
  const bool is_there = text.find(part) != std::string_view::npos;
  const auto result = is_there ? testing::AssertionSuccess() : testing::AssertionFailure();
  return testing::AssertionResult(result) << "'" << part << "' in: " << text;
}

}  // namespace olrank
