#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "recommend/ranking_figures.h"

namespace olrank {

/// Each recommender after the first against the first, over the same users: by figure `difference`, `p` of
/// Student's paired test, and `p_holm` after Holm's correction over all figures of all these recommenders.
std::vector<nlohmann::ordered_json> compared_with_first(std::span<const RankingFigures> judged);

}  // namespace olrank
