#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/math/pair_loss.h"
#include "core/ops/folded_pair_gradient.h"
#include "core/runtime/vector_clones.h"

namespace olrank {
namespace {

constexpr std::int64_t kRowsPerChunk = 32;    // z and residuals fit on the stack
constexpr std::int64_t kRowsPerBlock = 2048;  // the unit of parallel work

// Eight numbers side by side; compilers split them over the registers of the target.
constexpr std::int64_t kLanes = FoldedPairs::kPadding;
using Doubles = double __attribute__((vector_size(kLanes * sizeof(double))));

OLRANK_ALWAYS_INLINE void load(const double* from, Doubles& lanes) {
  std::memcpy(&lanes, from, sizeof lanes);
}

/// row·θ in 2 · kLanes running sums, combined in a fixed order.
OLRANK_ALWAYS_INLINE double dot(const double* row, const double* theta, std::int64_t stride) {
  Doubles even = {};
  Doubles odd = {};
  Doubles x;
  Doubles t;
  for (std::int64_t k = 0; k < stride; k += 2 * kLanes) {
    load(row + k, x);
    load(theta + k, t);
    even += x * t;
    if (k + kLanes == stride) break;
    load(row + k + kLanes, x);
    load(theta + k + kLanes, t);
    odd += x * t;
  }
  even += odd;
  return ((even[0] + even[4]) + (even[2] + even[6])) + ((even[1] + even[5]) + (even[3] + even[7]));
}

/// gradient += residual · row.
OLRANK_ALWAYS_INLINE void add_scaled(double residual, const double* row, double* gradient,
                                     std::int64_t stride) {
  Doubles x;
  Doubles g;
  for (std::int64_t k = 0; k < stride; k += kLanes) {
    load(row + k, x);
    load(gradient + k, g);
    g += residual * x;
    std::memcpy(gradient + k, &g, sizeof g);
  }
}

/// Rows [begin, end): adds to `gradient`, writes `curvature` unless it is null.
OLRANK_VECTOR_CLONES
void gradient_of_block(const FoldedPairs& pairs, std::int64_t begin, std::int64_t end, const double* theta,
                       double* gradient, double* curvature) {
  double z[kRowsPerChunk];
  double residual[kRowsPerChunk];
  for (std::int64_t chunk = begin; chunk < end; chunk += kRowsPerChunk) {
    const std::int64_t rows = std::min(kRowsPerChunk, end - chunk);
    for (std::int64_t i = 0; i < rows; ++i) {
      z[i] = dot(pairs.rows + (chunk + i) * pairs.stride, theta, pairs.stride);
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      const double p = sigmoid(z[i]);
      residual[i] = pair_term_slope(p, pairs.count[chunk + i], pairs.first_wins[chunk + i]);
      z[i] = p;
    }
    if (curvature != nullptr) {
      for (std::int64_t i = 0; i < rows; ++i) {
        curvature[chunk + i] = pair_term_curvature(z[i], pairs.count[chunk + i]);
      }
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      add_scaled(residual[i], pairs.rows + (chunk + i) * pairs.stride, gradient, pairs.stride);
    }
  }
}

}  // namespace

void folded_pair_gradient(ExecutionContext& context, const FoldedPairs& pairs,
                          std::span<const double> theta, std::span<double> gradient,
                          std::span<double> curvature) {
  assert(std::ssize(theta) == pairs.stride && gradient.size() == theta.size());
  assert(curvature.empty() || std::ssize(curvature) == pairs.pairs);
  double* curvature_of = curvature.empty() ? nullptr : curvature.data();
  std::fill(gradient.begin(), gradient.end(), 0.0);
  const std::int64_t blocks = (pairs.pairs + kRowsPerBlock - 1) / kRowsPerBlock;
  if (blocks <= 1) {
    gradient_of_block(pairs, 0, pairs.pairs, theta.data(), gradient.data(), curvature_of);
    return;
  }
  const Scratch::Frame frame(context.scratch());
  const auto partial = context.scratch().take<double>(blocks * pairs.stride);
  std::fill(partial.begin(), partial.end(), 0.0);
  context.for_blocks(pairs.pairs, kRowsPerBlock, [&](std::int64_t begin, std::int64_t end, int) {
    double* sums = partial.data() + begin / kRowsPerBlock * pairs.stride;
    gradient_of_block(pairs, begin, end, theta.data(), sums, curvature_of);
  });
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (std::int64_t k = 0; k < pairs.stride; ++k) {
      gradient[k] += partial[block * pairs.stride + k];
    }
  }
}

double folded_pair_loss(const FoldedPairs& pairs, std::span<const double> theta) {
  double loss = 0.0;
  for (std::int64_t s = 0; s < pairs.pairs; ++s) {
    const double z = dot(pairs.rows + s * pairs.stride, theta.data(), pairs.stride);
    loss += pair_term_loss(z, pairs.count[s], pairs.first_wins[s]);
  }
  return loss;
}

}  // namespace olrank
