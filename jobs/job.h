#pragma once

// Which file of jobs/ runs which:
//   settings/configuration reads what the user wrote; experiment_setup makes an ExperimentPlan of it,
//   with fold_cache for the data, start_model and device_choice, and recorded_experiment if it resumes.
//   experiment_run prepares a folder (output_folder, dry_run's check of memory), plays the plan and writes
//   its tables; `olrank run`, tuning/tuning and covariance/covariance_study go through it.
//   experiment plays a plan: job_slots take the trials of a shard, each a trial_job in a job_folder.
//   training/training_job and recommending/recommender_run are trainings by passes, each a pass_job in a
//   job_folder; study computes the cells of
//   recommending/recommender_study and of studies/generalisation, one after another or several at once.
//   eval_request, ranked_lists and exploring_lists read what was learned: saved_trial, or a model file.

#include <cstdint>

#include "core/io/state_archive.h"

namespace olrank {

/// A piece of work that goes on step by step. Its state can be saved between two steps, and goes on to the
/// same bits once it is restored.
class Job {
 public:
  Job() = default;
  virtual ~Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// The steps done: rounds, or passes.
  virtual std::int64_t steps() const = 0;
  /// The bytes of the curve's file that belong to the state.
  virtual std::uint64_t curve_bytes() const = 0;
  virtual void save(StateWriter& state) const = 0;
  virtual void load(StateReader& state) = 0;
};

}  // namespace olrank
