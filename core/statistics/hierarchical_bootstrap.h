#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/math/philox.h"

namespace olrank {

/// Values of folds, of their seeds, of their queries; a trial known by one figure has one query.
using NestedValues = std::vector<std::vector<std::vector<double>>>;

/// The mean of more redrawn queries than this is drawn at once, from the normal distribution that it is
/// close to.
inline constexpr std::size_t kDrawnOneByOne = 100;

struct BootstrapInterval {
  double low = 0.0;
  double high = 0.0;
};

/// The percentile interval of the mean (of fold means of seed means) when folds, then their seeds, then
/// their queries are drawn anew with replacement; NaN with fewer than two values at every level. A
/// description of spread: with few folds or seeds it covers less often than it says, and tests tell how
/// often.
BootstrapInterval hierarchical_bootstrap(const NestedValues& values, PhiloxKey key,
                                         std::uint32_t resamples = 1000, double confidence = 0.95);

}  // namespace olrank
