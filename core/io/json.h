#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace olrank {

// JSON documents as values. The parser and the serialiser are compiled here once: in each file that used
// them they would take a second and more.

/// Both throw nlohmann::json::parse_error.
nlohmann::json parse_json(std::string_view text);
nlohmann::ordered_json parse_ordered_json(std::string_view text);

/// On one line, or indented by `indent` spaces; invalid UTF-8 in strings is replaced.
std::string dump_json(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace olrank
