#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
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
/// `repeated` gets the first name that an object of the text has twice; it stays as it is without one.
nlohmann::ordered_json try_parse_json(std::string_view text, std::optional<std::string>& repeated);

/// The number, or null for one that JSON does not have: infinities and NaN.
nlohmann::ordered_json number_or_null(double number);

/// Writes on one line, or indented by `indent` spaces; invalid UTF-8 in strings is replaced.
std::string dump_json(const nlohmann::ordered_json& json, int indent = -1);

/// Writes an object, indented, with a last member "check": the XXH3-128 of all text before its comma.
std::string dump_checked_json(const nlohmann::ordered_json& object, int indent);
/// Parses such a text, and one without a "check" as try_parse_json() does; the object loses the member.
/// Throws IoError, with `origin` as the file, for a text that has changed since; `restart` completes "To
/// continue, …".
nlohmann::ordered_json parse_checked_json(std::string_view text, std::string_view origin,
                                          std::string_view restart);

// JSON without values in between, for large or untrusted texts. Light to include.

/// A number with a fraction or an exponent.
struct JsonNumber {
  std::string_view digits;  // as written
  /// The nearest double; infinity for what is beyond the largest.
  double value() const;
  /// static_cast<float>(value()), in a fraction of its time.
  float rounded() const;

  // ±significand × 10^exponent, unless the parser found too many digits for it.
  std::uint64_t significand = 0;
  int exponent = 0;
  bool is_short = false;
};

/// Receives the events of a JSON text, so that nothing is built that the receiver does not want. A handler
/// returns false, or throws, to stop the parser.
class JsonHandler {
 public:
  virtual ~JsonHandler() = default;

  virtual bool null() = 0;
  virtual bool boolean(bool value) = 0;
  virtual bool number_integer(std::int64_t value) = 0;      // negative integers
  virtual bool number_unsigned(std::uint64_t value) = 0;    // all other integers
  virtual bool number_float(const JsonNumber& number) = 0;  // within the range of doubles
  virtual bool string(std::string& value) = 0;
  virtual bool start_object() = 0;
  virtual bool key(std::string& name) = 0;
  virtual bool end_object() = 0;
  virtual bool start_array() = 0;
  virtual bool end_array() = 0;

  /// Where the latest value, name or closing bracket begins, in bytes from 1; the parser sets it.
  std::size_t column = 1;

  enum class Fault { kSyntax, kNumberOutOfRange };
  /// The text is invalid at `byte`, counted from 1.
  virtual void invalid(std::size_t byte, Fault fault) = 0;
};

/// Whether the text was valid and no handler stopped the parser.
bool parse_json_events(std::string_view text, JsonHandler& handler);

/// Appends a quoted string; invalid UTF-8 is replaced.
void append_json_string(std::string& out, std::string_view text);
inline std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace olrank
