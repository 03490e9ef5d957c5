#pragma once

#include <cstdint>
#include <vector>

namespace olrank {

/// Counts of items, of which one can be drawn with a probability proportional to its count: a binary
/// indexed tree (Fenwick, "A new data structure for cumulative frequency tables", 1994). Every call is
/// O(log items).
class CountTree {
 public:
  std::int64_t items() const { return std::ssize(sums_); }
  std::int64_t total() const { return total_; }

  void append(std::int64_t count);
  /// `change` may be negative, an item's count not.
  void add(std::int64_t item, std::int64_t change);
  /// The item that the unit of this number belongs to, items side by side; 0 ≤ unit < total().
  std::int64_t item_at(std::int64_t unit) const;
  void clear();

 private:
  std::vector<std::int64_t> sums_;  // [i − 1]: of items i − lowest_bit(i) … i − 1
  std::int64_t total_ = 0;
};

}  // namespace olrank
