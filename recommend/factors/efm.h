#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "recommend/recommender_kinds.h"

namespace olrank {

/// Explicit factor models: Zhang, Lai, Zhang, Zhang, Liu, Ma, "Explicit factor models for explainable
/// recommendation based on phrase-level sentiment analysis", SIGIR 2014. Ratings A ≈ U₁V₁ᵀ + H₁H₂ᵀ, users'
/// attention X ≈ U₁Zᵀ and items' quality Y ≈ V₁Zᵀ, all non-negative, over observed entries.
/// Deviation: rows are solved one by one given the others, where the paper has multiplicative updates.
extern const std::array<std::string_view, 7> kEfmKeys;
std::int64_t plan_efm(const RecommendSettings& settings, const ReviewCounts& counts, int threads);
std::unique_ptr<RecommenderTraining> start_efm(const RecommendSettings& settings, const TrainingData& data);
std::unique_ptr<Recommender> read_efm(StateReader& state, const ReviewCounts& counts);

}  // namespace olrank
