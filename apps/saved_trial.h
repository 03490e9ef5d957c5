#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "core/online/online_ranker.h"
#include "models/model_file.h"

namespace olrank {

/// A model file, or the model of a finished trial's folder.
std::filesystem::path model_file_of(const std::string& named);

/// A ranker as its trial left it.
struct SavedTrial {
  std::unique_ptr<OnlineRanker> ranker;
  std::int64_t rounds = 0;  // that it has learned from
  std::int64_t cutoff = 10;
};

/// The ranker from the checkpoint that stands beside the model of a finished trial: unlike the model alone
/// it knows which orders are certain. Throws InvalidArgument where there is no such checkpoint, or it is of
/// another model.
SavedTrial load_saved_trial(const std::filesystem::path& model_file, const LoadedModel& model);

}  // namespace olrank
