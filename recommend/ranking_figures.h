#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/runtime/execution_context.h"
#include "core/statistics/t_tests.h"
#include "recommend/recommender.h"
#include "recommend/reviews.h"

namespace olrank {

/// The cutoffs of Jia, PhD thesis, UVA 2022, Table 4.2.
inline constexpr std::array<std::int64_t, 4> kRankingCutoffs = {10, 20, 50, 100};

struct RankingOptions {
  std::vector<std::int64_t> cutoffs{kRankingCutoffs.begin(), kRankingCutoffs.end()};
  HeldOutGain gain = HeldOutGain::kBinary;
};

/// NDCG and hit rate of lists of all items that a user has no training review of, judged by the user's
/// held-out reviews. Users without a held-out review are not judged.
struct RankingFigures {
  std::vector<std::int64_t> cutoffs;
  std::vector<std::int32_t> users;        // judged, ascending
  std::vector<std::vector<double>> ndcg;  // by cutoff, then by place in `users`
  std::vector<std::vector<double>> hits;  // 1 where a held-out item is within the cutoff
  std::int64_t without_training = 0;      // users with held-out reviews, left out for lack of training ones

  double mean_ndcg(std::size_t cutoff) const { return mean_of(ndcg[cutoff]); }
};

/// Judges a recommender by the reviews `held_out`. Equal scores rank the item of the lower number first.
RankingFigures judge_recommender(ExecutionContext& context, const Recommender& recommender,
                                 const TrainingData& data, std::span<const std::int64_t> held_out,
                                 const RankingOptions& options);

/// The figures of those judged users who have at most `most` training reviews.
RankingFigures figures_of_few_reviews(const RankingFigures& figures, const TrainingData& data,
                                      std::int64_t most);

/// Cold start: users who are new, of whom the first `known` reviews in the order of the file are given, and
/// the others judge. Users with no more than `most_known` reviews are left out, so that every `known` up to
/// it judges the same users; and only the reviews after `most_known` judge.
RankingFigures judge_cold_start(ExecutionContext& context, const Recommender& recommender,
                                const Reviews& reviews, std::span<const std::int64_t> test,
                                std::int64_t known, std::int64_t most_known, const RankingOptions& options);

/// The `count` best items by score that `excluded` (ascending) does not hold, best first; ties as above.
std::vector<std::int32_t> best_items(std::span<const float> scores, std::span<const std::int32_t> excluded,
                                     std::int64_t count);

/// The places of the `count` largest values, largest first; of equal ones the first place.
std::vector<std::int32_t> largest_places(std::span<const double> values, std::int64_t count);

}  // namespace olrank
