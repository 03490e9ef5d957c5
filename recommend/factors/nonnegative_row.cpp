#include "recommend/factors/nonnegative_row.h"

#include <algorithm>

namespace olrank {
namespace {

constexpr int kSweeps = 10;

}  // namespace

void NonnegativeRow::clear() {
  std::fill(gram_.begin(), gram_.end(), 0.0);
  std::fill(right_.begin(), right_.end(), 0.0);
}

void NonnegativeRow::add(std::span<const float> f, double target, double weight) {
  const std::size_t size = right_.size();
  for (std::size_t i = 0; i < f.size(); ++i) {
    const double scaled = weight * double{f[i]};
    right_[i] += scaled * target;
    for (std::size_t j = i; j < f.size(); ++j) gram_[i * size + j] += scaled * double{f[j]};
  }
}

void NonnegativeRow::solve(double penalty, std::span<float> x) const {
  const std::size_t size = right_.size();
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t i = 0; i < size; ++i) {
      const double curvature = gram_[i * size + i] + penalty;
      if (curvature <= 0.0) continue;
      double slope = right_[i] - penalty * double{x[i]};
      for (std::size_t j = 0; j < i; ++j) slope -= gram_[j * size + i] * double{x[j]};
      for (std::size_t j = i; j < size; ++j) slope -= gram_[i * size + j] * double{x[j]};
      x[i] = static_cast<float>(std::max(double{x[i]} + slope / curvature, 0.0));
    }
  }
}

}  // namespace olrank
