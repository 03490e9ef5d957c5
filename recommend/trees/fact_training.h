#pragma once

#include <memory>

#include "recommend/recommender_kinds.h"

namespace olrank {

/// FacT: two trees over what reviews mention, alternated. Jia, Toward Reliable Decision-making in
/// Information Systems, PhD thesis, UVA 2022, §4.2.
std::int64_t plan_fact(const RecommendSettings& settings, const ReviewCounts& counts, int threads);
std::unique_ptr<RecommenderTraining> start_fact(const RecommendSettings& settings,
                                                const TrainingData& data);
std::unique_ptr<Recommender> read_fact(StateReader& state, const ReviewCounts& counts);

}  // namespace olrank
