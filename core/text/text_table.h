#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// A table of text for a terminal of a certain width. One that is too wide first has its names shortened,
/// then loses columns in a stated order.
class TextTable {
 public:
  struct Column {
    std::string header;
    bool is_name = false;      // to the left, and shortened where the table is too wide
    std::int64_t dropped = 0;  // 1 goes first, then 2, …; 0 stays
  };
  /// The table's lines, and the headers of the columns that it has lost.
  struct Fitted {
    std::string text;
    std::vector<std::string> hidden;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  std::size_t columns() const { return columns_.size(); }
  /// One cell for each column.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  /// Makes it at most `columns` wide unless 0, as far as the columns that stay allow.
  Fitted fitted(std::int64_t columns) const;

 private:
  std::vector<std::int64_t> widths() const;
  std::string lines(const std::vector<bool>& shown, const std::vector<std::int64_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// A sentence on the columns that a table has lost, on a line of its own; empty if it has all.
std::string hidden_columns_text(const std::vector<std::string>& hidden, std::int64_t columns);

/// The columns that UTF-8 text takes on a terminal, if every character is one column wide.
std::int64_t columns_of(std::string_view text);

/// The text padded with blanks to `columns`, on the right or on the left.
std::string padded_right(std::string_view text, std::int64_t columns);
std::string padded_left(std::string_view text, std::int64_t columns);

/// The text in at most `columns` columns: of a longer one, `…` replaces the middle.
std::string shortened(std::string_view text, std::int64_t columns);

/// All texts in at most `columns` columns each, so that different ones stay different where that is
/// possible: the part that is cut out moves from the middle to the right.
std::vector<std::string> shortened_apart(const std::vector<std::string>& texts, std::int64_t columns);

/// The text in lines of at most `columns`, broken at blanks, or after `|`, `,` or `/` within words that are
/// longer than a line; the rest of a broken line begins with `indent` blanks. Line breaks in the text stay.
/// Without a limit (0 columns), the text as it is.
std::string wrapped(std::string_view text, std::int64_t columns, std::int64_t indent = 0);

/// How a result is written: as JSON, or as text.
struct OutputForm {
  bool json = false;
  std::int64_t columns = 0;  // that a table of the text may take; 0 is no limit
};

/// Receives the text that a piece of work writes, in order.
using TextSink = std::function<void(std::string_view)>;

/// A text field of a CSV file, quoted where it holds a comma, a quote or a line break (RFC 4180).
std::string csv_field(std::string_view text);

/// The shortest decimal that reads back exactly; an empty field for NaN and infinities.
std::string csv_number(double value);

/// An empty field where there is no value.
template <class Number>
std::string csv_number(const std::optional<Number>& value) {
  if (!value) return {};
  if constexpr (std::integral<Number>) return std::to_string(*value);
  return csv_number(static_cast<double>(*value));
}

/// The fields of a line without its line break, quotes removed. Returns what is wrong with the line; empty
/// if nothing is. A quoted field ends on its line: one with a line break is refused.
std::string split_csv(std::string_view line, std::vector<std::string>& fields);

}  // namespace olrank
