#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/configuration.h"
#include "core/settings/enum_names.h"
#include "sim/moments.h"
#include "sim/summary_table.h"

namespace olrank {

/// The curve by whose area a choice is made; kBoth is the mean of the two areas.
enum class SweepFigure { kOffline, kOnline, kBoth };
/// What has a choice of its own.
enum class ChoicePer { kRanker, kFoldAndUser };

template <>
struct EnumNames<SweepFigure> {
  static constexpr std::array values = {std::pair{SweepFigure::kOffline, std::string_view("offline")},
                                        std::pair{SweepFigure::kOnline, std::string_view("online")},
                                        std::pair{SweepFigure::kBoth, std::string_view("both")}};
};
template <>
struct EnumNames<ChoicePer> {
  static constexpr std::array values = {
      std::pair{ChoicePer::kRanker, std::string_view("ranker")},
      std::pair{ChoicePer::kFoldAndUser, std::string_view("fold-and-user")}};
};

struct ChoiceRule {
  SweepFigure by = SweepFigure::kOffline;
  ChoicePer per = ChoicePer::kRanker;
};

/// One combination of the values that a ranker is tried with.
struct GridPoint {
  std::string ranker;       // whose; the name that the configuration gives it
  RankerSettings settings;  // settings.name is the point's own: "full+alpha=0.1+lambda=10"
  std::vector<std::pair<std::string, SettingValue>> values;  // of its axes, in their order
};

/// Every combination for every swept ranker, the last axis moving fastest. Everything that is not swept
/// stays as the configuration resolved it. Rankers without an axis have nothing to choose and no point.
std::vector<GridPoint> grid_of(const Configuration& configuration);

/// A part of the trials that has a choice of its own.
struct ChoicePlace {
  std::int64_t fold = 0;
  std::string user;

  friend bool operator==(const ChoicePlace&, const ChoicePlace&) = default;
};

/// What trials amount to.
struct TrialMoments {
  std::int64_t trials = 0;
  Moments offline_area;
  Moments online_area;
  Moments offline_ndcg;
  Moments discounted_ndcg;
  Moments both_areas;  // of their mean in each trial

  const Moments& area(SweepFigure by) const;
};

/// The means over the trials of one name, and where a place is given, of that fold and user alone.
TrialMoments trial_moments(const std::vector<SummaryRow>& rows, const std::string& name,
                           const std::optional<ChoicePlace>& place);

/// One line of the choice: a point of the grid and what it came to.
struct TriedPoint {
  std::size_t point = 0;             // of the grid
  std::optional<ChoicePlace> place;  // where each fold and user has its own choice
  TrialMoments figures;
  bool chosen = false;
};

/// The trials of each name: folds × users × seeds.
struct TrialMatrix {
  std::vector<std::int64_t> folds;
  std::vector<std::string> users;
  std::vector<std::int64_t> seeds;
};

/// Every fold and user.
std::vector<std::optional<ChoicePlace>> choice_places(const TrialMatrix& trials);

/// The rows of these trials; a folder may hold others from before.
std::vector<SummaryRow> rows_of(const std::vector<SummaryRow>& rows, const TrialMatrix& trials);

/// Marks for each ranker (and place) the point with the largest mean area, the first of equals in the order
/// of the grid. Rows of other trials are left aside. A point that lacks a trial, because its numbers broke
/// down, is not chosen; throws Error when a ranker has no other.
std::vector<TriedPoint> choose(const std::vector<GridPoint>& grid, const std::vector<SummaryRow>& rows,
                               const TrialMatrix& trials, const ChoiceRule& rule);

/// "alpha = 1 is the largest value tried": the numbers of a winner that lie at an end of at least three.
std::vector<std::string> edge_notes(const GridPoint& winner, const std::vector<SweepAxis>& axes);

/// The value as a table or a folder's name shows it: 1, 0.1, adam.
std::string plain_text(const SettingValue& value);

}  // namespace olrank
