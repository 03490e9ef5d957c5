#include "recommend/popular.h"

#include <algorithm>

#include "core/io/state_archive.h"

namespace olrank {
namespace {

/// Counting takes one pass and nothing else.
class PopularTraining : public RecommenderTraining {
 public:
  explicit PopularTraining(const TrainingData& data) : data_(data), model_(counts()) {}

  std::int64_t passes() const override { return 1; }
  std::int64_t passed() const override { return passed_; }
  TrainingPassReport advance(ExecutionContext&) override { return {.pass = ++passed_}; }
  const Recommender& model() const override { return model_; }
  void save(StateWriter& state) const override { state.put("popular.passed", passed_); }
  void load(StateReader& state) override { passed_ = state.get_one<std::int64_t>("popular.passed"); }

 private:
  std::vector<float> counts() const {
    std::vector<float> counts(data_.by_item.rows());
    for (std::int64_t item = 0; item < data_.by_item.rows(); ++item)
      counts[item] = static_cast<float>(data_.by_item.count(item));
    return counts;
  }

  const TrainingData& data_;
  PopularRecommender model_;
  std::int64_t passed_ = 0;
};

}  // namespace

void PopularRecommender::score(std::int64_t, std::span<float> scores) const {
  std::copy(counts_.begin(), counts_.end(), scores.begin());
}

void PopularRecommender::score_new_user(std::span<const KnownReview>, std::span<float> scores) const {
  std::copy(counts_.begin(), counts_.end(), scores.begin());
}

void PopularRecommender::save(StateWriter& state) const {
  state.put("popular.counts", counts_);
}

std::int64_t plan_popular(const RecommendSettings&, const ReviewCounts& counts, int) {
  return counts.items * static_cast<std::int64_t>(sizeof(float));
}

std::unique_ptr<RecommenderTraining> start_popular(const RecommendSettings&, const TrainingData& data) {
  return std::make_unique<PopularTraining>(data);
}

std::unique_ptr<Recommender> read_popular(StateReader& state, const ReviewCounts& counts) {
  std::vector<float> by_item(counts.items);
  state.get_into("popular.counts", std::span<float>(by_item));
  return std::make_unique<PopularRecommender>(std::move(by_item));
}

}  // namespace olrank
