#include "core/fair/violated_orders.h"

#include <algorithm>
#include <array>
#include <bit>

namespace olrank {
namespace {

/// Transposes 64 × 64 bits in place: Warren, "Hacker's Delight", 2nd edition, Section 7-3, for bits that
/// count from the lowest.
void transpose_words(std::array<std::uint64_t, 64>& rows) {
  std::uint64_t mask = 0x00000000FFFFFFFFULL;
  for (unsigned width = 32; width != 0; width >>= 1, mask ^= mask << width) {
    for (unsigned row = 0; row < 64; row = ((row | width) + 1) & ~width) {
      const std::uint64_t swapped = ((rows[row] >> width) ^ rows[row | width]) & mask;
      rows[row] ^= swapped << width;
      rows[row | width] ^= swapped;
    }
  }
}

}  // namespace

void transpose(const OrderBits& orders, OrderBits& columns) {
  constexpr std::int64_t kSide = OrderBits::kWordBits;
  const std::int64_t docs = orders.docs();
  columns.reset(docs);
  std::array<std::uint64_t, kSide> tile;
  for (std::int64_t first_row = 0; first_row < docs; first_row += kSide) {
    const std::int64_t rows = std::min(kSide, docs - first_row);
    for (std::int64_t word = first_row / kSide; word < OrderBits::words(docs); ++word) {
      tile.fill(0);
      for (std::int64_t row = 0; row < rows; ++row) tile[row] = orders.row(first_row + row)[word];
      transpose_words(tile);
      const std::int64_t first_column = word * kSide;
      const std::int64_t behind = std::min(kSide, docs - first_column);
      for (std::int64_t column = 0; column < behind; ++column)
        columns.row(first_column + column)[first_row / kSide] = tile[column];
    }
  }
}

std::int64_t count_violated(const OrderBits& orders, std::span<const std::int32_t> list,
                            std::vector<std::uint64_t>& placed) {
  placed.assign(OrderBits::words(orders.docs()), 0);
  std::int64_t violated = 0;
  for (const std::int32_t place : list) {
    const auto row = orders.row(place);
    for (std::size_t word = 0; word < row.size(); ++word)
      violated += std::popcount(row[word] & placed[word]);
    placed[place / OrderBits::kWordBits] |= std::uint64_t{1} << place % OrderBits::kWordBits;
  }
  return violated;
}

}  // namespace olrank
