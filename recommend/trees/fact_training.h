#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "recommend/recommender_kinds.h"

namespace olrank {

/// The settings that it reads.
inline constexpr std::array<std::string_view, 10> kFactKeys = {
    "dimension", "user_depth",   "item_depth",   "node_rows",        "parent_factor",
    "personal",  "user_penalty", "item_penalty", "tree_pair_weight", "least_change"};

/// FacT: two trees over what reviews mention, alternated. Jia, Toward Reliable Decision-making in
/// Information Systems, PhD thesis, UVA 2022, §4.2.
std::int64_t plan_fact(const RecommendSettings& settings, const ReviewCounts& counts, int threads);
std::unique_ptr<RecommenderTraining> start_fact(const RecommendSettings& settings,
                                                const TrainingData& data);
std::unique_ptr<Recommender> read_fact(StateReader& state, const ReviewCounts& counts);

}  // namespace olrank
