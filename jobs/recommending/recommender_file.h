#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "jobs/recommending/review_parts.h"
#include "recommend/recommender.h"

namespace olrank {

/// A trained recommender with everything that lists and explanations need.
struct LoadedRecommender {
  RecommendSettings settings;
  ReviewNames names;
  RatingRows seen;          // the training's reviews by user: left out of lists
  std::string fingerprint;  // of the reviews that it was trained on
  std::unique_ptr<Recommender> model;

  /// Throws InvalidArgument, naming the nearest, for a user or an item that the model does not know.
  std::int64_t user(const std::string& name) const;
  std::int64_t item(const std::string& name) const;
};

/// The bytes of a model alone, as it is now.
std::string recommender_bytes(const Recommender& model);

/// The content of model.safetensors: settings, names, what users have seen, and the model's bytes.
std::string recommender_file(const RecommendSettings& settings, const ReviewParts& parts,
                             const std::string& model);
/// Reads the model of a folder that `recommend train` wrote, or the file itself. Throws IoError.
LoadedRecommender read_recommender(const std::filesystem::path& path);

/// A model from such bytes.
std::unique_ptr<Recommender> recommender_of_bytes(const std::string& bytes, const std::string& origin,
                                                  RecommenderKind kind, const ReviewCounts& counts);

}  // namespace olrank
