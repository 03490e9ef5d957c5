#include "core/text/text_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/text/columns.h"

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

}  // namespace olrank
