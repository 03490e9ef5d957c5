#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "recommend/recommender.h"

namespace olrank {

/// The factors that bprmf and nmf have learned: scores are u_i · v_j.
std::unique_ptr<Recommender> read_product(StateReader& state, const ReviewCounts& counts);

/// Matrix factorisation for pairs: Rendle, Freudenthaler, Gantner, Schmidt-Thieme, "BPR: Bayesian
/// personalized ranking from implicit feedback", UAI 2009, over the pairs of Jia, PhD thesis, UVA 2022, Eq.
/// (4.1.4), with a bias of each item. Mini-batches with AdaGrad, as MTER's.
inline constexpr std::array<std::string_view, 4> kBprmfKeys = {"dimension", "learning_rate",
                                                               "factor_penalty", "pairs"};
void set_bprmf_defaults(RecommendSettings& settings);
std::int64_t plan_bprmf(const RecommendSettings& settings, const ReviewCounts& counts, int threads);
std::unique_ptr<RecommenderTraining> start_bprmf(const RecommendSettings& settings,
                                                 const TrainingData& data);

/// Non-negative matrix factorisation of the observed ratings by squared error: users, then items, each row
/// given the other side. Kind `nmf`; its trained form is a ProductRecommender.
inline constexpr std::array<std::string_view, 2> kNmfKeys = {"dimension", "penalty"};
std::int64_t plan_nmf(const RecommendSettings& settings, const ReviewCounts& counts, int threads);
std::unique_ptr<RecommenderTraining> start_nmf(const RecommendSettings& settings, const TrainingData& data);

}  // namespace olrank
