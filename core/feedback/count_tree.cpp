#include "core/feedback/count_tree.h"

#include <bit>
#include <cassert>

namespace olrank {
namespace {

std::int64_t lowest_bit(std::int64_t number) {
  return number & -number;
}

}  // namespace

void CountTree::append(std::int64_t count) {
  const std::int64_t end = items() + 1;
  std::int64_t sum = count;
  for (std::int64_t below = 1; below < lowest_bit(end); below *= 2) sum += sums_[end - below - 1];
  sums_.push_back(sum);
  total_ += count;
}

void CountTree::add(std::int64_t item, std::int64_t change) {
  for (std::int64_t end = item + 1; end <= items(); end += lowest_bit(end)) sums_[end - 1] += change;
  total_ += change;
}

std::int64_t CountTree::item_at(std::int64_t unit) const {
  assert(unit >= 0 && unit < total_);
  std::int64_t before = 0;
  for (auto span = static_cast<std::int64_t>(std::bit_floor(sums_.size())); span > 0; span /= 2) {
    if (before + span <= items() && sums_[before + span - 1] <= unit) {
      before += span;
      unit -= sums_[before - 1];
    }
  }
  return before;
}

void CountTree::clear() {
  sums_.clear();
  total_ = 0;
}

}  // namespace olrank
