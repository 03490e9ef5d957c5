#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "recommend/recommender_kinds.h"

namespace olrank {

/// Non-negative matrix factorisation of the observed ratings by squared error: users, then items, each row
/// given the other side. Kind `nmf`; its trained form is a ProductRecommender.
extern const std::array<std::string_view, 2> kNmfKeys;
std::int64_t plan_nmf(const RecommendSettings& settings, const ReviewCounts& counts, int threads);
std::unique_ptr<RecommenderTraining> start_nmf(const RecommendSettings& settings, const TrainingData& data);

}  // namespace olrank
