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

template <class... Args>
[[noreturn]] void throw_data_error(const std::string& file, std::int64_t line, std::int64_t column,
                                   fmt::format_string<Args...> sentence, Args&&... args) {
  throw DataError(file, line, column, fmt::format(sentence, std::forward<Args>(args)...));
}

}  // namespace olrank
