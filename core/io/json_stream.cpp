#include "core/io/json_stream.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace olrank {
namespace {

using nlohmann::json;

class Adapter {
 public:
  explicit Adapter(JsonHandler& handler) : handler_(handler) {}

  bool null() { return handler_.null(); }
  bool boolean(bool value) { return handler_.boolean(value); }
  bool number_integer(json::number_integer_t value) { return handler_.number_integer(value); }
  bool number_unsigned(json::number_unsigned_t value) { return handler_.number_unsigned(value); }
  bool number_float(json::number_float_t value, const std::string& digits) {
    return handler_.number_float(value, digits);
  }
  bool string(std::string& value) { return handler_.string(value); }
  bool binary(json::binary_t&) { return false; }  // JSON text has none
  bool start_object(std::size_t) { return handler_.start_object(); }
  bool key(std::string& name) { return handler_.key(name); }
  bool end_object() { return handler_.end_object(); }
  bool start_array(std::size_t) { return handler_.start_array(); }
  bool end_array() { return handler_.end_array(); }
  bool parse_error(std::size_t position, const std::string&, const json::exception& error) {
    constexpr int kNumberOutOfRange = 406;
    handler_.invalid(position, error.id == kNumberOutOfRange ? JsonHandler::Fault::kNumberOutOfRange
                                                             : JsonHandler::Fault::kSyntax);
    return false;
  }

 private:
  JsonHandler& handler_;
};

}  // namespace

bool parse_json_events(std::string_view text, JsonHandler& handler) {
  // The parser would stop at a zero byte as at the end.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    handler.invalid(zero + 1, JsonHandler::Fault::kSyntax);
    return false;
  }
  Adapter adapter(handler);
  return json::sax_parse(text.begin(), text.end(), &adapter);
}

void append_json_string(std::string& out, std::string_view text) {
  const bool is_plain = std::all_of(text.begin(), text.end(),
                                    [](char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; });
  if (is_plain) {
    out += '"';
    out += text;
    out += '"';
    return;
  }
  out += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace olrank
