#include "recommend/factors/pair_loss_block.h"

#include <algorithm>
#include <cmath>

#include "core/math/pair_loss.h"
#include "core/runtime/vector_clones.h"

namespace olrank {
namespace {

constexpr std::size_t kTermsOfProduct = 64;

/// Slopes, and per pair 1 + e^{−|z|}, whose logarithm is what −ln σ(z) exceeds max(−z, 0) by.
OLRANK_VECTOR_CLONES
void slope_loop(const float* differences, double weight, float* slopes, double* tails, std::size_t count) {
  for (std::size_t s = 0; s < count; ++s) {
    const double z = differences[s];
    const double e = portable_exp_nonpositive(-std::fabs(z));
    const double against = (z < 0.0 ? 1.0 : e) / (1.0 + e);  // σ(−z)
    slopes[s] = static_cast<float>(-weight * against);
    tails[s] = 1.0 + e;
  }
}

}  // namespace

double pair_slopes(std::span<const float> differences, double weight, std::span<float> slopes) {
  double tails[kTermsOfProduct];
  double loss = 0.0;
  for (std::size_t begin = 0; begin < differences.size(); begin += kTermsOfProduct) {
    const std::size_t count = std::min(kTermsOfProduct, differences.size() - begin);
    slope_loop(&differences[begin], weight, &slopes[begin], tails, count);
    double product = 1.0;  // at most 2^64: one logarithm instead of 64
    for (std::size_t s = 0; s < count; ++s) {
      product *= tails[s];
      loss += std::max(-static_cast<double>(differences[begin + s]), 0.0);
    }
    loss += std::log(product);
  }
  return loss;
}

}  // namespace olrank
