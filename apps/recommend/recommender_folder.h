#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/recommend/recommender_run.h"

namespace olrank {

/// The files of one recommender: curve.jsonl, model.safetensors, summary.json and a checkpoint. All appear
/// by atomic rename, the summary last: a training is finished once its summary exists.
class RecommenderFolder {
 public:
  explicit RecommenderFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  bool has_results() const;
  bool finished() const;
  nlohmann::ordered_json summary() const;
  /// Removes the files of a training.
  void remove() const;

  /// Goes on from the checkpoint here, if there is one and `resume`. Throws InvalidArgument if what is here
  /// has another recipe.
  void begin(RecommenderRun& run, const TrialRecipe& recipe, bool resume);
  /// Throws likewise for a finished training.
  void check_finished(const TrialRecipe& recipe) const;
  void append(const nlohmann::ordered_json& point);
  /// Writes curve and checkpoint; at most once a second unless it `must`.
  void checkpoint(const RecommenderRun& run, const TrialRecipe& recipe, bool must);
  /// Writes the model and the summary, which gets fingerprint, recipe, time and version.
  void finish(const RecommenderRun& run, const RecommendSettings& settings, const ReviewParts& parts,
              const TrialRecipe& recipe, nlohmann::ordered_json summary);

  double seconds() const;

 private:
  void require_recipe(const TrialRecipe& there, const TrialRecipe& here) const;

  std::filesystem::path path_;
  std::string curve_;
  std::string digest_;  // the curve without seconds
  double earlier_seconds_ = 0.0;
  double began_ = 0.0;
  double written_ = -1.0;
};

/// Everything that decides a training's result.
TrialRecipe recommender_recipe(const RecommendSettings& settings, const ReviewParts& parts);

}  // namespace olrank
