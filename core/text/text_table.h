#pragma once

#include <cstdint>
#include <string>
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

  /// At most `columns` wide unless 0, as far as the columns that stay allow.
  Fitted fitted(std::int64_t columns) const;

 private:
  std::vector<std::int64_t> widths() const;
  std::string lines(const std::vector<bool>& shown, const std::vector<std::int64_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// A sentence on the columns that a table has lost, on a line of its own; empty if it has all.
std::string hidden_columns_text(const std::vector<std::string>& hidden, std::int64_t columns);

}  // namespace olrank
