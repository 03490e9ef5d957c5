#include "core/settings/toml_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

// toml++ assumes of a table's header what its next lines refuse: no build may check or use its assumptions.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include "core/io/atomic_file.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

std::string at(std::string_view file, const toml::source_position& position) {
  return fmt::format("{}:{}:{}", file, position.line, position.column);
}

template <class T>
std::vector<T> list_of(const toml::array& array) {
  std::vector<T> items;
  items.reserve(array.size());
  for (const toml::node& node : array) items.push_back(*node.value<T>());
  return items;
}

SettingValue value_of(const toml::node& node, std::string_view key, std::string_view origin) {
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_string()) return value->get();
  const toml::array* array = node.as_array();
  if (array == nullptr)
    throw_error<InvalidArgument>("{}: '{}' has a value of a type that no setting accepts.", origin,
                                 excerpt(key));
  const auto all = [array](auto test) { return std::all_of(array->begin(), array->end(), test); };
  if (all([](const toml::node& item) { return item.is_string(); })) return list_of<std::string>(*array);
  if (all([](const toml::node& item) { return item.is_integer(); })) return list_of<std::int64_t>(*array);
  if (all([](const toml::node& item) { return item.is_number(); })) return list_of<double>(*array);
  if (all([](const toml::node& item) { return item.is_boolean(); })) return list_of<bool>(*array);
  throw_error<InvalidArgument>("{}: '{}' must be a list of strings, of numbers or of booleans.", origin,
                               excerpt(key));
}

/// The text with '?', which stands nowhere outside of strings and comments, for each character beyond
/// ASCII.
std::string in_ascii(std::string_view text) {
  std::string ascii;
  for (std::size_t i = 0, length = 0; i < text.size(); i += length) {
    length = std::max<std::size_t>(utf8_length(text.substr(i)), 1);
    ascii += static_cast<unsigned char>(text[i]) < 0x80 ? text[i] : '?';
  }
  return ascii;
}

/// Refuses what the parser, toml++, cannot take: keys with so many parts that it would run out of stack, as
/// it makes a table of each, and a character beyond ASCII where it looks for white space, as it promises
/// the compiler that most of them are not there. Counts the dots between other punctuation, outside of
/// strings and comments; behind a mistake the count may be wrong, and the parser does not get there.
void refuse_beyond_parser(std::string_view text, std::string_view file) {
  constexpr int kMostDots = 64;
  std::int64_t line = 1;
  int dots = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.') {
      if (++dots > kMostDots)
        throw_error<InvalidArgument>("{}:{}: A key has more than {} parts.", file, line, kMostDots);
    } else if (c == '"' || c == '\'') {
      const std::string_view triple = c == '"' ? "\"\"\"" : "'''";
      const std::size_t quotes = text.substr(i).starts_with(triple) ? 3 : 1;
      std::size_t end = i + quotes;
      while (end < text.size() && text.substr(end, quotes) != triple.substr(0, quotes)) {
        if (text[end] == '\n') {
          if (quotes == 1) break;
          ++line;
        }
        const bool escapes = c == '"' && text[end] == '\\';
        if (const std::size_t next = escapes ? text.find_first_not_of(" \t\r\n", end + 1) : text.npos;
            next != text.npos && static_cast<unsigned char>(text[next]) >= 0x80)
          throw_error<InvalidArgument>(
              "{}:{}: Behind a backslash that ends a line, write a character beyond ASCII as \\uXXXX.",
              file, line);
        end += escapes ? 2 : 1;
      }
      // Two quotes more may be the last characters of a text in triple quotes.
      for (int more = 0; quotes == 3 && more < 2 && end + quotes < text.size() && text[end + quotes] == c;
           ++more)
        ++end;
      i = end + quotes - 1;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) {
      dots = 0;
      line += c == '\n' ? 1 : 0;
    }
  }
}

/// Appends a table and those within it.
void flatten(const toml::table& source, const std::string& name, bool repeated, std::string_view file,
             std::vector<TomlDocument::Table>& tables) {
  // toml++ sorts keys; messages and printing should follow the order of the file.
  std::vector<std::pair<const toml::key*, const toml::node*>> members;
  for (auto&& [key, node] : source) members.emplace_back(&key, &node);
  std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) {
    const auto& left = a.second->source().begin;
    const auto& right = b.second->source().begin;
    return left.line != right.line ? left.line < right.line : left.column < right.column;
  });

  const std::size_t place = tables.size();
  tables.push_back({name, repeated, at(file, source.source().begin), {}});
  for (const auto& [key, node] : members) {
    const std::string member(key->str());
    if (std::any_of(member.begin(), member.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }))
      throw_error<InvalidArgument>("{}: The key '{}' has a control character.",
                                   at(file, key->source().begin), excerpt(member));
    const std::string path = name.empty() ? member : fmt::format("{}.{}", name, member);
    if (const toml::table* inner = node->as_table()) {
      flatten(*inner, path, false, file, tables);
    } else if (const toml::array* array = node->as_array();
               array != nullptr && array->is_array_of_tables()) {
      for (const toml::node& item : *array) flatten(*item.as_table(), path, true, file, tables);
    } else {
      const std::string origin = at(file, node->source().begin);
      tables[place].entries.push_back(
          {member, value_of(*node, path, origin), origin, at(file, key->source().begin)});
    }
  }
  // Without keys above all tables there is no table for them.
  if (name.empty() && tables[place].entries.empty())
    tables.erase(tables.begin() + static_cast<std::ptrdiff_t>(place));
}

}  // namespace

TomlDocument parse_toml(std::string_view text, std::string_view file_name) {
  if (constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF"; text.starts_with(kByteOrderMark))
    text.remove_prefix(kByteOrderMark.size());
  // Only where this text is right are all characters beyond ASCII in strings and comments.
  const std::string ascii = in_ascii(text);
  bool replaced = ascii != text;
  try {
    refuse_beyond_parser(ascii, file_name);
    toml::table root = toml::parse(ascii, file_name);
    if (std::exchange(replaced, false)) {
      refuse_beyond_parser(text, file_name);
      root = toml::parse(text, file_name);
    }
    TomlDocument document;
    flatten(root, "", false, file_name, document.tables);
    return document;
  } catch (const toml::parse_error& error) {
    throw_error<InvalidArgument>(
        "{}: {}.{}", at(file_name, error.source().begin), excerpt(error.description(), 800, 300),
        replaced ? " Only strings and comments may have characters beyond ASCII, which are '?' here." : "");
  }
}

TomlDocument read_toml(const std::filesystem::path& path) {
  constexpr std::size_t kLargest = std::size_t{8} << 20;
  std::string text;
  try {
    text = read_file(path, kLargest);
  } catch (const IoError& error) {
    throw InvalidArgument(error.what());  // a missing configuration file is a usage error
  }
  return parse_toml(text, path.string());
}

}  // namespace olrank
