#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/safetensors.h"
#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "core/runtime/stage_clock.h"
#include "sim/checkpoint_writer.h"
#include "sim/curve_state.h"
#include "sim/trial.h"
#include "sim/trial_identity.h"

namespace olrank {

/// The results of a finished trial: the contents of summary.json.
struct TrialSummary {
  TrialIdentity identity;
  TrialRecipe recipe;
  CurvePoint last;
  double offline_area = 0.0;  // mean of the offline figure over the curve: its area by rounds, over T
  double online_area = 0.0;   // likewise of the online mean
  std::int64_t parameters = 0;
  double seconds = 0.0;                // see TrialFolder::seconds()
  double rounds_per_second = 0.0;      // on that clock
  std::int64_t peak_memory_bytes = 0;  // of the process
  std::string result_fingerprint;      // of curve, figures and the ranker's state; seconds left out
  std::vector<std::string> notes;      // what a reader of the results should know, a sentence each
};

/// The files of one trial. The curve grows by whole lines; all other files appear by atomic
/// rename, the summary last: a trial is finished if it has a summary. A checkpoint records the
/// length of the curve, and restoring truncates the curve to it, so a run may stop at any
/// moment.
class TrialFolder {
 public:
  /// With kRead the folder stays as it is: ranks but the first do what they share of each call below, such
  /// as saving the trial's state, and leave the files to the first.
  enum class Access { kWrite, kRead };

  /// The most checkpoints that a trial keeps.
  static constexpr int kMostCheckpoints = 9;

  /// Keeps the latest `checkpoints` of its checkpoints.
  TrialFolder(const std::filesystem::path& experiment, const TrialIdentity& identity, int checkpoints = 1,
              Access access = Access::kWrite);
  ~TrialFolder();
  TrialFolder(const TrialFolder&) = delete;
  TrialFolder& operator=(const TrialFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Whether the folder has files of a trial.
  bool has_results() const;
  bool finished() const;
  bool has_checkpoint() const;
  /// The recipe of the finished trial here, or of its latest readable checkpoint; none without either.
  std::optional<TrialRecipe> recipe() const;
  /// Whether the trial of this recipe is finished here, not only a shorter one.
  bool finished(const TrialRecipe& recipe) const;
  /// Throws InvalidArgument if the finished trial or checkpoint here has another recipe. It may have other
  /// rounds if the trial has not played more than the recipe's.
  void check(const TrialRecipe& recipe) const;

  /// Creates the folder and an empty curve.
  void begin();
  /// Restores the trial from its latest checkpoint that can be read, with a warning for each that cannot,
  /// and truncates the curve. A finished trial, which has fewer rounds than the recipe, is one no longer.
  /// Throws as check() does.
  void restore(Trial& trial, const TrialRecipe& recipe);

  /// Seconds on the clock since this object was made, and while earlier runs had the trial: with the
  /// set-up, the waits and the checkpoints, which belong to no stage of a round.
  double seconds() const;

  /// Appends an evaluation to the curve.
  void append(const CurvePoint& point, const StageClock& clock);
  /// Starts to write a checkpoint of the trial as it is now; rounds may go on. advance_checkpoint() is to
  /// be called after each of them, and finish_checkpoint() waits until it is written.
  void write_checkpoint(const Trial& trial, const TrialRecipe& recipe);
  void advance_checkpoint() { checkpoint_writer_.advance(); }
  void finish_checkpoint() { checkpoint_writer_.finish(); }
  /// Writes the model and the per-query metrics, then the summary, then a last checkpoint. The checkpoint
  /// of an unfinished trial is therefore never its last.
  void finish(Trial& trial, const OnlineRanker& ranker, const ModelMetadata& metadata,
              TrialSummary summary);

 private:
  /// A checkpoint that can be read, up to where the clock and the trial begin.
  struct Checkpoint {
    StateReader state;
    TrialRecipe recipe;
    CurveState curve;
    CurveState before_last;
    int age = 0;  // 0 for the latest that was written
  };

  void check_finished(TrialRecipe recipe) const;
  void check_checkpoint(const Checkpoint& checkpoint, const TrialRecipe& recipe) const;
  void check_rounds(std::int64_t there, std::int64_t here) const;
  Checkpoint open_checkpoint(const std::filesystem::path& file, int age, const std::string& restart) const;
  Checkpoint open_latest_checkpoint(bool warn) const;
  std::filesystem::path checkpoint_file(int age) const;
  std::string way_to_restart() const;
  void make_room_for_checkpoint() const;
  void reopen() const;
  void open_curve(bool truncate);
  void remove_leftovers() const;
  void sync_curve() const;

  std::filesystem::path path_;
  int checkpoints_;
  bool writes_;
  int curve_ = -1;
  std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
  double earlier_seconds_ = 0.0;  // of runs before this one, up to the checkpoint

  CurveState curve_state_;
  CurveState before_last_;  // of the curve without its last line, which a longer trial may not have
  CheckpointWriter checkpoint_writer_;
};

/// The trials that have a folder there, finished or not, sorted.
std::vector<TrialIdentity> trials_in(const std::filesystem::path& experiment);
/// Removes the files of a trial, and its folders where nothing else is in them. Symbolic links are not
/// followed.
void remove_trial(const std::filesystem::path& experiment, const TrialIdentity& identity);

/// Whether a trial's folder has a checkpoint.
bool has_checkpoint(const std::filesystem::path& folder);
/// Loads the ranker's part of the checkpoint into a ranker with the trial's settings. Returns the rounds
/// that the trial has played. Throws IoError for a checkpoint of another kind of ranker.
std::int64_t load_ranker(const std::filesystem::path& folder, OnlineRanker& ranker);

/// The contents of summary.json.
std::string summary_json(const TrialSummary& summary, const StageClock& clock);

}  // namespace olrank
