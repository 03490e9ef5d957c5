#pragma once

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "core/io/fingerprint.h"
#include "core/runtime/execution_context.h"
#include "recommend/recommender.h"
#include "recommend/review_reader.h"
#include "recommend/reviews.h"
#include "recommend/trees/tree_model.h"

namespace olrank {

/// The reviews of a source, filtered and split: what a training and its judge see.
struct ReviewParts {
  Reviews reviews;
  ReviewSplit split;
  TrainingData training;
  std::int64_t merged = 0;  // repeated reviews
  ReviewCounts filtered;
  std::int64_t untrained_users = 0;  // with reviews, but none in the training part
  Fingerprint fingerprint;           // of names, ratings and mentions after the filter
};

/// Reads or generates, merges, filters and splits. Throws InvalidArgument if nothing is left to train on.
/// The parts refer to their own reviews, so that they stay where they are.
std::unique_ptr<const ReviewParts> load_review_parts(const RecommendSettings& settings,
                                                     ExecutionContext& context);

nlohmann::ordered_json describe_parts(const ReviewParts& parts);
std::string parts_text(const ReviewParts& parts);

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

std::unique_ptr<Recommender> recommender_of_bytes(const std::string& bytes, const std::string& origin,
                                                  RecommenderKind kind, const ReviewCounts& counts);

}  // namespace olrank
