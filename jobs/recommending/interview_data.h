#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "recommend/reviews.h"
#include "recommend/trees/tree_model.h"

namespace olrank {

/// Returns what the page of an interview shows (report/interview_page.h): both trees, the list of the best
/// `k` items at every node of the users' tree, and the words of questions and answers.
nlohmann::ordered_json interview_data(const TreeRecommender& recommender, const ReviewNames& names,
                                      std::int64_t k);

}  // namespace olrank
