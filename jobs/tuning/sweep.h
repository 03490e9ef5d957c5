#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/settings/enum_names.h"
#include "core/statistics/t_tests.h"
#include "jobs/settings/configuration.h"
#include "report/experiment_results.h"

namespace olrank {

/// The learning curve whose area decides; kBoth takes the mean of the two areas. kWorst: the 10th
/// percentile of the final gain over seeds, on the fold and with the user where it is smallest.
enum class SweepCriterion { kOffline, kOnline, kBoth, kWorst };

template <>
struct EnumNames<SweepCriterion> {
  static constexpr std::array values = names_in_order<SweepCriterion>("offline", "online", "both", "worst");
};

/// One combination of swept values for a ranker.
struct GridPoint {
  std::string ranker;       // the ranker's name in the configuration
  RankerSettings settings;  // settings.name is the point's name: "full+alpha=0.1+lambda=10"
  std::vector<std::pair<std::string, SettingValue>> values;  // of its axes, in order
};

/// Every combination for every swept ranker, the last axis varying fastest, or the draws of a random
/// search. Settings that are not swept keep their values. Rankers without an axis have no grid points.
std::vector<GridPoint> grid_of(const Configuration& configuration);

struct TrialMoments {
  std::int64_t trials = 0;
  MeanInterval offline_area;
  MeanInterval online_area;
  MeanInterval offline_ndcg;
  MeanInterval discounted_ndcg;
  MeanInterval both_areas;  // of each trial's mean of the two areas

  /// With kWorst it is that of both, for tables.
  const MeanInterval& area(SweepCriterion by) const;
};

/// The moments over all trials of one name.
TrialMoments trial_moments(const TrialList& trials, const std::string& name);

struct TriedPoint {
  std::size_t point = 0;  // of the grid
  TrialMoments moments;
  bool chosen = false;
  /// The final offline NDCG on a scale where a random order has 0 and the best mean of the ranker's grid 1:
  /// its 10th percentile over seeds, the smallest over folds and users. NaN without trials.
  double worst_gain = std::numeric_limits<double>::quiet_NaN();
};

/// The trials of each name: folds × users × seeds.
struct TrialMatrix {
  std::vector<std::int64_t> folds;
  std::vector<std::string> users;
  std::vector<std::int64_t> seeds;
};

/// The trials of the matrix; the folder may contain other, earlier ones.
TrialList trials_within(const TrialList& trials, const TrialMatrix& matrix);

/// Marks, for each ranker, the point with the largest criterion; the first in grid order on ties. Ignores
/// other trials. Points with a failed trial are not eligible; throws Error
/// if a ranker has no eligible point.
std::vector<TriedPoint> choose(const std::vector<GridPoint>& grid, const TrialList& trials,
                               const TrialMatrix& matrix, SweepCriterion by);

/// "alpha = 1 is the largest value tried": a winner's values at the edge of an axis of at least three
/// numbers.
std::vector<std::string> edge_notes(const GridPoint& winner, const std::vector<SweepAxis>& axes);

/// The value without TOML's quotes: 1, 0.1, adam.
std::string plain_text(const SettingValue& value);

}  // namespace olrank
