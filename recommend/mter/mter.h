#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "recommend/recommender.h"

namespace olrank {

/// MTER and its variants. Jia, PhD thesis, UVA 2022, §4.1.
inline constexpr std::array<std::string_view, 11> kMterKeys = {"user_dimension",
                                                               "item_dimension",
                                                               "feature_dimension",
                                                               "phrase_dimension",
                                                               "learning_rate",
                                                               "core_learning_rate",
                                                               "factor_penalty",
                                                               "core_penalty",
                                                               "pair_weight",
                                                               "batch",
                                                               "pairs"};
inline constexpr std::array<std::string_view, 6> kMterCanonicalKeys = {
    "dimension", "learning_rate", "factor_penalty", "pair_weight", "batch", "pairs"};

std::int64_t plan_mter(const RecommendSettings& settings, const ReviewCounts& counts, int threads);
std::unique_ptr<RecommenderTraining> start_mter(const RecommendSettings& settings,
                                                const TrainingData& data);
std::unique_ptr<Recommender> read_mter(StateReader& state, const ReviewCounts& counts);

}  // namespace olrank
