#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/text/output_form.h"
#include "jobs/settings/train_configuration.h"
#include "jobs/training/training_job.h"

namespace olrank {

/// A finished training, as its files say.
struct TrainedModel {
  std::int64_t fold = 1;
  std::int64_t seed = 1;
  nlohmann::ordered_json summary;
  std::vector<TrainingPoint> curve;
};

TrainedModel read_trained_model(const std::filesystem::path& folder, std::int64_t fold, std::int64_t seed);

/// "fold 1, seed 2", as far as there are several.
std::string model_name(const TrainConfiguration& configuration, std::int64_t fold, std::int64_t seed);

nlohmann::ordered_json train_configuration_json(const TrainConfiguration& configuration);

/// report.html, and of several models summary.json with their means and 95 % intervals.
void write_training_results(const std::filesystem::path& out, const TrainConfiguration& configuration,
                            const std::vector<TrainedModel>& models);

/// The test figures.
std::string training_results_output(const TrainConfiguration& configuration,
                                    const std::vector<TrainedModel>& models, const OutputForm& form);

}  // namespace olrank
