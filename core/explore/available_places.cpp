#include "core/explore/available_places.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace olrank {
namespace {

constexpr std::int64_t kWordBits = OrderBits::kWordBits;

}  // namespace

void AvailablePlaces::reset(const OrderBits& orders, std::int64_t begin, std::int64_t end) {
  const std::int64_t rows = end - begin;
  count_ = 0;
  if (rows == 0) return;
  const std::int64_t first_word = begin / kWordBits;
  first_place_ = first_word * kWordBits;
  words_ = OrderBits::words(end) - first_word;
  first_leaf_ = rows - (begin - first_place_);
  // The bits of the interval.
  available_.assign(words_, ~std::uint64_t{0});
  available_.front() <<= begin - first_place_;
  available_.back() &= ~std::uint64_t{0} >> (first_place_ + words_ * kWordBits - end);
  nodes_.resize(2 * rows * words_);
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto row = orders.row(begin + i).subspan(first_word, words_);
    const auto leaf = node(rows + i);
    for (std::int64_t word = 0; word < words_; ++word) leaf[word] = row[word] & available_[word];
  }
  for (std::int64_t i = rows - 1; i > 0; --i) {
    const auto left = node(2 * i);
    const auto right = node(2 * i + 1);
    const auto both = node(i);
    for (std::int64_t word = 0; word < words_; ++word) both[word] = left[word] | right[word];
  }
  for (std::int64_t word = 0; word < words_; ++word) {
    available_[word] &= ~node(1)[word];
    count_ += std::popcount(available_[word]);
  }
}

std::int64_t AvailablePlaces::take(std::int64_t n) {
  assert(n >= 0 && n < count_);
  std::int64_t word = 0;
  for (int here = 0; n >= (here = std::popcount(available_[word])); ++word) n -= here;
  std::uint64_t left = available_[word];
  for (; n > 0; --n) left &= left - 1;
  available_[word] &= ~(left & -left);
  --count_;
  const std::int64_t place = first_place_ + word * kWordBits + std::countr_zero(left);
  remove_row(place);
  return place;
}

void AvailablePlaces::remove_row(std::int64_t place) {
  // A row has bits of later places only.
  for (std::int64_t word = (place - first_place_) / kWordBits; word < words_; ++word) {
    const std::uint64_t before = node(1)[word];
    std::int64_t i = first_leaf_ + place - first_place_;
    std::uint64_t bits = 0;
    while (node(i)[word] != bits) {
      node(i)[word] = bits;
      if (i == 1) break;
      bits |= node(i ^ 1)[word];
      i /= 2;
    }
    const std::uint64_t freed = before & ~node(1)[word];
    if (freed == 0) continue;
    available_[word] |= freed;
    count_ += std::popcount(freed);
  }
}

}  // namespace olrank
