#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/data/data_loader.h"
#include "core/data/normaliser.h"
#include "core/online/online_ranker.h"
#include "core/runtime/execution_context.h"
#include "jobs/settings/train_configuration.h"
#include "models/labels/label_training.h"

namespace olrank {

/// One fold as trainings see it: normalised by what the training part says.
struct TrainFold {
  Dataset train;
  std::optional<Dataset> vali;
  Dataset test;
  int most_grade = 0;
  FittedNormaliser normaliser;

  LabelData parts(ClickTargets* clicks = nullptr) const {
    return {train, vali ? &*vali : nullptr, most_grade, clicks};
  }
};

/// Throws InvalidArgument where `patience` needs a validation part that the fold lacks, and as
/// require_order() does, unless `graded` says that the model learns from something else.
TrainFold load_train_fold(const TrainConfiguration& configuration, std::int64_t fold,
                          ExecutionContext& context, bool graded = true);
/// Makes the fold from data that are there already.
TrainFold train_fold_of(const TrainConfiguration& configuration, const DataParts& raw, std::int64_t fold,
                        ExecutionContext& context, bool graded = true);

/// A training sees this data set for a test part that is not there.
Dataset no_queries(std::int64_t features);

/// A GPU as a training takes it, with `bytes` of its memory for documents and for batches next to them.
LabelDevice label_device(const GpuDescription& gpu, std::int64_t bytes);
/// The device that `auto` means: the faster one for these documents, or that of the earlier training in
/// `out` where `resumed`. Says which and why.
std::string faster_training_device(const TrainConfiguration& configuration, const Dataset& train,
                                   int threads, const std::filesystem::path& out, bool resumed);

/// The keys of a training's draws.
TrialKeys training_keys(std::int64_t fold, std::int64_t seed);
/// Everything that determines its result, to which belongs whether a GPU computed it.
Recipe training_recipe(const TrainConfiguration& configuration, const TrainFold& data, std::int64_t fold,
                       std::int64_t seed, bool on_gpu);
/// Returns what its model file says about inputs and origin.
ModelMetadata model_metadata(const TrainConfiguration& configuration, const TrainFold& data,
                             const LabelTraining& training, std::int64_t fold, std::int64_t seed);
/// summary.json, without seconds, fingerprint and what the folder adds.
nlohmann::ordered_json training_summary(LabelTraining& training, const TrainFold& data, std::int64_t fold,
                                        std::int64_t seed);

}  // namespace olrank
