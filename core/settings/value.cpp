#include "core/settings/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <type_traits>

#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr std::int64_t kLongestRange = 1'000'000;
constexpr std::string_view kAuto = "auto";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

[[noreturn]] void refuse(SettingKind kind, std::string_view text) {
  throw_error<InvalidArgument>("must be {}, not '{}'", readable_kind(kind), excerpt(text, 200));
}

template <class Number>
std::optional<Number> whole_text_as(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool parse_switch(std::string_view text) {
  if (text != "true" && text != "false") refuse(SettingKind::kSwitch, text);
  return text == "true";
}

/// Refuses `whole`, of which the text is a part.
double parse_real(std::string_view text, SettingKind kind, std::string_view whole) {
  const std::optional<double> number = whole_text_as<double>(text);
  if (!number || !std::isfinite(*number)) refuse(kind, whole);
  return *number;
}

std::string_view without_quotes(std::string_view text) {
  const bool quoted =
      text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

std::vector<std::string_view> list_items(std::string_view text) {
  text = trimmed(text);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']')
    text = trimmed(text.substr(1, text.size() - 2));
  std::vector<std::string_view> items;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    items.push_back(trimmed(text.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return items;
}

template <class Parse>
auto parse_list(std::string_view text, const Parse& parse) {
  std::vector<std::decay_t<decltype(parse(text))>> items;
  for (const std::string_view item : list_items(text)) items.push_back(parse(item));
  return items;
}

void append_integers(std::string_view item, std::vector<std::int64_t>& numbers) {
  if (const auto number = whole_text_as<std::int64_t>(item)) {
    numbers.push_back(*number);
    return;
  }
  const std::size_t dash = item.find('-', 1);
  if (dash == std::string_view::npos) refuse(SettingKind::kIntegers, item);
  const auto first = whole_text_as<std::int64_t>(item.substr(0, dash));
  const auto last = whole_text_as<std::int64_t>(item.substr(dash + 1));
  if (!first || !last) refuse(SettingKind::kIntegers, item);
  if (*first < 0 || *last < *first || *last - *first >= kLongestRange) {
    throw_error<InvalidArgument>("has the invalid range '{}'; a range must be increasing, such as 1-5",
                                 item);
  }
  for (std::int64_t number = *first; number <= *last; ++number) numbers.push_back(number);
}

std::string toml_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      result += fmt::format("\\u{:04X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string real_text(double value) {
  std::string text = fmt::format("{}", value);  // the shortest form that reads back exactly
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

struct TomlText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return real_text(value); }
  std::string operator()(const std::string& value) const { return toml_quoted(value); }
  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    std::string text = "[";
    for (std::size_t i = 0; i < values.size(); ++i) text += (i > 0 ? ", " : "") + (*this)(values[i]);
    return text + "]";
  }
};

/// Files of settings are UTF-8, and the system takes a NUL for the end of a path.
void require_text(const std::string& text) {
  if (!is_utf8(text)) throw InvalidArgument("must be text in UTF-8");
  if (text.find('\0') != std::string::npos) throw InvalidArgument("must be text without NUL characters");
}

}  // namespace

std::string_view readable_kind(SettingKind kind) {
  constexpr std::array<std::string_view, 10> kKinds = {"true or false",
                                                       "an integer",
                                                       "a finite number",
                                                       "a string",
                                                       "integers, such as 1,2,5 or 1-5",
                                                       "a list of finite numbers",
                                                       "a list of strings",
                                                       "a list of booleans",
                                                       "a finite number or \"auto\"",
                                                       "a finite number, a list of several or \"auto\""};
  return kKinds[static_cast<std::size_t>(kind)];
}

std::string to_toml(const SettingValue& value) {
  return std::visit(TomlText{}, value);
}

SettingValue parse_setting(SettingKind kind, std::string_view text) {
  text = trimmed(text);
  switch (kind) {
    case SettingKind::kSwitch:
      return parse_switch(text);
    case SettingKind::kInteger: {
      const auto number = whole_text_as<std::int64_t>(text);
      if (!number) refuse(kind, text);
      return *number;
    }
    case SettingKind::kReal:
      return parse_real(text, kind, text);
    case SettingKind::kText:
      return std::string(without_quotes(text));
    case SettingKind::kIntegers: {
      std::vector<std::int64_t> numbers;
      for (const std::string_view item : list_items(text)) append_integers(item, numbers);
      return numbers;
    }
    case SettingKind::kReals:
      return parse_list(text,
                        [](std::string_view item) { return parse_real(item, SettingKind::kReal, item); });
    case SettingKind::kTexts:
      return parse_list(text, [](std::string_view item) { return std::string(without_quotes(item)); });
    case SettingKind::kSwitches:
      return parse_list(text, parse_switch);
    case SettingKind::kRealOrAuto:
      if (without_quotes(text) == kAuto) return std::string(kAuto);
      return parse_real(text, kind, text);
    case SettingKind::kRealsOrAuto:
      if (without_quotes(text) == kAuto) return std::string(kAuto);
      return convert_setting(
          kind, parse_list(text, [&](std::string_view item) { return parse_real(item, kind, text); }));
  }
  refuse(kind, text);
}

SettingValue convert_setting(SettingKind kind, const SettingValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) require_text(*text);
  const auto* texts = std::get_if<std::vector<std::string>>(&value);
  if (texts != nullptr) std::for_each(texts->begin(), texts->end(), require_text);
  const SettingKind given = kind_of(value);
  if (given == kind) {
    if (kind == SettingKind::kReal && !std::isfinite(std::get<double>(value))) refuse(kind, to_toml(value));
    if (kind == SettingKind::kReals) {
      const auto& reals = std::get<std::vector<double>>(value);
      if (!std::all_of(reals.begin(), reals.end(), [](double real) { return std::isfinite(real); })) {
        refuse(kind, to_toml(value));
      }
    }
    return value;
  }
  const bool empty_list = texts != nullptr && texts->empty();
  switch (kind) {
    case SettingKind::kReal:
      if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<double>(*number);
      break;
    case SettingKind::kIntegers:
      if (const auto* number = std::get_if<std::int64_t>(&value)) return std::vector<std::int64_t>{*number};
      if (const auto* text = std::get_if<std::string>(&value)) return parse_setting(kind, *text);
      if (empty_list) return std::vector<std::int64_t>{};
      break;
    case SettingKind::kReals:
      if (given == SettingKind::kReal || given == SettingKind::kInteger) {
        return std::vector<double>{std::get<double>(convert_setting(SettingKind::kReal, value))};
      }
      if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value)) {
        return std::vector<double>(numbers->begin(), numbers->end());
      }
      if (empty_list) return std::vector<double>{};
      break;
    case SettingKind::kTexts:
      if (const auto* text = std::get_if<std::string>(&value)) return std::vector<std::string>{*text};
      break;
    case SettingKind::kSwitches:
      if (const auto* held = std::get_if<bool>(&value)) return std::vector<bool>{*held};
      if (empty_list) return std::vector<bool>{};
      break;
    case SettingKind::kRealOrAuto:
      if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<double>(*number);
      if (const auto* number = std::get_if<double>(&value); number != nullptr && std::isfinite(*number))
        return value;
      if (const auto* text = std::get_if<std::string>(&value); text != nullptr && *text == kAuto)
        return value;
      break;
    case SettingKind::kRealsOrAuto:
      if (kind_of(value) == SettingKind::kText) return convert_setting(SettingKind::kRealOrAuto, value);
      if (const auto reals = std::get<std::vector<double>>(convert_setting(SettingKind::kReals, value));
          reals.size() > 1) {
        return reals;
      } else if (reals.size() == 1) {
        return reals.front();
      }
      break;
    default:
      break;
  }
  refuse(kind, to_toml(value));
}

void refuse_choice(std::string_view option, const std::string& text,
                   const std::vector<std::string>& names) {
  throw_error<InvalidArgument>("{} {}", option, must_be_one_of(text, names));
}

}  // namespace olrank
