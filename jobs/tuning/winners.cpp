#include "jobs/tuning/winners.h"

#include <fmt/format.h>

#include <algorithm>

namespace olrank {
namespace {

std::vector<std::optional<FoldAndUser>> scopes_of(const Configuration& configuration, ChoicePer per) {
  if (per == ChoicePer::kRanker) return {std::nullopt};
  return folds_and_users(matrix_of(configuration));
}

}  // namespace

std::vector<Winner> winners_of(const Configuration& configuration, const std::vector<GridPoint>& grid,
                               const std::vector<TriedPoint>& tried, const ChoiceRule& rule) {
  std::vector<Winner> winners;
  for (const RankerSettings& ranker : configuration.rankers) {
    const std::vector<SweepAxis> axes = axes_of(configuration.sweep, ranker);
    if (axes.empty()) {
      for (const auto& place : scopes_of(configuration, rule.per))
        winners.push_back({{ranker.name, ranker, {}}, place, {}, 0.0, {}, {}});
      continue;
    }
    for (const TriedPoint& one : tried) {
      const GridPoint& point = grid[one.point];
      if (!one.chosen || point.ranker != ranker.name) continue;
      winners.push_back({point, one.place, one.moments, one.worst_gain, {}, edge_notes(point, axes)});
    }
  }
  return winners;
}

std::vector<TestRanker> test_rankers(const std::vector<Winner>& winners) {
  std::vector<TestRanker> rankers;
  std::vector<std::string> points;  // the grid point of each ranker
  for (const Winner& winner : winners) {
    const std::string& name = winner.point.settings.name;
    const auto known = std::find(points.begin(), points.end(), name);
    const auto index = static_cast<std::size_t>(known - points.begin());
    if (known == points.end()) {
      points.push_back(name);
      rankers.push_back({winner.point.settings, {}});
      rankers.back().settings.name = winner.point.ranker;
    }
    if (winner.place) rankers[index].places.push_back(*winner.place);
  }
  return rankers;
}

Configuration test_configuration(const Configuration& configuration, const std::vector<TestRanker>& rankers,
                                 const std::filesystem::path& out) {
  Configuration test = configuration;
  test.sweep.clear();
  test.search = {};
  test.data.evaluate = EvaluationPart::kTest;
  test.run.out = out.string();
  test.rankers.clear();
  for (const TestRanker& ranker : rankers) test.rankers.push_back(ranker.settings);
  return test;
}

std::vector<ChosenConfiguration> chosen_configurations(const Configuration& configuration,
                                                       const std::vector<Winner>& winners,
                                                       const std::filesystem::path& out) {
  std::vector<ChosenConfiguration> chosen;
  std::vector<std::optional<FoldAndUser>> places;
  for (const Winner& winner : winners) {
    if (std::find(places.begin(), places.end(), winner.place) == places.end())
      places.push_back(winner.place);
  }
  for (const auto& place : places) {
    std::vector<Winner> of_place;
    std::copy_if(winners.begin(), winners.end(), std::back_inserter(of_place),
                 [&](const Winner& winner) { return winner.place == place; });
    Configuration one = test_configuration(configuration, test_rankers(of_place), out);
    if (place) {
      one.data.folds = {place->fold};
      one.clicks.models = {place->user};
    }
    chosen.push_back({config_file(place), std::move(one)});
  }
  return chosen;
}

std::string config_file(const std::optional<FoldAndUser>& place) {
  return place ? fmt::format("config-fold{}-{}.toml", place->fold, place->user) : "config.toml";
}

TrialMatrix matrix_of(const Configuration& configuration) {
  return {configuration.data.folds, configuration.clicks.models, configuration.protocol.seeds};
}

}  // namespace olrank
