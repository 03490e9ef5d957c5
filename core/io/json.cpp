#include "core/io/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "core/io/fingerprint.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

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

nlohmann::ordered_json try_parse_json(std::string_view text, std::optional<std::string>& repeated) {
  using Json = nlohmann::ordered_json;
  std::vector<std::set<std::string>> names;  // of the objects that are open
  const auto see = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event != Json::parse_event_t::key) return true;
    const auto& name = parsed.get_ref<const std::string&>();
    if (!names.back().insert(name).second && !repeated) repeated = name;
    return true;
  };
  return Json::parse(up_to_deep_json(text), see, false);
}

nlohmann::ordered_json number_or_null(double number) {
  return std::isfinite(number) ? nlohmann::ordered_json(number) : nlohmann::ordered_json(nullptr);
}

std::string dump_json(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string dump_checked_json(const nlohmann::ordered_json& object, int indent) {
  std::string text = dump_json(object, indent);
  text.resize(text.rfind('\n'));
  return text + fmt::format(",\n{:{}}\"check\": \"{}\"\n}}\n", "", indent, fingerprint_of(text).hex());
}

nlohmann::ordered_json parse_checked_json(std::string_view text, std::string_view origin,
                                          std::string_view restart) {
  nlohmann::ordered_json object = try_parse_json(text);
  if (!object.is_object() || !object.contains("check")) return object;
  if (object["check"] != fingerprint_of(text.substr(0, text.rfind(",\n"))).hex())
    throw_error<IoError>(
        "{}: This file has changed since it was written: its 'check' does not match. To continue, {}.",
        origin, restart);
  object.erase("check");
  return object;
}

namespace {

using nlohmann::json;

/// Accepts every event, so that the library's parser tells where a text is invalid.
class FaultFinder {
 public:
  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(json::number_integer_t) { return true; }
  bool number_unsigned(json::number_unsigned_t) { return true; }
  bool number_float(json::number_float_t, const std::string&) { return true; }
  bool string(std::string&) { return true; }
  bool binary(json::binary_t&) { return true; }
  bool start_object(std::size_t) { return true; }
  bool key(std::string&) { return true; }
  bool end_object() { return true; }
  bool start_array(std::size_t) { return true; }
  bool end_array() { return true; }
  bool parse_error(std::size_t position, const std::string&, const json::exception& error) {
    constexpr int kNumberOutOfRange = 406;
    byte = position;
    if (error.id == kNumberOutOfRange) fault = JsonHandler::Fault::kNumberOutOfRange;
    return false;
  }

  std::size_t byte = 0;
  JsonHandler::Fault fault = JsonHandler::Fault::kSyntax;
};

bool is_json_digit(char c) {
  return c >= '0' && c <= '9';
}

/// A parser of its own because requests are mostly numbers: it reads them four times as fast as the
/// library's, which goes through every text that this one finds invalid, and tells where.
class EventParser {
 public:
  EventParser(std::string_view text, JsonHandler& handler)
      : text_(text), at_(text.data()), end_(text.data() + text.size()), handler_(handler) {}

  bool parse() {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ += 3;
    const Outcome outcome = parse_events();
    if (outcome == kInvalid) {
      FaultFinder finder;
      json::sax_parse(text_.begin(), text_.end(), &finder);
      handler_.invalid(finder.byte, finder.fault);
    }
    return outcome == kGoOn;
  }

 private:
  enum Outcome { kGoOn, kStopped, kInvalid };

  static Outcome outcome(bool goes_on) { return goes_on ? kGoOn : kStopped; }

  Outcome parse_events() {
    while (true) {
      bool opened = false;
      if (const Outcome begun = begin_value(opened); begun != kGoOn) return begun;
      while (!opened) {
        skip_space();
        if (within_.empty()) return at_ == end_ ? kGoOn : kInvalid;
        if (at_ == end_) return kInvalid;
        const char c = *at_++;
        if (c == ',') {
          if (!in_object_) break;
          skip_space();
          if (const Outcome named = read_key(); named != kGoOn) return named;
          break;
        }
        if (c != (in_object_ ? '}' : ']')) return kInvalid;
        if (const Outcome ended = leave(); ended != kGoOn) return ended;
      }
    }
  }

  /// A scalar or an empty array or object, or the beginning (`opened`) of one that is not.
  Outcome begin_value(bool& opened) {
    skip_space();
    if (at_ == end_) return kInvalid;
    begin_here();
    switch (*at_) {
      case '{':
        if (!handler_.start_object()) return kStopped;
        if (enter(true)) return leave();
        opened = true;
        return read_key();
      case '[':
        if (!handler_.start_array()) return kStopped;
        opened = !enter(false);
        return opened ? kGoOn : leave();
      case '"':
        return read_string() ? outcome(handler_.string(word_)) : kInvalid;
      case 't':
        return take("true") ? outcome(handler_.boolean(true)) : kInvalid;
      case 'f':
        return take("false") ? outcome(handler_.boolean(false)) : kInvalid;
      case 'n':
        return take("null") ? outcome(handler_.null()) : kInvalid;
      default:
        return read_number();
    }
  }

  /// Takes an opening bracket, and the closing one that follows: true if there is one.
  bool enter(bool object) {
    within_.push_back(in_object_ = object);
    ++at_;
    skip_space();
    const bool empty = at_ != end_ && *at_ == (object ? '}' : ']');
    at_ += empty ? 1 : 0;
    return empty;
  }

  Outcome leave() {
    handler_.column = static_cast<std::size_t>(at_ - text_.data());  // of the bracket just read
    const bool was_object = in_object_;
    within_.pop_back();
    in_object_ = !within_.empty() && within_.back();
    return outcome(was_object ? handler_.end_object() : handler_.end_array());
  }

  void begin_here() { handler_.column = static_cast<std::size_t>(at_ - text_.data()) + 1; }

  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  bool take(std::string_view word) {
    if (!std::string_view(at_, end_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  /// A member's name and its colon.
  Outcome read_key() {
    begin_here();
    if (at_ == end_ || *at_ != '"' || !read_string()) return kInvalid;
    if (!handler_.key(word_)) return kStopped;
    skip_space();
    if (at_ == end_ || *at_ != ':') return kInvalid;
    ++at_;
    return kGoOn;
  }

  /// Appends the digits to `number`, which wraps around, and returns their count.
  std::ptrdiff_t read_digits(std::uint64_t& number) {
    const char* const begin = at_;
    for (; at_ != end_ && is_json_digit(*at_); ++at_)
      number = 10 * number + static_cast<unsigned>(*at_ - '0');
    return at_ - begin;
  }

  Outcome read_number() {
    constexpr int kShort = 19;  // decimal digits that any 64-bit integer holds
    const char* const begin = at_;
    const bool is_negative = *at_ == '-';
    if (is_negative) ++at_;
    JsonNumber number;
    std::ptrdiff_t digits = 1;
    if (at_ != end_ && *at_ == '0') {
      ++at_;
    } else {
      digits = read_digits(number.significand);
      if (digits == 0) return kInvalid;
    }
    bool is_whole = true;
    bool may_be_beyond = false;  // the range of doubles
    std::ptrdiff_t decimals = 0;
    if (at_ != end_ && *at_ == '.') {
      is_whole = false;
      ++at_;
      decimals = read_digits(number.significand);
      if (decimals == 0) return kInvalid;
      digits += decimals;
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      is_whole = false;
      ++at_;
      const bool is_below_one = at_ != end_ && *at_ == '-';
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      std::uint64_t exponent = 0;
      const std::ptrdiff_t length = read_digits(exponent);
      if (length == 0) return kInvalid;
      may_be_beyond = length > 2;
      if (!may_be_beyond) number.exponent = static_cast<int>(is_below_one ? 0 - exponent : exponent);
    }
    number.is_short = digits <= kShort && !may_be_beyond;
    if (is_whole && number.is_short && !is_negative)
      return outcome(handler_.number_unsigned(number.significand));
    may_be_beyond = may_be_beyond || at_ - begin > 200;
    const auto fits = [&](auto& whole) { return std::from_chars(begin, at_, whole).ec == std::errc{}; };
    if (is_whole && is_negative) {
      if (std::int64_t whole = 0; fits(whole)) return outcome(handler_.number_integer(whole));
    } else if (is_whole) {
      if (std::uint64_t whole = 0; fits(whole)) return outcome(handler_.number_unsigned(whole));
    }
    number.digits = {begin, at_};
    if (number.is_short) number.exponent -= static_cast<int>(decimals);
    if (may_be_beyond && std::isinf(number.value())) return kInvalid;
    return outcome(handler_.number_float(number));
  }

  /// Puts the string at `at_` into `word_`.
  bool read_string() {
    word_.clear();
    ++at_;
    while (true) {
      const char* const begin = at_;
      while (at_ != end_ && static_cast<unsigned char>(*at_) - 0x20U < 0x60U && *at_ != '"' && *at_ != '\\')
        ++at_;
      word_.append(begin, at_);
      if (at_ == end_) return false;
      if (*at_ == '"') {
        ++at_;
        return true;
      }
      if (*at_ == '\\') {
        ++at_;
        if (at_ == end_ || !read_escape()) return false;
        continue;
      }
      const std::size_t length = utf8_length({at_, end_});
      if (length == 0 || static_cast<unsigned char>(*at_) < 0x20) return false;
      word_.append(at_, length);
      at_ += length;
    }
  }

  bool read_escape() {
    constexpr std::string_view kNames = "\"\\/bfnrtu";
    constexpr std::string_view kCharacters = "\"\\/\b\f\n\r\t";
    const std::size_t place = kNames.find(*at_++);
    if (place == std::string_view::npos) return false;
    if (place < kCharacters.size()) {
      word_ += kCharacters[place];
      return true;
    }
    std::uint32_t point = 0;
    if (!read_code(point)) return false;
    if (point >= 0xDC00 && point <= 0xDFFF) return false;
    if (point >= 0xD800 && point <= 0xDBFF) {
      std::uint32_t low = 0;
      if (!take("\\u") || !read_code(low) || low < 0xDC00 || low > 0xDFFF) return false;
      point = 0x10000 + ((point - 0xD800) << 10U) + (low - 0xDC00);
    }
    append_utf8(point);
    return true;
  }

  /// Four hexadecimal digits.
  bool read_code(std::uint32_t& code) {
    if (end_ - at_ < 4) return false;
    const auto read = std::from_chars(at_, at_ + 4, code, 16);
    if (read.ec != std::errc{} || read.ptr != at_ + 4) return false;
    at_ += 4;
    return true;
  }

  void append_utf8(std::uint32_t point) {
    const auto add = [&](std::uint32_t byte) { word_ += static_cast<char>(byte); };
    const auto add_tail = [&](unsigned shift) { add(0x80U | ((point >> shift) & 0x3FU)); };
    if (point < 0x80) return add(point);
    if (point < 0x800) {
      add(0xC0U | (point >> 6U));
    } else if (point < 0x10000) {
      add(0xE0U | (point >> 12U));
      add_tail(6);
    } else {
      add(0xF0U | (point >> 18U));
      add_tail(12);
      add_tail(6);
    }
    add_tail(0);
  }

  std::string_view text_;
  const char* at_;
  const char* end_;
  JsonHandler& handler_;
  std::vector<bool> within_;  // for each open bracket: whether it is an object's
  bool in_object_ = false;    // the last of them
  std::string word_;
};

constexpr int kExactPowers = 22;  // of ten, which doubles hold without rounding
constexpr auto kPowersOfTen = [] {
  std::array<double, kExactPowers + 1> powers{1.0};
  for (int power = 1; power <= kExactPowers; ++power) powers[power] = 10.0 * powers[power - 1];
  return powers;
}();
constexpr std::uint64_t kExactIntegers = std::uint64_t{1} << 53U;

/// A short number, with one rounding if its significand is an exact double, with two otherwise.
double scaled(const JsonNumber& number) {
  const auto significand = static_cast<double>(number.significand);
  const double size = number.exponent < 0 ? significand / kPowersOfTen[-number.exponent]
                                          : significand * kPowersOfTen[number.exponent];
  return number.digits.front() == '-' ? -size : size;
}

bool is_scalable(const JsonNumber& number) {
  return number.is_short && number.exponent >= -kExactPowers && number.exponent <= kExactPowers;
}

}  // namespace

float JsonNumber::rounded() const {
  if (!is_scalable(*this)) return static_cast<float>(value());
  const double near = scaled(*this);
  if (significand <= kExactIntegers) return static_cast<float>(near);
  // Two roundings miss the nearest double by at most three places. It becomes the same float, unless the
  // middle of two floats lies between: there a double's 29 bits below a float's are 1 and zeros.
  constexpr std::uint64_t kMiddle = std::uint64_t{1} << 28U;
  constexpr std::uint64_t kMiss = 4;
  const std::uint64_t below = std::bit_cast<std::uint64_t>(near) & (2 * kMiddle - 1);
  const bool is_safe = below < kMiddle - kMiss || below > kMiddle + kMiss;
  return static_cast<float>(is_safe ? near : value());
}

double JsonNumber::value() const {
  if (is_scalable(*this) && significand <= kExactIntegers) return scaled(*this);
  double value = 0.0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec == std::errc{}) return value;
  const json rounded = json::parse(digits, nullptr, false);  // for what is almost zero
  return rounded.is_discarded() ? std::numeric_limits<double>::infinity() : rounded.get<double>();
}

bool parse_json_events(std::string_view text, JsonHandler& handler) {
  // The library's parser would stop at a zero byte as at the end.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    handler.invalid(zero + 1, JsonHandler::Fault::kSyntax);
    return false;
  }
  return EventParser(text, handler).parse();
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
