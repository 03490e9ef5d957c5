#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/configuration.h"
#include "apps/sweep.h"

namespace olrank {

/// What a ranker goes to the test part with.
struct Winner {
  GridPoint point;                   // without values for a ranker that has nothing to choose
  std::optional<ChoicePlace> place;  // where each fold and user has its own choice
  TrialMoments tuning;               // no trials for a ranker that has nothing to choose
  TrialMoments test;                 // filled in once it has played
  std::vector<std::string> notes;
};

/// The winners in the configuration's order of rankers, then of places.
std::vector<Winner> winners_of(const Configuration& configuration, const std::vector<GridPoint>& grid,
                               const std::vector<TriedPoint>& tried, const ChoiceRule& rule);

/// A ranker of the test part, under its plain name, and where it plays; everywhere without places.
struct TestRanker {
  RankerSettings settings;
  std::vector<ChoicePlace> places;
};

/// Places that chose the same point share a ranker.
std::vector<TestRanker> test_rankers(const std::vector<Winner>& winners);

/// A configuration that runs rankers on the test part into `out`.
Configuration test_configuration(const Configuration& configuration, const std::vector<TestRanker>& rankers,
                                 const std::filesystem::path& out);

/// A configuration with the choices, and the name of its file.
struct ChosenConfiguration {
  std::string file;
  Configuration configuration;
};
std::vector<ChosenConfiguration> chosen_configurations(const Configuration& configuration,
                                                       const std::vector<Winner>& winners,
                                                       const std::filesystem::path& out);

/// "config.toml", or "config-fold1-perfect.toml" where each place has its own.
std::string config_file(const std::optional<ChoicePlace>& place);

/// The trials that a tuning plays of each point, and a test of each winner.
TrialMatrix matrix_of(const Configuration& configuration);

}  // namespace olrank
