#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/math/philox.h"

namespace olrank {

/// Values by fold, seed and query; a trial with a single figure has one query.
using NestedValues = std::vector<std::vector<std::vector<double>>>;

/// With more queries than this, their resampled mean is drawn directly from its normal
/// approximation.
inline constexpr std::size_t kDrawnOneByOne = 100;

struct BootstrapInterval {
  double low = 0.0;
  double high = 0.0;
};

/// The percentile interval of the mean (of fold means of seed means) when folds, then their seeds, then
/// their queries are resampled with replacement; NaN with fewer than two values at every level. It
/// describes spread: with few folds or seeds it covers less often than its nominal level, as measured in
/// its tests.
BootstrapInterval hierarchical_bootstrap(const NestedValues& values, PhiloxKey key,
                                         std::uint32_t resamples = 1000, double confidence = 0.95);

}  // namespace olrank
