#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace olrank {

/// "1 trial", "2 trials".
template <std::integral Count>
std::string counted(Count count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace olrank
