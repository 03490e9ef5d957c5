#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/text/text_table.h"
#include "jobs/experiment_run.h"
#include "jobs/settings/configuration.h"
#include "jobs/tuning/sweep.h"

namespace olrank {

/// The grid's size, trials, memory and estimated time.
std::string tuning_dry_run(const Configuration& configuration, SweepCriterion by,
                           const ExperimentRequest& request, const OutputForm& form);

/// How far a tuning goes on its own. Where others play trials in its folders, it only makes them ready:
/// that of the grid, and from the finished grid that of the winners' test.
enum class TuningStep { kWhole, kMakeGrid, kChoose };

/// Runs the grid of the configuration's [sweep] on the validation set, chooses, and runs the winners on the
/// test set, which it prints. Returns the exit code.
int run_tuning(const Configuration& configuration, SweepCriterion by, const ExperimentRequest& request,
               const std::string& command, const OutputForm& form, const TextSink& print,
               TuningStep step = TuningStep::kWhole);

/// A ranker's choice, to be run on the test set.
struct Winner {
  GridPoint point;          // without values for a ranker that is not swept
  TrialMoments tuning;      // no trials for a ranker that is not swept
  double worst_gain = 0.0;  // in the tuning
  TrialMoments test;        // filled in after the test
  std::vector<std::string> notes;
};

/// The winners in the configuration's order of rankers.
std::vector<Winner> winners_of(const Configuration& configuration, const std::vector<GridPoint>& grid,
                               const std::vector<TriedPoint>& tried);

/// A configuration that runs the winners under their rankers' names on the test set and writes to `out`.
Configuration test_configuration(const Configuration& configuration, const std::vector<Winner>& winners,
                                 const std::filesystem::path& out);

/// The trials of each grid point in the tuning and of each winner in the test.
TrialMatrix matrix_of(const Configuration& configuration);

/// tuning.csv: one line per grid point.
std::string tuning_csv(const Configuration& configuration, const std::vector<GridPoint>& grid,
                       const std::vector<TriedPoint>& tried);

/// winners.csv: the chosen values with their means on the test set.
std::string winners_csv(const Configuration& configuration, const std::vector<Winner>& winners);

/// The winners as a text table with their results on the validation set, followed by notes. At most
/// `columns` wide unless 0: names are shortened, then columns are dropped.
std::string winners_text(const Configuration& configuration, const std::vector<Winner>& winners,
                         SweepCriterion by, std::int64_t columns = 0);
std::string winners_json(const Configuration& configuration, const std::vector<Winner>& winners,
                         SweepCriterion by);

}  // namespace olrank
