#pragma once

#include <cstdint>
#include <span>

namespace olrank {

/// Documents × features in row-major order; a view that owns nothing.
struct FeatureMatrix {
  const float* values = nullptr;
  std::int64_t docs = 0;
  std::int64_t features = 0;

  std::span<const float> doc(std::int64_t index) const {
    return {values + index * features, static_cast<std::size_t>(features)};
  }
};

}  // namespace olrank
