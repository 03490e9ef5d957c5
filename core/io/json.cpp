#include "core/io/json.h"

#include <cmath>

namespace olrank {

std::string_view up_to_deep_json(std::string_view text) {
  constexpr int kDeepest = 64;
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) return text.substr(0, at);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return text;
}

nlohmann::json parse_json(std::string_view text) {
  return nlohmann::json::parse(up_to_deep_json(text));
}

nlohmann::ordered_json parse_ordered_json(std::string_view text) {
  return nlohmann::ordered_json::parse(up_to_deep_json(text));
}

nlohmann::ordered_json try_parse_json(std::string_view text) {
  return nlohmann::ordered_json::parse(up_to_deep_json(text), nullptr, false);
}

nlohmann::ordered_json number_or_null(double number) {
  return std::isfinite(number) ? nlohmann::ordered_json(number) : nlohmann::ordered_json(nullptr);
}

std::string dump_json(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace olrank
