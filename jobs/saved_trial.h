#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/data/normaliser.h"
#include "core/online/online_ranker.h"
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
SavedTrial load_saved_trial(const std::filesystem::path& model_file, const LoadedModel& model,
                            ModelCode code);

/// Gives the ranker the network of the model, and as many members as the model has, if several. Kind
/// clickgp starts from all models; throws InvalidArgument, with `origin` as the file, where another kind
/// does not.
void take_network(const LoadedModel& model, const std::string& origin, RankerSettings& ranker);

/// θ of each member, which the model loses. After that of an additive model with products come the first
/// and then the second inputs of these.
std::vector<std::vector<float>> take_start_thetas(LoadedModel& model);

struct ClickStart;

/// A model that a ranker starts from.
struct StartModel {
  std::vector<std::vector<float>> thetas;          // one model is where all members start
  std::string normalisation;                       // as in model files; empty: unknown
  std::string fingerprint;                         // of the file
  std::shared_ptr<const ClickStart> of_clicks;     // in place of θ: for clickgp, unless it takes weights
  std::shared_ptr<const std::string> module_file;  // TorchScript, if the model is that
};

/// The model of a file for the ranker; `origin` names it in messages.
StartModel read_start_model(const RankerSettings& ranker, const std::string& bytes,
                            const std::string& origin, ModelCode code);

/// The model that the ranker's settings name; null if they name none.
std::shared_ptr<const StartModel> start_model_of(const RankerSettings& ranker);

/// Throws InvalidArgument where a fold's inputs are not those that the model was trained with.
void check_start_inputs(const RankerSettings& ranker, const StartModel& start,
                        const FittedNormaliser& normaliser);

}  // namespace olrank
