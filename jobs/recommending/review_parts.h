#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/io/fingerprint.h"
#include "core/runtime/execution_context.h"
#include "recommend/recommend_settings.h"
#include "recommend/review_filter.h"
#include "recommend/review_split.h"
#include "recommend/training_data.h"

namespace olrank {

/// The reviews of a source, filtered and split: what a training and its judge see.
struct ReviewParts {
  Reviews reviews;
  ReviewSplit split;
  TrainingData training;
  std::int64_t merged = 0;  // repeated reviews
  FilterCounts filtered;
  std::int64_t untrained_users = 0;  // with reviews, but none in the training part
  Fingerprint fingerprint;           // of names, ratings and mentions after the filter
};

/// Reads or generates, merges, filters and splits. Throws InvalidArgument if nothing is left to train on.
/// The parts refer to their own reviews, so that they stay where they are.
std::unique_ptr<const ReviewParts> load_review_parts(const RecommendSettings& settings,
                                                     ExecutionContext& context);

/// Counts, for summaries.
nlohmann::ordered_json describe_parts(const ReviewParts& parts);
/// Returns the counts as a line for people.
std::string parts_text(const ReviewParts& parts);

}  // namespace olrank
