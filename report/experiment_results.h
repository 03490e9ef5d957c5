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

/// What a trial has left behind so far.
struct TrialResults {
  TrialIdentity identity;
  RecordedCurve curve;
  bool finished = false;

  // Of finished trials:
  MeasureValues last;  // of the last evaluation; milliseconds are the whole trial's mean
  std::int64_t rounds = 0;
  std::int64_t cutoff = 0;
  std::int64_t parameters = 0;
  double rounds_per_second = 0.0;
  std::int64_t peak_memory_bytes = 0;
  std::vector<std::pair<std::string, double>> stages;  // seconds of the whole trial
  std::string fingerprint;
  double posterior_bytes = 0.0;  // NaN where the ranker does not tell
  std::vector<double> queries;   // the last offline figure of each judged query; empty where not kept

  /// The last evaluated round; 0 before the first.
  std::int64_t last_round() const;
};

struct MissingTrial {
  TrialIdentity identity;
  std::int64_t round = -1;  // the last evaluated one; -1 for a trial that has not begun
};

/// One experiment folder, finished or not, merged or not.
struct ExperimentResults {
  std::filesystem::path folder;
  RunDescription run;
  std::vector<TrialResults> trials;  // in the order of their identities
  std::vector<MissingTrial> missing;
  std::int64_t finished = 0;
  std::int64_t expected = 0;          // trials of the whole matrix, or more where more are there
  std::vector<std::string> warnings;  // about damaged files, each a sentence
  std::optional<StudyPlan> study;     // where the folder holds one
};

ExperimentResults read_experiment(const std::filesystem::path& folder);

}  // namespace olrank
