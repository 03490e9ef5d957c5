#pragma once

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
  double seconds = 0.0;
  double rounds_per_second = 0.0;
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
  TrialFolder(const std::filesystem::path& experiment, const TrialIdentity& identity);
  ~TrialFolder();
  TrialFolder(const TrialFolder&) = delete;
  TrialFolder& operator=(const TrialFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Whether the folder has files of a trial.
  bool has_results() const;
  bool finished() const;
  bool has_checkpoint() const;
  /// Throws InvalidArgument if the finished trial or checkpoint here has another recipe.
  void check(const TrialRecipe& recipe) const;

  /// Creates the folder and an empty curve.
  void begin();
  /// Restores the trial from its checkpoint and truncates the curve. Throws as check() does.
  void restore(Trial& trial, const TrialRecipe& recipe);

  /// Appends an evaluation to the curve.
  void append(const CurvePoint& point, const StageClock& clock);
  void write_checkpoint(const Trial& trial, const TrialRecipe& recipe);
  /// Writes the model and the per-query metrics, then the summary, then a last checkpoint. The checkpoint
  /// of an unfinished trial is therefore never its last.
  void finish(Trial& trial, const OnlineRanker& ranker, const ModelMetadata& metadata,
              TrialSummary summary);

 private:
  void check_finished(TrialRecipe recipe) const;
  void check_checkpoint(StateReader& state, const TrialRecipe& recipe) const;
  void open_curve(bool truncate);
  void remove_leftovers() const;
  void sync_curve();

  std::filesystem::path path_;
  int curve_ = -1;

  // Running totals of the curve; part of a checkpoint.
  std::uint64_t curve_bytes_ = 0;
  Fingerprint curve_digest_;   // chained over the lines without seconds
  double offline_area_ = 0.0;  // ∫ by rounds, trapezoids
  double online_area_ = 0.0;
  std::int64_t points_ = 0;
  double last_round_ = 0.0;
  double last_offline_ = 0.0;
  double last_online_ = 0.0;
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
