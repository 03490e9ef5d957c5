#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace olrank {

// JSON documents as values. The parser and the serialiser are compiled here once: in each file that used
// them they would take a second and more.

/// The text up to where values nest more than 64 deep; for less deep texts the text itself. Copying,
/// printing and destroying deep values would need as much stack. What is left of a deep text is no JSON.
std::string_view up_to_deep_json(std::string_view text);

/// Both throw nlohmann::json::parse_error, also for what up_to_deep_json() cuts.
nlohmann::json parse_json(std::string_view text);
nlohmann::ordered_json parse_ordered_json(std::string_view text);

/// Returns a discarded value for a text that is not JSON.
nlohmann::ordered_json try_parse_json(std::string_view text);

/// The number, or null for one that JSON does not have: infinities and NaN.
nlohmann::ordered_json number_or_null(double number);

/// On one line, or indented by `indent` spaces; invalid UTF-8 in strings is replaced.
std::string dump_json(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace olrank
