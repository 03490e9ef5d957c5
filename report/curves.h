#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "report/comparison.h"

namespace olrank {

/// Rounds, ascending, and values.
using Curve = std::vector<std::pair<std::int64_t, double>>;

/// The curves of the independent units behind a mean curve: of each seed, or with several folds the mean of
/// each fold.
std::vector<Curve> unit_curves(const std::vector<const TrialResults*>& trials, Measure measure);

/// What two rankers differ by over the rounds, on the folds and seeds that both played.
struct DifferenceCurves {
  MeanCurve mean;
  std::vector<Curve> units;
};

/// a − b.
DifferenceCurves difference_curves(const std::vector<const TrialResults*>& a,
                                   const std::vector<const TrialResults*>& b, Measure measure);

/// The most seeds or folds behind a point of the curve.
std::size_t most_units(const MeanCurve& curve);

}  // namespace olrank
