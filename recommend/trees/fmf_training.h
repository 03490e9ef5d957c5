#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "recommend/recommender.h"

namespace olrank {

/// The settings that it reads.
inline constexpr std::array<std::string_view, 8> kFmfKeys = {
    "dimension",    "user_depth",   "node_rows",    "parent_factor",
    "user_penalty", "item_penalty", "least_change", "like_at"};

/// FMF, functional matrix factorisation: a tree of users whose questions are items, liked, disliked or
/// unknown. Zhou, Yang and Zha, "Functional matrix factorizations for cold-start recommendation", SIGIR
/// 2011.
std::int64_t plan_fmf(const RecommendSettings& settings, const ReviewCounts& counts, int threads);
std::unique_ptr<RecommenderTraining> start_fmf(const RecommendSettings& settings, const TrainingData& data);
std::unique_ptr<Recommender> read_fmf(StateReader& state, const ReviewCounts& counts);

}  // namespace olrank
