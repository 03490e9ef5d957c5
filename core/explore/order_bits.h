#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

namespace olrank {

/// The certain orders of one query: bit (a, b) is set if the document at place a of the order by score is
/// certainly before the one at place b. Certain orders agree with the scores, so a < b for every set bit.
/// Memory is reused from query to query.
class OrderBits {
 public:
  static constexpr std::int64_t kWordBits = 64;

  /// Words of a row.
  static constexpr std::int64_t words(std::int64_t docs) { return (docs + kWordBits - 1) / kWordBits; }

  void reset(std::int64_t docs) {
    docs_ = docs;
    words_ = words(docs);
    bits_.assign(docs * words_, 0);
  }

  /// Rows as a device wrote them, [docs × ⌈docs/64⌉].
  void assign(std::int64_t docs, std::span<const std::uint64_t> bits) {
    docs_ = docs;
    words_ = words(docs);
    assert(std::ssize(bits) == docs_ * words_);
    bits_.assign(bits.begin(), bits.end());
  }

  std::int64_t docs() const { return docs_; }
  void set(std::int64_t a, std::int64_t b) {
    assert(a < b && b < docs_);
    row(a)[b / kWordBits] |= std::uint64_t{1} << (b % kWordBits);
  }
  bool certain(std::int64_t a, std::int64_t b) const {
    return (row(a)[b / kWordBits] >> (b % kWordBits) & 1U) != 0;
  }
  std::span<std::uint64_t> row(std::int64_t a) { return std::span(bits_).subspan(a * words_, words_); }
  std::span<const std::uint64_t> row(std::int64_t a) const {
    return std::span(bits_).subspan(a * words_, words_);
  }

  /// Calls visit(b), in ascending order, for every place b that a is certainly before.
  template <class Visit>
  void for_each_below(std::int64_t a, Visit&& visit) const {
    const auto words = row(a);
    for (std::size_t word = 0; word < words.size(); ++word) {
      for (std::uint64_t left = words[word]; left != 0; left &= left - 1) {
        visit(static_cast<std::int64_t>(word) * kWordBits + std::countr_zero(left));
      }
    }
  }

 private:
  std::int64_t docs_ = 0;
  std::int64_t words_ = 0;  // of a row
  std::vector<std::uint64_t> bits_;
};

}  // namespace olrank
