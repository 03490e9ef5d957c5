#pragma once

#include <fmt/format.h>

#include <utility>

#include "core/error.h"

namespace olrank {

/// Throws the error with a formatted sentence.
template <class AnyError, class... Args>
[[noreturn]] void throw_error(fmt::format_string<Args...> sentence, Args&&... args) {
  throw AnyError(fmt::format(sentence, std::forward<Args>(args)...));
}

}  // namespace olrank
