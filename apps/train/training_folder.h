#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/metrics/evaluator.h"
#include "models/labels/label_training.h"
#include "sim/trial_identity.h"

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

/// The points of a curve.jsonl.
std::vector<TrainingPoint> read_training_curve(const std::filesystem::path& file);

/// The files of one model: curve.jsonl, model.safetensors, summary.json and a checkpoint. All appear by
/// atomic rename, the summary last: a training is finished once its summary exists.
class TrainingFolder {
 public:
  explicit TrainingFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  bool has_results() const;
  bool finished() const;
  /// Throws InvalidArgument if what is here has another recipe.
  void check(const TrialRecipe& recipe) const;
  /// Removes the files of a training.
  void remove() const;

  /// Goes on from the checkpoint here, if there is one.
  void begin(LabelTraining& training, const TrialRecipe& recipe, bool resume);
  /// Adds a line to the curve.
  TrainingPoint append(const LabelTraining::Point& point, const MetricOptions& options);
  /// Writes curve and checkpoint; at most once a second unless it `must`.
  void checkpoint(const LabelTraining& training, const TrialRecipe& recipe, bool must);
  /// Writes the model and the summary. `about` is the metadata of the model file.
  void finish(LabelTraining& training, const TrialRecipe& recipe, const ModelMetadata& about,
              nlohmann::ordered_json summary);

  double seconds() const;

 private:
  TrialRecipe recipe_of_checkpoint() const;

  std::filesystem::path path_;
  std::string curve_;
  std::string digest_;  // the curve without seconds
  double earlier_seconds_ = 0.0;
  double began_ = 0.0;
  double written_ = -1.0;
};

}  // namespace olrank
