#include "logs/list_json.h"

#include <fmt/format.h>

#include <charconv>

#include "core/io/json.h"
#include "core/runtime/utc_time.h"
#include "core/text/excerpt.h"

namespace olrank {

using nlohmann::ordered_json;

ordered_json json_object(const TextLines& lines) {
  ordered_json json = try_parse_json(lines.line());
  if (!json.is_object()) lines.fail(lines.line(), "The line is not a JSON object.");
  return json;
}

const ordered_json& json_field(const TextLines& lines, const ordered_json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end()) lines.fail(lines.line(), fmt::format("'{}' is missing.", key));
  return *found;
}

const ordered_json& json_array(const TextLines& lines, const ordered_json& value,
                               const std::string& field) {
  if (!value.is_array()) lines.fail(lines.line(), fmt::format("'{}' must be an array.", field));
  return value;
}

DocId json_id(const TextLines& lines, const ordered_json& value, const std::string& field) {
  if (value.is_number_integer()) return {value.dump(), true};
  if (value.is_string() && !value.get_ref<const std::string&>().empty())
    return {value.get<std::string>(), false};
  lines.fail(lines.line(),
             fmt::format("'{}' must be an ID: an integer, or a string that is not empty.", field));
}

std::int64_t time_of(const TextLines& lines, const std::string& text, const std::string& field) {
  constexpr std::int64_t kFirst = 100'000'000'000;  // ms, in March 1973; as seconds, in the year 5138
  std::int64_t time = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), time);
  if (error == std::errc() && end == text.data() + text.size()) {
    if (time >= kFirst) return time;
    lines.fail(lines.line(), fmt::format("'{}' is {}, which are milliseconds of the year 1973 or before: "
                                         "give milliseconds since 1970, not seconds.",
                                         field, time));
  }
  if (const auto parsed = utc_milliseconds(text); parsed && *parsed > 0) return *parsed;
  lines.fail(lines.line(), fmt::format("'{}' must be milliseconds since 1970 or a time such as "
                                       "2026-01-31T23:59:59Z, not '{}'.",
                                       field, excerpt(text)));
}

std::int64_t json_time(const TextLines& lines, const ordered_json& value, const std::string& field) {
  return time_of(lines, value.is_string() ? value.get<std::string>() : value.dump(), field);
}

}  // namespace olrank
