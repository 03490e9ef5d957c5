#pragma once

#include <memory>
#include <vector>

#include "recommend/recommender_kinds.h"

namespace olrank {

/// MostPopular: an item's score is its number of reviews in the training. The same list for everybody.
class PopularRecommender : public Recommender {
 public:
  explicit PopularRecommender(std::vector<float> counts) : counts_(std::move(counts)) {}

  void score(std::int64_t user, std::span<float> scores) const override;
  bool scores_new_users() const override { return true; }
  void score_new_user(std::span<const KnownReview> reviews, std::span<float> scores) const override;
  void save(StateWriter& state) const override;

 private:
  std::vector<float> counts_;  // by item
};

std::int64_t plan_popular(const RecommendSettings& settings, const ReviewCounts& counts, int threads);
std::unique_ptr<RecommenderTraining> start_popular(const RecommendSettings& settings,
                                                   const TrainingData& data);
std::unique_ptr<Recommender> read_popular(StateReader& state, const ReviewCounts& counts);

}  // namespace olrank
