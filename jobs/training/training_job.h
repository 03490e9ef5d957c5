#pragma once

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/metrics/evaluator.h"
#include "core/text/text_table.h"
#include "jobs/settings/train_configuration.h"
#include "jobs/trial_job.h"
#include "models/labels/label_training.h"

namespace olrank {

/// Named metrics of a report, NDCG at the cutoffs first. A mean over no query is null.
nlohmann::ordered_json metrics_json(const MetricReport& report, const MetricOptions& options);

/// A line of curve.jsonl.
struct TrainingPoint {
  std::int64_t epoch = 0;
  std::optional<double> loss;
  std::optional<double> vali_loss;
  std::vector<std::pair<std::string, double>> vali;  // metrics by name
  double seconds = 0.0;                              // since training began
};

TrainingPoint training_point(const nlohmann::ordered_json& line);

/// A fit of a model to labels, as a job of passes.
class TrainingJob : public PassJob {
 public:
  explicit TrainingJob(LabelTraining& training) : training_(training) {}

  std::int64_t steps() const override { return training_.epoch(); }
  bool finished() const override { return training_.finished(); }
  std::optional<nlohmann::ordered_json> first_point() override;
  nlohmann::ordered_json advance() override;

  /// Writes the model and the summary. `about` is the metadata of the model file.
  void finish(JobFolder& folder, const Recipe& recipe, const ModelMetadata& about,
              nlohmann::ordered_json summary);

 protected:
  void training_fields(StateFields& state) override { state.part(training_); }

 private:
  LabelTraining& training_;
};

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

std::string training_results_output(const TrainConfiguration& configuration,
                                    const std::vector<TrainedModel>& models, const OutputForm& form);

}  // namespace olrank
