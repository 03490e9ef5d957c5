#pragma once

#include <memory>

#include "recommend/recommender_kinds.h"

namespace olrank {

/// FMF, functional matrix factorisation: a tree of users whose questions are items, liked, disliked or
/// unknown. Zhou, Yang and Zha, "Functional matrix factorizations for cold-start recommendation", SIGIR
/// 2011.
std::int64_t plan_fmf(const RecommendSettings& settings, const ReviewCounts& counts, int threads);
std::unique_ptr<RecommenderTraining> start_fmf(const RecommendSettings& settings, const TrainingData& data);
std::unique_ptr<Recommender> read_fmf(StateReader& state, const ReviewCounts& counts);

}  // namespace olrank
