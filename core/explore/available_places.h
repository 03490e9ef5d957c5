#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/explore/order_bits.h"

namespace olrank {

/// Takes the documents of an interval of places one by one, each after all that are certainly before it. A
/// place is available if no document that is still to be taken is certainly before its own. The orders of
/// those are rows of bits at the leaves of a tree, whose nodes are the union of what is below them: O(log V
/// · V/64) per document, however many orders are certain. Memory is reused.
class AvailablePlaces {
 public:
  /// All of the places [begin, end) are still to be taken.
  void reset(const OrderBits& orders, std::int64_t begin, std::int64_t end);

  /// At least 1 until all places are taken.
  std::int64_t count() const { return count_; }
  /// Takes the n-th available place, from 0, and returns it.
  std::int64_t take(std::int64_t n);

 private:
  std::span<std::uint64_t> node(std::int64_t i) { return std::span(nodes_).subspan(i * words_, words_); }
  /// Empties the row of a place that is taken.
  void remove_row(std::int64_t place);

  std::int64_t first_place_ = 0;  // that the bits count from
  std::int64_t words_ = 0;        // of a row
  std::int64_t first_leaf_ = 0;   // the node that would be first_place_'s
  std::int64_t count_ = 0;
  std::vector<std::uint64_t> available_;
  std::vector<std::uint64_t> nodes_;  // the root is 1, the children of i are 2i and 2i + 1, then the rows
};

}  // namespace olrank
