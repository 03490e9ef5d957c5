#include "jobs/tuning/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "core/random/rng_stream.h"
#include "core/statistics/intervals.h"
#include "core/throw_error.h"
#include "jobs/settings/run_settings.h"
#include "models/ranker_factory.h"

namespace olrank {

namespace {

/// The values of one point, one an axis.
using SweepValues = std::vector<std::pair<std::string, SettingValue>>;

constexpr std::size_t kMostPoints = 100'000;
constexpr std::size_t kLongestName = 100;  // of a ranker

/// Every combination of the axes' values; the last axis varies fastest.
std::vector<SweepValues> all_values(const std::vector<SweepAxis>& axes, const std::string& ranker) {
  std::size_t points = 1;
  for (const SweepAxis& axis : axes) {
    if (axis.range) {
      throw_error<InvalidArgument>(
          "The sweep of ranker '{}' has a range for '{}': give the number of points to draw, such as "
          "--draws 20, or list its values.",
          ranker, axis.key);
    }
    points *= axis.values.size();
    if (points > kMostPoints) {
      throw_error<InvalidArgument>(
          "The sweep of ranker '{}' has more than {} points; try fewer values, or draw some with --draws.",
          ranker, kMostPoints);
    }
  }
  std::vector<SweepValues> all(points, SweepValues(axes.size()));
  for (std::size_t point = 0; point < points; ++point) {
    std::size_t number = point;
    for (std::size_t i = axes.size(); i-- > 0;) {
      const std::vector<SettingValue>& values = axes[i].values;
      all[point][i] = {axes[i].key, values[number % values.size()]};
      number /= values.size();
    }
  }
  return all;
}

std::string folder_text(const SettingValue& value) {
  std::string text = plain_text(value);
  for (char& c : text) {
    const bool kept = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                      std::string_view("-_.+=").find(c) != std::string_view::npos;
    if (!kept) c = '_';
  }
  return text;
}

/// A name that is not in `taken`, and is added to it.
std::string unique_name(const std::string& wanted, std::set<std::string>& taken) {
  std::string name = wanted.substr(0, kLongestName);
  for (std::size_t number = 2; name.size() < wanted.size() || taken.count(name) > 0; ++number) {
    const std::string end = fmt::format("+{}", number);
    name = wanted.substr(0, kLongestName - end.size()) + end;
    if (taken.count(name) == 0) break;
  }
  taken.insert(name);
  return name;
}

GridPoint point_of(const RankerSettings& ranker, SweepValues values, std::set<std::string>& taken) {
  GridPoint point{ranker.name, ranker, std::move(values)};
  std::string name = ranker.name;
  for (const auto& [key, value] : point.values) {
    assign_setting(RankerSettings::schema(), &point.settings, key, value, "[sweep]");
    name += fmt::format("+{}={}", key, folder_text(value));
  }
  point.settings.name = unique_name(name, taken);
  for (const auto& [key, value] : point.values) {
    if (const auto reason = why_ignored(point.settings, key)) {
      throw_error<InvalidArgument>(
          "Grid point '{}': '{}' does not apply: {}. Or sweep it in a ranker of its own.",
          point.settings.name, key, *reason);
    }
  }
  return point;
}

template <class T>
bool contains(const std::vector<T>& all, const T& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// The trials of a ranker's grid points on one fold with one user.
class Place {
 public:
  void add(const TrialResults& trial) {
    ends_[trial.identity.ranker].push_back(trial.last[Measure::kOfflineNdcg]);
    random_ = trial.last[Measure::kRandomOfflineNdcg];
  }

  /// The 10th percentile of a point's gain.
  double low_gain(const std::string& point) const {
    const auto found = ends_.find(point);
    if (found == ends_.end()) return std::nan("");
    std::vector<double> ends = found->second;
    if (std::any_of(ends.begin(), ends.end(), [](double end) { return std::isnan(end); }))
      return std::nan("");
    std::sort(ends.begin(), ends.end());
    const double gain = sorted_quantile(ends, 0.1) - random_;
    // Where no point beats a random order there is no scale.
    return best() > random_ ? gain / (best() - random_) : gain;
  }

 private:
  double best() const {
    double best = -std::numeric_limits<double>::infinity();
    for (const auto& [point, ends] : ends_) best = std::max(best, mean_of(ends));
    return best;
  }

  std::map<std::string, std::vector<double>> ends_;  // final offline NDCG by point
  double random_ = std::nan("");                     // of the part that all are evaluated on
};

/// worst_gain of each grid point of one ranker.
void find_worst_gains(const std::vector<GridPoint>& grid, const TrialList& trials,
                      std::vector<TriedPoint*>& candidates) {
  std::map<std::pair<std::int64_t, std::string>, Place> places;
  for (const TrialResults* trial : trials) places[{trial->identity.fold, trial->identity.user}].add(*trial);
  for (TriedPoint* tried : candidates) {
    for (const auto& [name, place] : places) {
      const double gain = place.low_gain(grid[tried->point].settings.name);
      if (!(tried->worst_gain <= gain)) tried->worst_gain = gain;
    }
  }
}

double criterion_of(const TriedPoint& tried, SweepCriterion by) {
  if (by == SweepCriterion::kWorst) return tried.worst_gain;
  return tried.moments.area(by).mean;
}

/// Marks the best point of one ranker.
void mark_best(std::vector<TriedPoint*>& candidates, std::size_t trials, SweepCriterion by,
               const std::string& ranker) {
  TriedPoint* best = nullptr;
  for (TriedPoint* tried : candidates) {
    const bool whole = tried->moments.trials == static_cast<std::int64_t>(trials);
    if (!whole || !std::isfinite(criterion_of(*tried, by))) continue;
    if (best == nullptr || criterion_of(*tried, by) > criterion_of(*best, by)) best = tried;
  }
  if (best == nullptr) {
    throw_error<Error>("No grid point of ranker '{}' finished all {} trials, so none can be chosen.",
                       ranker, trials);
  }
  best->chosen = true;
}

std::optional<double> number_of(const SettingValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

/// Returns the number at a share of the range, from 0 to 1.
double number_at(const SweepRange& range, double share) {
  if (!range.is_log) return range.from + share * (range.to - range.from);
  return std::exp(std::log(range.from) + share * (std::log(range.to) - std::log(range.from)));
}

SettingValue range_value(const SweepAxis& axis, double share) {
  const SweepRange& range = *axis.range;
  if (RankerSettings::schema().find(axis.key)->kind == SettingKind::kInteger) {
    // Each integer has the part of the range that rounds to it.
    const SweepRange wider{range.from - 0.5, range.to + 0.5, range.is_log};
    const double drawn = std::round(number_at(wider, share));
    return static_cast<std::int64_t>(std::clamp(drawn, range.from, range.to));
  }
  // Short numbers, for the names of folders and for people.
  const double rounded = std::strtod(fmt::format("{:.3g}", number_at(range, share)).c_str(), nullptr);
  return std::clamp(rounded, range.from, range.to);
}

/// Values drawn from the axes, `search.draws` times; repetitions are left out. The value of an axis in draw
/// i depends on the seed, its key and i alone: other axes, other rankers and more draws change nothing.
/// Numbers of a range have three significant digits. Parameters of an
/// own ranker come drawn from Python, one for each draw.
std::vector<SweepValues> draw_values(const std::vector<SweepAxis>& axes, const SearchSettings& search) {
  std::vector<SweepValues> drawn;
  for (std::int64_t draw = 0; draw < search.draws; ++draw) {
    SweepValues values;
    for (const SweepAxis& axis : axes) {
      RngStream coins(make_key({.seed = static_cast<std::uint64_t>(search.seed),
                                .purpose = Purpose::kSearch,
                                .click_model = name_hash(axis.key.data(), axis.key.size())}),
                      static_cast<std::uint32_t>(draw));
      if (axis.range) {
        values.emplace_back(axis.key, range_value(axis, coins.uniform()));
      } else if (axis.key == "own" && std::ssize(axis.values) == search.draws) {
        values.emplace_back(axis.key, axis.values[draw]);
      } else {
        values.emplace_back(axis.key,
                            axis.values[coins.index(static_cast<std::uint32_t>(axis.values.size()))]);
      }
    }
    if (std::find(drawn.begin(), drawn.end(), values) == drawn.end()) drawn.push_back(std::move(values));
  }
  return drawn;
}

}  // namespace

std::vector<GridPoint> grid_of(const Configuration& configuration) {
  std::vector<GridPoint> grid;
  std::set<std::string> taken;
  for (const RankerSettings& ranker : configuration.rankers) {
    const std::vector<SweepAxis> axes = axes_of(configuration.sweep, ranker);
    if (axes.empty()) continue;
    const std::vector<SweepValues> points = configuration.search.is_random()
                                                ? draw_values(axes, configuration.search)
                                                : all_values(axes, ranker.name);
    for (const SweepValues& values : points) grid.push_back(point_of(ranker, values, taken));
  }
  return grid;
}

TrialMoments trial_moments(const TrialList& trials, const std::string& name) {
  TrialList own;
  for (const TrialResults* trial : trials) {
    if (trial->identity.ranker == name) own.push_back(trial);
  }
  const auto moments = [&own](auto figure) {
    std::vector<double> values;
    values.reserve(own.size());
    for (const TrialResults* trial : own) values.push_back(figure(*trial));
    return mean_interval({values});
  };
  const auto last = [&moments](Measure measure) {
    return moments([measure](const TrialResults& trial) { return trial.last[measure]; });
  };
  return {
      std::ssize(own),
      moments([](const TrialResults& trial) { return trial.offline_area; }),
      moments([](const TrialResults& trial) { return trial.online_area; }),
      last(Measure::kOfflineNdcg),
      last(Measure::kDiscountedNdcg),
      moments([](const TrialResults& trial) { return 0.5 * (trial.offline_area + trial.online_area); })};
}

const MeanInterval& TrialMoments::area(SweepCriterion by) const {
  return by == SweepCriterion::kOffline  ? offline_area
         : by == SweepCriterion::kOnline ? online_area
                                         : both_areas;
}

TrialList trials_within(const TrialList& trials, const TrialMatrix& matrix) {
  TrialList own;
  std::copy_if(trials.begin(), trials.end(), std::back_inserter(own), [&](const TrialResults* trial) {
    const TrialIdentity& identity = trial->identity;
    return contains(matrix.folds, identity.fold) && contains(matrix.users, identity.user) &&
           contains(matrix.seeds, identity.seed);
  });
  return own;
}

std::vector<TriedPoint> choose(const std::vector<GridPoint>& grid, const TrialList& trials,
                               const TrialMatrix& matrix, SweepCriterion by) {
  std::map<std::string, TrialList> counted;
  for (const TrialResults* trial : trials_within(trials, matrix))
    counted[trial->identity.ranker].push_back(trial);
  const std::size_t expected = matrix.seeds.size() * matrix.folds.size() * matrix.users.size();
  std::vector<TriedPoint> tried;
  tried.reserve(grid.size());  // the candidates point into it
  for (std::size_t begin = 0; begin < grid.size();) {
    std::size_t end = begin;
    while (end < grid.size() && grid[end].ranker == grid[begin].ranker) ++end;
    TrialList of_ranker;
    for (std::size_t point = begin; point < end; ++point) {
      const TrialList& own = counted[grid[point].settings.name];
      of_ranker.insert(of_ranker.end(), own.begin(), own.end());
    }
    std::vector<TriedPoint*> candidates;
    for (std::size_t point = begin; point < end; ++point) {
      const std::string& name = grid[point].settings.name;
      tried.push_back({point, trial_moments(counted[name], name)});
      candidates.push_back(&tried.back());
    }
    find_worst_gains(grid, of_ranker, candidates);
    mark_best(candidates, expected, by, grid[begin].ranker);
    begin = end;
  }
  return tried;
}

std::vector<std::string> edge_notes(const GridPoint& winner, const std::vector<SweepAxis>& axes) {
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::vector<SettingValue>& values = axes[i].values;
    const SettingValue& chosen = winner.values[i].second;
    if (values.size() < 3 || !number_of(chosen)) continue;
    const auto less = [](const SettingValue& a, const SettingValue& b) {
      return number_of(a) < number_of(b);
    };
    const auto [least, most] = std::minmax_element(values.begin(), values.end(), less);
    const char* end = chosen == *least ? "smallest" : chosen == *most ? "largest" : nullptr;
    if (end == nullptr) continue;
    notes.push_back(fmt::format("{} = {} is the {} value tried", axes[i].key, plain_text(chosen), end));
  }
  return notes;
}

std::string plain_text(const SettingValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  return to_toml(value);
}

}  // namespace olrank
