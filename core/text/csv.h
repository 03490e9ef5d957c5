#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// A text field of a CSV file, quoted where it holds a comma, a quote or a line break (RFC 4180).
std::string csv_field(std::string_view text);

/// The shortest decimal that reads back exactly; an empty field for NaN and infinities.
std::string csv_number(double value);

/// An empty field where there is no value.
template <class Number>
std::string csv_number(const std::optional<Number>& value) {
  if (!value) return {};
  if constexpr (std::integral<Number>) return std::to_string(*value);
  return csv_number(static_cast<double>(*value));
}

/// The fields of a line without its line break, quotes removed. Returns what is wrong with the line; empty
/// if nothing is. A quoted field ends on its line: one with a line break is refused.
std::string split_csv(std::string_view line, std::vector<std::string>& fields);

}  // namespace olrank
