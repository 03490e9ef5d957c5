#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "recommend/factors/factor_matrix.h"
#include "recommend/recommender.h"

namespace olrank {

/// Scores are u_i · v_j. Also what nmf has.
class ProductRecommender : public Recommender {
 public:
  /// The matrices may change between calls.
  ProductRecommender(std::shared_ptr<const FactorMatrix> users, std::shared_ptr<const FactorMatrix> items)
      : users_(std::move(users)), items_(std::move(items)) {}

  void score(std::int64_t user, std::span<float> scores) const override;
  void save(StateWriter& state) const override;

 private:
  std::shared_ptr<const FactorMatrix> users_;
  std::shared_ptr<const FactorMatrix> items_;
};
std::unique_ptr<Recommender> read_product(StateReader& state, const ReviewCounts& counts);

/// Matrix factorisation for pairs: Rendle, Freudenthaler, Gantner, Schmidt-Thieme, "BPR: Bayesian
/// personalized ranking from implicit feedback", UAI 2009, over the pairs of Jia, PhD thesis, UVA 2022, Eq.
/// (4.1.4), with a bias of each item. Mini-batches with AdaGrad, as MTER's.
extern const std::array<std::string_view, 4> kBprmfKeys;
void set_bprmf_defaults(RecommendSettings& settings);
std::int64_t plan_bprmf(const RecommendSettings& settings, const ReviewCounts& counts, int threads);
std::unique_ptr<RecommenderTraining> start_bprmf(const RecommendSettings& settings,
                                                 const TrainingData& data);

/// Non-negative matrix factorisation of the observed ratings by squared error: users, then items, each row
/// given the other side. Kind `nmf`; its trained form is a ProductRecommender.
extern const std::array<std::string_view, 2> kNmfKeys;
std::int64_t plan_nmf(const RecommendSettings& settings, const ReviewCounts& counts, int threads);
std::unique_ptr<RecommenderTraining> start_nmf(const RecommendSettings& settings, const TrainingData& data);

}  // namespace olrank
