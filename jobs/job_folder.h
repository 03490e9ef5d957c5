#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/interface.h"
#include "core/io/fingerprint.h"
#include "core/io/state_archive.h"
#include "core/runtime/progress.h"
#include "jobs/checkpoint_writer.h"

// Which file of jobs/ runs which:
//   settings/configuration reads what the user wrote; experiment_setup makes an ExperimentPlan of it, with
//   device_choice, saved_trial for models to start from, and recorded_experiment if it resumes.
//   experiment_run prepares a folder (output_folder), checks its memory, plays the plan and writes its
//   tables; `olrank run`, tuning/tuning and covariance/covariance_study go through it.
//   experiment plays a plan: job_slots take the trials of a shard and share folds, each trial a TrialJob in
//   a job_folder.
//   training/training_job and recommending/recommender_run are trainings by passes, each a PassJob in a
//   job_folder; study computes the cells of recommending/recommender_study and of studies/generalisation,
//   one after another or several at once.
//   rankings judges and writes lists by what was learned: saved_trial, or a model file.

namespace olrank {

/// A piece of work that goes on step by step. Its state can be saved between two steps, and goes on to the
/// same bits once it is restored.
class Job : public Interface {
 public:
  /// The steps done: rounds, or passes.
  virtual std::int64_t steps() const = 0;
  /// The bytes of the curve's file that belong to the state.
  virtual std::uint64_t curve_bytes() const = 0;
  virtual void save(StateWriter& state) const = 0;
  virtual void load(StateReader& state) = 0;
};

/// A file of a finished job, without its folder, and its content.
using ResultFile = std::pair<std::string_view, std::string>;

/// The files of one job. The curve grows by whole lines; all other files appear by atomic rename, the
/// summary last: a job is finished if it has a summary. A checkpoint records the length of the curve and
/// the checksum of these bytes, and restoring truncates the curve to it, so a run may stop at any moment.
class JobFolder {
 public:
  static constexpr std::string_view kModelFile = "model.safetensors";
  static constexpr std::string_view kQueriesFile = "queries.csv";
  static constexpr int kMostCheckpoints = 9;

  struct Options {
    std::string_view noun = "trial";  // that messages use
    int checkpoints = 1;              // the latest ones that it keeps
  };

  explicit JobFolder(std::filesystem::path path);
  JobFolder(std::filesystem::path path, const Options& options);
  ~JobFolder();
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  bool has_results() const;
  /// Throws InvalidArgument if there are results.
  void require_empty() const;
  bool finished() const;
  bool has_checkpoint() const;
  /// The summary of the finished job here. Throws IoError for a file that is none.
  nlohmann::ordered_json summary() const;
  /// The recipe of the finished job here, or of its latest readable checkpoint; none without either.
  std::optional<Recipe> recipe() const;
  /// Whether the job of this recipe is finished here, and not only one of fewer rounds.
  bool finished(const Recipe& recipe) const;
  /// Throws InvalidArgument if the finished job or checkpoint here has another recipe. It may have other
  /// rounds if the job has not played more than the recipe's.
  void check(const Recipe& recipe) const;

  void begin();
  /// Restores the job from its latest checkpoint that can be read, with a warning for each that cannot, and
  /// truncates the curve. A finished job, which has fewer rounds than the recipe, is one no longer. Throws
  /// as check() does.
  void restore(Job& job, const Recipe& recipe);
  /// Restores the job likewise, and leaves the folder as it is.
  void load(Job& job, const Recipe& recipe) const { load_latest(job, recipe, false); }

  /// Seconds on the clock since this object was made, and while earlier runs had the job: with the set-up,
  /// the waits and the checkpoints, which belong to no step.
  double seconds() const { return earlier_seconds_ + opened_.seconds(); }

  /// Appends a line, with its '\n', to the curve.
  void append(std::string_view line);
  /// Starts to write a checkpoint of the job as it is now; steps may go on. advance_checkpoint() is to be
  /// called after each of them, and finish_checkpoint() waits until it is written.
  void write_checkpoint(const Job& job, const Recipe& recipe);
  void advance_checkpoint() { checkpoint_writer_.advance(); }
  void finish_checkpoint() { checkpoint_writer_.finish(); }
  /// Writes the files, then the summary, which gets time, version and recipe, then a last checkpoint. The
  /// checkpoint of an unfinished job is therefore never its last.
  void finish(const Job& job, const Recipe& recipe, std::span<const ResultFile> files,
              nlohmann::ordered_json summary);

 private:
  /// A checkpoint that can be read, up to where the job's own state begins.
  struct Checkpoint {
    StateReader state;
    Recipe recipe;
    std::int64_t steps = 0;
    double seconds = 0.0;
    int age = 0;  // 0 for the latest that was written
  };

  void check_finished(Recipe recipe) const;
  void check_files() const;
  Fingerprinter first_of_curve(std::uint64_t bytes) const;
  void check_checkpoint(const Checkpoint& checkpoint, const Recipe& recipe) const;
  void check_rounds(std::int64_t there, std::int64_t here) const;
  Checkpoint open_checkpoint(const std::filesystem::path& file, int age, const std::string& restart) const;
  Checkpoint open_latest_checkpoint(bool warn) const;
  Checkpoint load_latest(Job& job, const Recipe& recipe, bool warn) const;
  std::filesystem::path checkpoint_file(int age) const;
  std::string way_to_restart() const;
  void make_room_for_checkpoint() const;
  void reopen() const;
  void open_curve(bool truncate);
  void remove_leftovers() const;
  void sync_curve() const;

  std::filesystem::path path_;
  std::string noun_;
  int checkpoints_;
  int curve_ = -1;
  Fingerprinter curve_content_;
  Stopwatch opened_;
  double earlier_seconds_ = 0.0;  // of runs before this one, up to the checkpoint
  CheckpointWriter checkpoint_writer_;
};

/// Removes the files of a job in root/folder, and the folders below root where nothing else is in them.
/// Symbolic links are not followed.
void remove_job(const std::filesystem::path& root, const std::filesystem::path& folder);

bool has_checkpoint(const std::filesystem::path& folder);
/// The state in the latest checkpoint, from its first entry on.
StateReader read_checkpoint(const std::filesystem::path& folder, std::string_view restart);

}  // namespace olrank
