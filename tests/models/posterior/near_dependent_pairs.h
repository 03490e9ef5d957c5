#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "core/online/online_ranker.h"
#include "core/ops/tangent_factors.h"

namespace olrank {

/// Documents whose gradients, of the output layer alone, are h_0, h_0 + δ h_1, h_1 + δ h_2 and h_2 + δ h_3
/// for rows h of a Hadamard matrix, and one whose gradient is 0. Each but the first lies in the span of
/// those before it up to δ, which is more than the least share of a DictionaryPolicy. So all enter a
/// dictionary, whose kernel has an eigenvalue of δ⁶: less than a double's rounding. A policy that is
/// stricter leaves out the second one, without which the others are nearly orthogonal.
struct NearDependentPairs {
  static constexpr std::int64_t kPairs = 4;
  static constexpr std::int64_t kDocs = kPairs + 1;
  static constexpr std::int64_t kChains = 8;  // with directions of their own
  static constexpr std::int64_t kWidth = 64;

  static NetworkShape shape() { return ntk_shape(12, kWidth, 2); }

  /// `chain` from 0 to kChains.
  explicit NearDependentPairs(std::int64_t chain) : factors(kDocs * shape().factors()) {
    constexpr float kDelta = 1.0F / 2048.0F;
    const NetworkLayer output = shape().layer(1);
    for (std::int64_t doc = 0; doc < kPairs; ++doc) {
      float* row = factors.data() + doc * shape().factors();
      row[output.delta] = 1.0F;
      const std::int64_t last = kPairs * chain + doc;
      for (std::int64_t k = 0; k < kWidth; ++k)
        row[output.input + k] =
            doc == 0 ? hadamard(last, k) : hadamard(last - 1, k) + kDelta * hadamard(last, k);
      pairs.push_back({static_cast<std::int32_t>(doc), static_cast<std::int32_t>(kPairs)});
    }
  }

  std::vector<float> factors;
  std::vector<PreferencePair> pairs;

 private:
  static float hadamard(std::int64_t row, std::int64_t column) {
    return std::popcount(static_cast<std::uint64_t>(row & column)) % 2 == 0 ? 1.0F : -1.0F;
  }
};

}  // namespace olrank
