#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/online/click_model.h"
#include "core/online/labelled_queries.h"
#include "core/online/online_ranker.h"
#include "core/online/trial_keys.h"
#include "sim/fold_cache.h"
#include "sim/ranker_data.h"
#include "sim/trace.h"
#include "sim/trial_folder.h"
#include "sim/trial_identity.h"
#include "sim/trial_settings.h"

namespace olrank {

/// A ranker of the experiment: how to make it anew for each trial, and what decides its results.
struct ExperimentRanker {
  using Make = std::function<std::unique_ptr<OnlineRanker>(const RankerData& data, const TrialKeys& keys)>;

  std::string name;
  std::string settings;  // key = value lines, without the name
  Make make;
  /// Whether it meets this fold and user; empty meets all. Rankers may share a name, and so a folder, as
  /// long as no two of them meet the same fold and user.
  std::function<bool(std::int64_t fold, const std::string& user)> plays;
  bool needs_labels = false;  // it learns from the true grades of the training part
};

struct ExperimentUser {
  std::string name;
  std::function<std::unique_ptr<ClickModel>(int max_grade)> make;  // empty for recorded feedback
  std::function<std::string(int max_grade)> describe;
};

/// One of several parts of an experiment's trials.
struct Shard {
  std::int64_t index = 0;
  std::int64_t count = 1;
};

/// What to do about results that are there already.
enum class Existing { kRefuse, kResume, kReplace };

/// A matrix of trials: rankers × users × folds × seeds.
struct ExperimentPlan {
  std::filesystem::path out;
  std::vector<ExperimentRanker> rankers;
  std::vector<ExperimentUser> users;
  std::vector<std::int64_t> folds;
  std::vector<std::int64_t> seeds;
  TrialSettings trial;
  std::string protocol;  // key = value lines of what decides results
  std::string version;   // of the program
  std::shared_ptr<FoldCache> data;
  std::int64_t checkpoint_every = 1000;
  int jobs = 1;
  int threads = 1;  // of all jobs together
  Shard shard;
  Existing existing = Existing::kRefuse;
  Trace* trace = nullptr;  // of an experiment of exactly one trial
};

struct ExperimentOutcome {
  std::int64_t finished = 0;          // in this call
  std::int64_t finished_before = 0;   // by an earlier run
  std::vector<std::string> failures;  // a sentence for each trial that a NumericError ended
  int signal = 0;                     // that stopped the run; 0 when none did
};

/// The trials of the plan's shard, in an order that does not depend on the shard: trial i of the whole
/// matrix belongs to shard i mod count.
std::vector<TrialIdentity> trials_of(const ExperimentPlan& plan);

/// Throws InvalidArgument when the plan's folder has results that nobody asked to resume or to replace.
void refuse_existing(const ExperimentPlan& plan);

/// Throws when the plan could not be played over what is in its folder: data that cannot be read, a user
/// without a table for their grades, a trial there, finished or not, that differs from the plan's. Touches
/// nothing, so whoever asks before writing leaves earlier results as they were.
void check_existing(const ExperimentPlan& plan);

/// With Existing::kReplace, removes the results that are in the plan's folder.
void remove_existing(const ExperimentPlan& plan);

/// The three in this order.
void settle_existing(const ExperimentPlan& plan);

/// Runs what is not finished, `jobs` trials at once. SIGINT and SIGTERM end it between rounds, with
/// checkpoints. A NumericError ends its own trial; any other error stops the experiment with checkpoints of
/// what ran, and comes out. Results do not depend on jobs, threads or shards.
ExperimentOutcome run_experiment(const ExperimentPlan& plan);

/// Plays rounds of one trial in memory for about `seconds` and returns the seconds that the whole trial
/// would take at this pace, with its parameters and the bytes of its state.
struct TrialEstimate {
  double seconds = 0.0;
  std::int64_t parameters = 0;
  std::int64_t state_bytes = 0;
  std::int64_t rounds_tried = 0;
};
TrialEstimate estimate_trial(const ExperimentPlan& plan, const TrialIdentity& identity,
                             const FoldData& fold, double seconds);

}  // namespace olrank
