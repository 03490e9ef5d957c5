#include "jobs/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <utility>

#include "core/io/folder.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
#include "core/throw_error.h"
#include "jobs/run_progress.h"
#include "jobs/trial_job.h"
#include "sim/trial.h"

namespace olrank {
namespace {

const ExperimentRanker& ranker_of(const ExperimentPlan& plan, const TrialIdentity& identity) {
  return *std::ranges::find(plan.rankers, identity.ranker, &ExperimentRanker::name);
}

const ExperimentUser& user_of(const ExperimentPlan& plan, const TrialIdentity& identity) {
  return *std::ranges::find(plan.users, identity.user, &ExperimentUser::name);
}

Recipe recipe_of(const ExperimentPlan& plan, const ExperimentRanker& ranker, const ExperimentUser& user,
                 const TrialIdentity& identity, const FoldData& fold) {
  const std::string clicks =
      fold.recorded ? fold.recorded->fingerprint().hex() : user.describe(fold.data.max_grade);
  return {{"version", plan.version},
          {"data", fold.fingerprint},
          {"protocol", plan.protocol},
          {"user", clicks},
          {"ranker", ranker.settings},
          {"trial", fmt::format("fold {}, seed {}", identity.fold, identity.seed)}};
}

std::string worse_than_random(const LastLists& lists, std::int64_t cutoff, const ExperimentRanker& ranker) {
  return fmt::format(
      "The mean NDCG@{} of the last {} lists, {:.4f}, is worse than that of random orders of their "
      "documents, {:.4f}; try {}.",
      cutoff, LastLists::kRounds, lists.mean_ndcg(), lists.random_ndcg(), ranker.advice);
}

/// Trials of one fold together, so that few folds are in memory at a time; then those of one seed, so that
/// early results compare all rankers and their costs are known early.
std::vector<TrialIdentity> in_order_of_play(std::vector<TrialIdentity> trials) {
  std::stable_sort(trials.begin(), trials.end(), [](const TrialIdentity& a, const TrialIdentity& b) {
    return std::pair(a.fold, a.seed) < std::pair(b.fold, b.seed);
  });
  return trials;
}

enum class Ended { kFinished, kFinishedBefore, kInterrupted };

class Experiment {
 public:
  explicit Experiment(const ExperimentPlan& plan)
      : plan_(plan),
        trials_(in_order_of_play(trials_of(plan))),
        progress_(trials_, plan.trial.rounds, queries_of(plan, trials_), plan.jobs),
        calibrated_(rankers_to_calibrate()) {}

  ExperimentOutcome run() {
    const InterruptGuard guard;
    const auto stopping = [] { return InterruptGuard::requested() != 0; };
    // Each slot makes its own, on its thread.
    std::vector<std::unique_ptr<ExecutionContext>> executions(std::max(1, plan_.jobs));
    const auto execution_of = [&](std::int64_t slot) -> ExecutionContext& {
      if (!executions[slot])
        executions[slot] = std::make_unique<ExecutionContext>(std::max(1, plan_.threads / plan_.jobs));
      return *executions[slot];
    };
    const auto end = [&] {
      outcome_.signal = InterruptGuard::requested();
      progress_.end(outcome_.signal);
    };
    try {
      run_in_slots(calibrated_.size(), plan_.jobs, stopping, [&](std::size_t number, std::int64_t slot) {
        calibrate_ranker(trials_[calibrated_[number]], slot, execution_of(slot));
      });
      run_in_slots(trials_.size(), plan_.jobs, stopping, [&](std::size_t number, std::int64_t slot) {
        run_or_count_failure(number, slot, execution_of(slot));
      });
    } catch (...) {
      end();
      throw;
    }
    end();
    return outcome_;
  }

 private:
  /// Shorter trials are over before their cost matters.
  static constexpr std::int64_t kLongEnough = 200;
  static constexpr double kCalibrationSeconds = 0.25;

  static std::int64_t queries_of(const ExperimentPlan& plan, const std::vector<TrialIdentity>& trials) {
    return trials.empty() ? 1 : plan.data->get(trials.front().fold)->data.train.queries();
  }

  /// The first unfinished trial of each ranker that has to wait. Those that start at once need no
  /// calibration, and rankers that learn from grades may train for long before their first round.
  std::vector<std::size_t> rankers_to_calibrate() const {
    std::vector<std::size_t> first_trials;
    if (!progress_.shows() || plan_.trial.rounds < kLongEnough) return first_trials;
    std::set<std::string> seen;
    std::int64_t unfinished = 0;
    for (std::size_t number = 0; number < trials_.size(); ++number) {
      if (is_finished(plan_.out, trials_[number])) continue;
      const bool starts_at_once = unfinished++ < plan_.jobs;
      if (!seen.insert(trials_[number].ranker).second || starts_at_once) continue;
      if (!ranker_of(plan_, trials_[number]).needs_labels) first_trials.push_back(number);
    }
    return first_trials;
  }

  /// Plays the first rounds of a ranker's trial and forgets them. A failure shows in the trial itself.
  void calibrate_ranker(const TrialIdentity& identity, std::int64_t slot, ExecutionContext& execution) {
    const MutedLog muted;
    try {
      const std::shared_ptr<const FoldData> fold = plan_.data->get(identity.fold);
      const Stopwatch begun;
      TrialJob job(plan_, ranker_of(plan_, identity), user_of(plan_, identity), identity, *fold, slot,
                   execution);
      const double setup = begun.seconds();
      const CostCalibration calibration =
          calibrate(job.trial, TrialJob::settings(plan_, *fold), fold->data.train.queries(),
                    kCalibrationSeconds, plan_.trial.rounds / 20);
      progress_.calibrated(identity.ranker, calibration.shape, setup);
    } catch (const std::exception&) {
    }
  }

  /// A numeric failure ends its trial alone; any other error the run.
  void run_or_count_failure(std::size_t number, std::int64_t slot, ExecutionContext& execution) {
    try {
      const Ended ended = run_trial(number, slot, execution);
      const std::lock_guard lock(mutex_);
      outcome_.finished += ended == Ended::kFinished ? 1 : 0;
      outcome_.finished_before += ended == Ended::kFinishedBefore ? 1 : 0;
    } catch (const NumericError& error) {
      count_failure(number, error);
    } catch (const OutOfDeviceMemory& error) {
      count_failure(number, error);
    } catch (...) {
      failed_ = true;
      throw;
    }
  }

  void count_failure(std::size_t number, const Error& error) {
    const std::lock_guard lock(mutex_);
    outcome_.failures.push_back(fmt::format("{}: {}", trials_[number].path().string(), error.what()));
    log_warning("{}", outcome_.failures.back());
    progress_.failed(number, error.what());
  }

  bool stopping() const { return failed_ || InterruptGuard::requested() != 0; }

  Ended run_trial(std::size_t number, std::int64_t slot, ExecutionContext& execution) {
    const TrialIdentity& identity = trials_[number];
    const std::shared_ptr<const FoldData> fold = plan_.data->get(identity.fold);
    const Recipe recipe =
        recipe_of(plan_, ranker_of(plan_, identity), user_of(plan_, identity), identity, *fold);
    JobFolder folder(plan_.out / identity.path(), {.checkpoints = plan_.keep_checkpoints});
    if (folder.finished(recipe)) {
      folder.check(recipe);
      progress_.finished_before(number);
      return Ended::kFinishedBefore;
    }
    const Stopwatch begun;
    TrialJob job(plan_, ranker_of(plan_, identity), user_of(plan_, identity), identity, *fold, slot,
                 execution);  // may take a while to train
    Trial& trial = job.trial;
    if (folder.has_checkpoint()) {
      folder.restore(job, recipe);
    } else {
      folder.begin();
    }
    progress_.started(number, trial.rounds_played(), begun.seconds());
    return play(number, *fold, recipe, folder, job);
  }

  Ended play(std::size_t number, const FoldData& fold, const Recipe& recipe, JobFolder& folder,
             TrialJob& job) {
    const TrialIdentity& identity = trials_[number];
    Trial& trial = job.trial;
    RoundDetail detail;
    const auto tell = [&] {
      if (!trial.evaluating()) return;
      progress_.evaluated(number, job.finish_evaluation(folder));
    };
    const auto save = [&] {
      const Stopwatch watch;
      folder.write_checkpoint(job, recipe);
      trial.clock().add("save", watch.seconds());
    };
    for (;;) {
      if (trial.evaluation_due()) {
        tell();
        trial.begin_evaluation();
      }
      if (trial.finished() || stopping() || trial.evaluation_ready()) tell();
      if (trial.finished()) break;
      if (stopping()) {
        tell();  // a signal arrived in between
        save();
        folder.finish_checkpoint();
        return Ended::kInterrupted;
      }
      if (plan_.trace != nullptr) {
        const PlayedRound& round = trial.play_round(&detail, plan_.trace->detail());
        plan_.trace->write(round, fold.data.train.qid(round.query), detail);
      } else {
        trial.play_round();
      }
      progress_.played(number, trial.rounds_played());
      folder.advance_checkpoint();
      if (trial.rounds_played() % plan_.checkpoint_every == 0 && !trial.finished()) {
        tell();
        save();
      }
    }
    if (const std::int64_t left = plan_.trial.rounds - trial.rounds_played(); left > 0) {
      log_info("{}: The recording ended after {} of {} rounds.", identity.path().string(),
               trial.rounds_played(), plan_.trial.rounds);
    }
    std::vector<std::string> notes;
    if (trial.last_lists().worse_than_random()) {
      notes.push_back(worse_than_random(trial.last_lists(), plan_.trial.cutoff, job.ranker_plan));
      log_warning("{}: {}", identity.path().string(), notes.back());
    }
    job.finish(folder, recipe, notes);
    progress_.finished(number, folder.seconds());
    return Ended::kFinished;
  }

  const ExperimentPlan& plan_;
  std::vector<TrialIdentity> trials_;
  RunProgress progress_;
  std::vector<std::size_t> calibrated_;  // a trial of each ranker
  std::atomic<bool> failed_{false};

  std::mutex mutex_;
  ExperimentOutcome outcome_;
};

bool holds_results(const std::filesystem::path& out) {
  const std::vector<TrialIdentity> trials = trials_in(out);
  return std::any_of(trials.begin(), trials.end(), [&](const TrialIdentity& identity) {
    return JobFolder(out / identity.path()).has_results();
  });
}

[[noreturn]] void refuse_results(const std::filesystem::path& folder) {
  throw_error<InvalidArgument>(
      "{} already contains results. Continue with --resume, replace them with --force, or choose another "
      "--out.",
      folder.string());
}

/// A fingerprint does not say which data it is of, so the plan says how its own differ.
void refuse_other_data(const ExperimentPlan& plan, const TrialIdentity& identity, const Recipe& there,
                       const Recipe& here) {
  if (text_of(there, "data") == text_of(here, "data") || !plan.data_difference) return;
  throw_error<InvalidArgument>(
      "{} was played on other data: {}. Resume with the data that it began with, or choose another --out.",
      (plan.out / identity.path()).string(), plan.data_difference());
}

/// The trials that --force removes: those that the manifest lists, of a shard only its own.
std::vector<TrialIdentity> replaced_trials(const ExperimentPlan& plan, const OutputFolder& folder) {
  const std::set<TrialIdentity> listed = folder.listed_trials();
  if (!plan.shard.is_part()) return {listed.begin(), listed.end()};
  std::vector<TrialIdentity> own = trials_of(plan);
  std::erase_if(own, [&](const TrialIdentity& identity) { return !listed.contains(identity); });
  return own;
}

/// Trials that would remain would get into the tables of this run.
void refuse_foreign(const ExperimentPlan& plan, const OutputFolder& folder) {
  const std::set<TrialIdentity> listed = folder.listed_trials();
  for (const TrialIdentity& identity : plan.shard.is_part() ? trials_of(plan) : trials_in(plan.out)) {
    const JobFolder trial(plan.out / identity.path());
    if (listed.contains(identity) || !trial.has_results()) continue;
    throw_error<InvalidArgument>(
        "{} is a trial that the manifest of {} does not list, so --force does not remove it. Move it away, "
        "or choose another --out.",
        trial.path().string(), plan.out.string());
  }
  for (const TrialIdentity& identity : replaced_trials(plan, folder)) {
    if (const auto link = symbolic_link_below(plan.out, identity.path())) {
      throw_error<InvalidArgument>(
          "{} is a symbolic link, and --force does not remove what lies behind one. Remove the link, or "
          "choose another --out.",
          link->string());
    }
  }
}

}  // namespace

std::vector<TrialIdentity> trials_of(const ExperimentPlan& plan) {
  std::vector<TrialIdentity> trials;
  std::size_t number = 0;
  for (const ExperimentRanker& ranker : plan.rankers) {
    for (const ExperimentUser& user : plan.users) {
      for (const std::int64_t fold : plan.folds) {
        for (const std::int64_t seed : plan.seeds) {
          if (plan.shard.has(number++)) {
            trials.push_back({ranker.name, user.name, fold, seed});
          }
        }
      }
    }
  }
  return trials;
}

void refuse_existing(const ExperimentPlan& plan, const OutputFolder& folder) {
  if (plan.existing == Existing::kReplace) return refuse_foreign(plan, folder);
  if (plan.existing != Existing::kRefuse) return;
  if (!plan.shard.is_part() && holds_results(plan.out)) refuse_results(plan.out);
  for (const TrialIdentity& identity : trials_of(plan)) {
    const JobFolder trial(plan.out / identity.path());
    if (trial.has_results()) refuse_results(trial.path());
  }
}

void check_existing(const ExperimentPlan& plan) {
  if (!holds_results(plan.out)) return;  // nothing to replace
  for (const TrialIdentity& identity : in_order_of_play(trials_of(plan))) {
    const std::shared_ptr<const FoldData> fold = plan.data->get(identity.fold);
    const Recipe recipe =
        recipe_of(plan, ranker_of(plan, identity), user_of(plan, identity), identity, *fold);
    if (plan.existing != Existing::kResume) continue;
    const JobFolder trial(plan.out / identity.path());
    if (const auto there = trial.recipe()) refuse_other_data(plan, identity, *there, recipe);
    trial.check(recipe);
  }
}

void remove_existing(const ExperimentPlan& plan, const OutputFolder& folder) {
  if (plan.existing != Existing::kReplace) return;
  for (const TrialIdentity& identity : replaced_trials(plan, folder)) remove_job(plan.out, identity.path());
}

void settle_existing(const ExperimentPlan& plan, const OutputFolder& folder) {
  refuse_existing(plan, folder);
  check_existing(plan);
  remove_existing(plan, folder);
}

ExperimentOutcome run_experiment(const ExperimentPlan& plan) {
  return Experiment(plan).run();
}

TrialEstimate estimate_trial(const ExperimentPlan& plan, const TrialIdentity& identity,
                             const FoldData& fold, double seconds, std::int64_t slot) {
  ExecutionContext execution(std::max(1, plan.threads / plan.jobs));
  const Stopwatch begun;
  TrialJob job(plan, ranker_of(plan, identity), user_of(plan, identity), identity, fold, slot, execution);
  TrialEstimate estimate;
  estimate.setup = begun.seconds();
  const TrialSettings settings = TrialJob::settings(plan, fold);
  const CostCalibration calibration =
      calibrate(job.trial, settings, fold.data.train.queries(), seconds, settings.rounds);
  estimate.shape = calibration.shape;
  estimate.rounds_tried = calibration.rounds;
  estimate.seconds = estimate.setup + calibration.shape.seconds(0.0, static_cast<double>(settings.rounds));
  estimate.parameters = job.ranker->parameters();
  StateWriter state = StateWriter::digester();
  job.trial.save(state);
  estimate.state_bytes = state.value_bytes();
  return estimate;
}

RunForecast forecast_of(const ExperimentPlan& plan, const std::map<std::string, TrialEstimate>& estimates) {
  const std::vector<TrialIdentity> trials = in_order_of_play(trials_of(plan));
  std::vector<std::size_t> rankers;
  rankers.reserve(trials.size());
  for (const TrialIdentity& trial : trials)
    rankers.push_back(std::distance(estimates.begin(), estimates.find(trial.ranker)));
  RunForecast forecast(rankers, plan.trial.rounds, 1, plan.jobs);
  std::size_t number = 0;
  for (const auto& [ranker, estimate] : estimates)
    forecast.calibrate(number++, estimate.shape, estimate.setup);
  return forecast;
}

}  // namespace olrank
