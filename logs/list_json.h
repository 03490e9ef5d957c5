#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/feedback/feedback_record.h"
#include "core/io/text_lines.h"

namespace olrank {

// Lines of JSON from other programs. What is wrong is a DataError with the line and the field.

nlohmann::ordered_json json_object(const TextLines& lines);

/// Throws if the object lacks the key.
const nlohmann::ordered_json& json_field(const TextLines& lines, const nlohmann::ordered_json& object,
                                         const std::string& key);
const nlohmann::ordered_json& json_array(const TextLines& lines, const nlohmann::ordered_json& value,
                                         const std::string& field);
/// A string that is not empty, or an integer.
DocId json_id(const TextLines& lines, const nlohmann::ordered_json& value, const std::string& field);

/// Milliseconds since 1970, as an integer or as a date and time in text.
std::int64_t json_time(const TextLines& lines, const nlohmann::ordered_json& value,
                       const std::string& field);
std::int64_t time_of(const TextLines& lines, const std::string& text, const std::string& field);

}  // namespace olrank
