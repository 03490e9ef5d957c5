#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/curve_reader.h"
#include "report/run_description.h"
#include "report/study_plan.h"
#include "sim/trial_identity.h"

namespace olrank {

/// A trial's results so far.
struct TrialResults {
  TrialIdentity identity;
  RecordedCurve curve;
  bool finished = false;

  // Only of finished trials:
  MeasureValues last;  // at the last evaluation; milliseconds are the mean over the whole trial
  std::int64_t rounds = 0;
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
  std::vector<double> queries;     // final offline NDCG per evaluated query; empty if not kept
  std::string damaged_queries;     // a sentence, if their file is damaged

  /// The last evaluated round; 0 before the first.
  std::int64_t last_round() const;
};

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

}  // namespace olrank
