#include "core/text/columns.h"

#include <algorithm>
#include <set>

namespace olrank {
namespace {

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) != 0x80;
}

/// The byte at which the character after the first `columns` ones begins.
std::size_t byte_of(std::string_view text, std::int64_t columns) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (begins_character(text[at]) && columns-- == 0) break;
  }
  return at;
}

std::string with_gap(std::string_view text, std::int64_t head, std::int64_t tail) {
  const std::int64_t all = columns_of(text);
  return std::string(text.substr(0, byte_of(text, head))) + "…" +
         std::string(text.substr(byte_of(text, all - tail)));
}

/// The longest beginning of at most `columns` that ends after a blank, or else after a separator within the
/// word; the whole word if it has none.
std::size_t line_end(std::string_view text, std::int64_t columns) {
  const std::size_t limit = byte_of(text, columns);
  if (limit == text.size()) return limit;
  if (text[limit] == ' ') return limit;
  const std::size_t word = std::min(text.find_first_not_of(' '), text.size());
  const std::size_t blank = text.substr(0, limit).rfind(' ');
  if (blank != std::string_view::npos && blank > word) return blank;
  if (const std::size_t mark = text.substr(0, limit).find_last_of("|,/"); mark != std::string_view::npos)
    return mark + 1;
  return std::min(text.find_first_of(" |,/", limit), text.size());
}

}  // namespace

std::int64_t columns_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(), begins_character);
}

std::string padded_right(std::string_view text, std::int64_t columns) {
  return std::string(text) + std::string(std::max<std::int64_t>(0, columns - columns_of(text)), ' ');
}

std::string padded_left(std::string_view text, std::int64_t columns) {
  return std::string(std::max<std::int64_t>(0, columns - columns_of(text)), ' ') + std::string(text);
}

std::string shortened(std::string_view text, std::int64_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  if (columns < 1) return "";
  const std::int64_t kept = columns - 1;
  return with_gap(text, kept - kept / 2, kept / 2);
}

std::vector<std::string> shortened_apart(const std::vector<std::string>& texts, std::int64_t columns) {
  const std::size_t different = std::set(texts.begin(), texts.end()).size();
  const auto cut = [&](std::int64_t tail) {
    std::vector<std::string> cut_texts;
    cut_texts.reserve(texts.size());
    for (const std::string& text : texts) {
      cut_texts.push_back(columns_of(text) <= columns ? text : with_gap(text, columns - 1 - tail, tail));
    }
    return cut_texts;
  };
  const std::int64_t middle = std::max<std::int64_t>(0, columns - 1) / 2;
  if (columns < 1) return std::vector<std::string>(texts.size());
  for (std::int64_t away = 0; away < columns; ++away) {
    for (const std::int64_t tail : {middle - away, middle + away}) {
      if (tail < 0 || tail > columns - 1) continue;
      std::vector<std::string> cut_texts = cut(tail);
      if (std::set(cut_texts.begin(), cut_texts.end()).size() == different) return cut_texts;
    }
  }
  return cut(middle);
}

std::string wrapped(std::string_view text, std::int64_t columns, std::int64_t indent) {
  if (columns <= 0) return std::string(text);
  std::string lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view paragraph = text.substr(begin, end - begin);
    if (begin > 0) lines += "\n";
    std::int64_t room = columns;
    for (;;) {
      const std::size_t cut = line_end(paragraph, std::max<std::int64_t>(1, room));
      lines += paragraph.substr(0, cut);
      paragraph.remove_prefix(std::min(paragraph.find_first_not_of(' ', cut), paragraph.size()));
      if (paragraph.empty()) break;
      lines += "\n" + std::string(indent, ' ');
      room = columns - indent;
    }
    begin = end + 1;
  }
  return lines;
}

}  // namespace olrank
