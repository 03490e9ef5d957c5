#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/fair/dataset_groups.h"
#include "core/online/click_model.h"
#include "core/online/online_ranker.h"
#include "core/runtime/run_forecast.h"
#include "jobs/output_folder.h"
#include "jobs/study.h"
#include "sim/curve.h"
#include "sim/trial_settings.h"

namespace olrank {

/// A ranker of the experiment: how to create it, and the settings that determine its results.
struct ExperimentRanker {
  using Make = std::function<std::unique_ptr<OnlineRanker>(const RankerData& data, const TrialKeys& keys)>;

  std::string name;
  std::string settings;  // key = value lines, without the name
  Make make;
  bool needs_labels = false;  // learns from the true grades of the training part
  std::string advice =
      "more exploration";  // what to try if its lists are worse than random: "a larger alpha"
};

struct ExperimentUser {
  std::string name;
  std::function<std::unique_ptr<ClickModel>(int max_grade)> make;  // empty for recorded feedback
  std::function<std::string(int max_grade)> describe;
};

/// A run does one of these with existing results.
enum class Existing { kRefuse, kResume, kReplace };

/// A matrix of trials: rankers × users × folds × seeds.
struct ExperimentPlan {
  std::filesystem::path out;
  std::vector<ExperimentRanker> rankers;
  std::vector<ExperimentUser> users;
  std::vector<std::int64_t> folds;
  std::vector<std::int64_t> seeds;
  TrialSettings trial;
  std::optional<GroupSettings> groups;  // if documents have groups, as the folds' data says
  std::string protocol;                 // key = value lines of the settings that determine results
  std::string version;                  // of the program
  std::shared_ptr<FoldCache> data;
  /// How the data differs from that of the folder's earlier trials: "data.source is 'b', and was 'a'".
  std::function<std::string()> data_difference;
  std::int64_t checkpoint_every = 1000;
  int keep_checkpoints = 1;
  int jobs = 1;                 // trials at once, each in a slot of its own
  std::int64_t asked_jobs = 0;  // before GPUs lacked the memory for all; 0: as many
  int threads = 1;              // of all jobs together
  Shard shard;
  Existing existing = Existing::kRefuse;
  Trace* trace = nullptr;  // only in an experiment of one trial
};

struct ExperimentOutcome {
  std::int64_t finished = 0;          // in this call
  std::int64_t finished_before = 0;   // by an earlier run
  std::vector<std::string> failures;  // a sentence for each trial that a NumericError ended
  int signal = 0;                     // that stopped the run; 0 for none
};

/// The trials of the plan's shard, in an order that does not depend on the shard: trial i of the whole
/// matrix belongs to shard i mod count.
std::vector<TrialIdentity> trials_of(const ExperimentPlan& plan);

/// Throws InvalidArgument if the plan's folder has results that it may neither resume nor replace: with
/// --force these are trials that the manifest does not list, and trials behind symbolic links.
void refuse_existing(const ExperimentPlan& plan, const OutputFolder& folder);

/// Throws if the plan cannot run in its folder: unreadable data, a user without a table for the grades, or
/// an existing trial, finished or not, that differs from the plan's. Changes nothing, so earlier results
/// survive a refused plan.
void check_existing(const ExperimentPlan& plan);

/// With Existing::kReplace, removes the trials that the manifest lists; a shard only its own.
void remove_existing(const ExperimentPlan& plan, const OutputFolder& folder);

/// Calls the three functions above in order.
void settle_existing(const ExperimentPlan& plan, const OutputFolder& folder);

/// Runs all unfinished trials, `jobs` at once. SIGINT and SIGTERM stop it between rounds, with checkpoints.
/// A NumericError ends only its trial; any other error stops the experiment, with checkpoints of running
/// trials, and is rethrown. Results do not depend on jobs, threads or shards.
ExperimentOutcome run_experiment(const ExperimentPlan& plan);

/// The first rounds of a trial, played in memory for about `seconds`, say this about the whole.
struct TrialEstimate {
  double seconds = 0.0;  // of the whole trial
  double setup = 0.0;    // of these before the first round
  CostShape shape;       // of the others, by round
  std::int64_t parameters = 0;
  std::int64_t state_bytes = 0;
  std::int64_t rounds_tried = 0;
};
/// Played in this slot of the plan's jobs.
TrialEstimate estimate_trial(const ExperimentPlan& plan, const TrialIdentity& identity,
                             const FoldData& fold, double seconds, std::int64_t slot = 0);
/// The time of the whole plan, from the estimates of all its rankers by name.
RunForecast forecast_of(const ExperimentPlan& plan, const std::map<std::string, TrialEstimate>& estimates);

}  // namespace olrank
