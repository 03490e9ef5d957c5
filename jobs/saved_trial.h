#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "core/online/online_ranker.h"
#include "core/online/trial_keys.h"
#include "models/files/model_file.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// The model file that is named directly or by its trial's folder. For a folder without
/// one throws an error that names the trials of an experiment.
std::filesystem::path model_file_of(const std::string& named);

/// A ranker in the state at the end of its trial.
struct SavedTrial {
  RankerSettings settings;
  TrialKeys keys;
  std::unique_ptr<OnlineRanker> ranker;
  std::int64_t rounds = 0;  // learned
  std::int64_t cutoff = 10;
};

/// Loads the ranker from the checkpoint next to a finished trial's model; unlike the model alone, it knows
/// which orders are certain. Throws InvalidArgument if there is no checkpoint or it belongs to another
/// model.
SavedTrial load_saved_trial(const std::filesystem::path& model_file, const LoadedModel& model);

}  // namespace olrank
