#include "core/text/text_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace olrank {
namespace {

constexpr std::int64_t kGap = 2;
/// Names are shortened to this before a column is dropped, and to the second only after all of them.
constexpr std::int64_t kReadableName = 14;
constexpr std::int64_t kShortestName = 6;

std::int64_t total_of(const std::vector<bool>& shown, const std::vector<std::int64_t>& widths) {
  std::int64_t total = -kGap;
  for (std::size_t i = 0; i < widths.size(); ++i) total += shown[i] ? widths[i] + kGap : 0;
  return total;
}

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

std::vector<std::int64_t> TextTable::widths() const {
  std::vector<std::int64_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::int64_t widest = columns_of(columns_[i].header);
    for (const auto& row : rows_) widest = std::max(widest, columns_of(row[i]));
    widths.push_back(widest);
  }
  return widths;
}

TextTable::Fitted TextTable::fitted(std::int64_t columns) const {
  std::vector<bool> shown(columns_.size(), true);
  const std::vector<std::int64_t> full = widths();
  if (columns <= 0) return {lines(shown, full), {}};
  // The widest name gives way first.
  const auto shortened_to = [&](std::int64_t shortest) {
    std::vector<std::int64_t> widths = full;
    while (total_of(shown, widths) > columns) {
      std::size_t widest = columns_.size();
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        const std::int64_t least = std::max(shortest, columns_of(columns_[i].header));
        if (!columns_[i].is_name || widths[i] <= least) continue;
        if (widest == columns_.size() || widths[i] > widths[widest]) widest = i;
      }
      if (widest == columns_.size()) break;
      --widths[widest];
    }
    return widths;
  };
  Fitted fitted;
  for (;;) {
    const std::vector<std::int64_t> widths = shortened_to(kReadableName);
    if (total_of(shown, widths) <= columns) {
      fitted.text = lines(shown, widths);
      return fitted;
    }
    std::size_t next = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!shown[i] || columns_[i].dropped == 0) continue;
      if (next == columns_.size() || columns_[i].dropped < columns_[next].dropped) next = i;
    }
    if (next == columns_.size()) break;
    shown[next] = false;
    fitted.hidden.push_back(columns_[next].header);
  }
  fitted.text = lines(shown, shortened_to(kShortestName));
  return fitted;
}

std::string TextTable::lines(const std::vector<bool>& shown,
                             const std::vector<std::int64_t>& widths) const {
  std::vector<std::vector<std::string>> cells(rows_.size() + 1);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!shown[i]) continue;
    std::vector<std::string> column;
    for (const auto& row : rows_) column.push_back(row[i]);
    if (columns_[i].is_name) column = shortened_apart(column, widths[i]);
    column.insert(column.begin(), columns_[i].header);
    for (std::size_t line = 0; line < column.size(); ++line) {
      cells[line].push_back(columns_[i].is_name ? padded_right(column[line], widths[i])
                                                : padded_left(column[line], widths[i]));
    }
  }
  std::string text;
  for (const auto& line : cells) {
    std::string joined = fmt::format("{}", fmt::join(line, std::string(kGap, ' ')));
    joined.erase(joined.find_last_not_of(' ') + 1);
    text += joined + "\n";
  }
  return text;
}

std::string hidden_columns_text(const std::vector<std::string>& hidden, std::int64_t columns) {
  if (hidden.empty()) return "";
  return wrapped(fmt::format("Not shown within {} columns: {}; --wide shows all.", columns,
                             fmt::join(hidden, ", ")),
                 columns) +
         "\n";
}

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

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

std::string csv_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : std::string();
}

std::string split_csv(std::string_view line, std::vector<std::string>& fields) {
  fields.clear();
  if (line.ends_with('\r')) line.remove_suffix(1);
  for (bool more = true; more;) {
    std::string& field = fields.emplace_back();
    if (line.starts_with('"')) {
      for (;;) {
        line.remove_prefix(1);
        const std::size_t quote = line.find('"');
        if (quote == std::string_view::npos)
          return fmt::format("Field {} begins with a quote that does not end on this line.", fields.size());
        field += line.substr(0, quote);
        line.remove_prefix(quote + 1);
        if (!line.starts_with('"')) break;
        field += '"';
      }
      if (!line.empty() && line.front() != ',')
        return fmt::format("Field {} goes on after its closing quote.", fields.size());
    } else {
      field = line.substr(0, line.find(','));
      line.remove_prefix(field.size());
      if (field.find('"') != std::string::npos)
        return fmt::format("Field {} has a quote within: put the whole field in quotes and double it.",
                           fields.size());
    }
    more = !line.empty();
    line.remove_prefix(more ? 1 : 0);
  }
  return {};
}

}  // namespace olrank
