#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace olrank {

/// Names that users knew and that are gone, each with the sentence that says what replaces it.
inline constexpr std::array kDroppedNames = {
    std::pair{std::string_view("unit-blocks"),
              std::string_view("covariance 'unit-blocks' is gone: take \"diagonal\", or \"inducing\" where "
                               "directions matter.")},
    std::pair{std::string_view("last-layer"),
              std::string_view("covariance 'last-layer' is gone: take \"diagonal\", or \"inducing\" where "
                               "directions matter.")}};

inline std::optional<std::string> dropped_sentence(std::string_view name) {
  for (const auto& [dropped, sentence] : kDroppedNames) {
    if (dropped == name) return std::string(sentence);
  }
  return std::nullopt;
}

}  // namespace olrank
