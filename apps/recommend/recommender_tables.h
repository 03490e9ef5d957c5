#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "apps/command.h"
#include "apps/recommend/recommender_run.h"

namespace olrank {

/// Training reviews that a user of few has at most.
inline constexpr std::int64_t kFewReviews = 5;

/// What summary.json says of a finished training, with its figures on the test part.
nlohmann::ordered_json recommender_summary(const RecommendSettings& settings, const ReviewParts& parts,
                                           const RecommenderRun& run, ExecutionContext& context);

/// A finished training on stdout, as a table or as JSON.
void print_recommender_summary(const nlohmann::ordered_json& summary, const OutputFlags& output);

/// Lines "metric  mean ± half width" of what figures_json() gives.
std::string figures_table(const nlohmann::ordered_json& figures, int columns);

}  // namespace olrank
