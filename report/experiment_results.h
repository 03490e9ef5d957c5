#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/measure.h"
#include "report/run_description.h"
#include "sim/trial_settings.h"

namespace olrank {

/// Shown orders of one class of stated probability, whose documents have different grades.
struct StatedClass {
  double from = 0.0;   // the class ends where the next one begins, the last one at 1
  double wrong = 0.0;  // contradicted by the grades
  double of = 0.0;
};

struct CurveEvaluation {
  std::int64_t round = 0;
  MeasureValues values;
  double certain_orders = 0.0;      // the total behind kFalseCertain
  double decisions = 0.0;           // the total behind kDecisionsDiffer
  std::vector<StatedClass> stated;  // of rankers that state probabilities
};

/// A trial's curve, up to its first damaged line.
struct RecordedCurve {
  std::vector<CurveEvaluation> points;
  std::int64_t cutoff = 0;  // 0 without points
  std::string damage;       // a sentence about the damaged line; empty if the curve is intact
};

/// The number, or NaN where there is none.
double number_or_nan(const nlohmann::json& object, const char* key);

/// Reads an evaluation: a line of a curve, or the last one in a summary. Unknown metrics are those of a
/// program. Throws an exception of the JSON parser or of std::stoll if it is damaged.
CurveEvaluation read_evaluation(const nlohmann::json& evaluation, std::int64_t& cutoff);

/// kFalseCertain or kDecisionsDiffer over a whole trial, from the counts of its evaluations. NaN if nothing
/// was counted.
double whole_trial_share(const RecordedCurve& curve, Measure measure);

/// Reads curve.jsonl. A damaged or incomplete line ends the curve; throws only if the file is unreadable.
RecordedCurve read_curve(const std::filesystem::path& file);

struct TrialResults {
  TrialIdentity identity;
  RecordedCurve curve;
  bool finished = false;

  // Only of finished trials:
  MeasureValues last;  // at the last evaluation; milliseconds are the mean over the whole trial
  double offline_area = std::nan("");  // mean height of the curve
  double online_area = std::nan("");
  std::int64_t rounds = 0;
  std::int64_t pairs = 0;  // learned from
  std::int64_t cutoff = 0;
  std::int64_t parameters = 0;
  double seconds = 0.0;  // on the clock
  std::string ended_at;  // UTC; empty in the summaries of earlier versions
  double rounds_per_second = 0.0;
  std::int64_t peak_memory_bytes = 0;
  std::vector<std::pair<std::string, double>> stages;  // total seconds
  std::string fingerprint;
  std::vector<std::string> notes;  // a sentence each
  double posterior_bytes = 0.0;    // NaN if the ranker does not report it

  /// The last evaluated round; 0 before the first.
  std::int64_t last_round() const;
};

using TrialList = std::vector<const TrialResults*>;

TrialList finished_trials(const std::vector<TrialResults>& trials);

struct MissingTrial {
  TrialIdentity identity;
  std::int64_t round = -1;  // the last evaluated round; -1 if the trial has not started
};

/// One experiment folder, finished or not, merged from shards or not.
struct ExperimentResults {
  std::filesystem::path folder;
  RunDescription run;
  std::vector<TrialResults> trials;  // sorted by identity
  std::vector<MissingTrial> missing;
  std::int64_t finished = 0;
  std::int64_t expected = 0;          // trials in the matrix, or more if the folder has more
  std::vector<std::string> warnings;  // about damaged files, and the notes of trials, one sentence each
  std::optional<StudyPlan> study;     // if the folder holds one

  /// How long the finished trials took, and from when to when they were played; empty without any.
  std::string duration() const;
};

/// Unfinished trials, one line per group: "pairrank, perfect, fold 1: seeds 3 to 5 not started".
std::vector<std::string> missing_lines(const ExperimentResults& experiment);

ExperimentResults read_experiment(const std::filesystem::path& folder);

/// The finished trials in an experiment's folder from their summaries alone, without curves, in
/// the order of names, folds and seeds: merged shards look like one run. Throws IoError for a damaged
/// summary, or adds a sentence to `damage` and leaves it out.
std::vector<TrialResults> read_finished_trials(const std::filesystem::path& folder,
                                               std::vector<std::string>* damage = nullptr);

}  // namespace olrank
