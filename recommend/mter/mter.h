#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "recommend/mter/mter_parameters.h"
#include "recommend/recommender.h"

namespace olrank {

/// The phrases that the training used as praise of each feature.
struct FeaturePhrases {
  std::vector<std::int64_t> ends = {0};
  std::vector<std::int32_t> phrases;

  std::span<const std::int32_t> of(std::int64_t feature) const {
    return {phrases.data() + ends[feature], static_cast<std::size_t>(ends[feature + 1] - ends[feature])};
  }
};
FeaturePhrases praising_phrases(const TrainingData& data);

/// MTER and its variants, trained: ranks by x̂_ij(p+1), explains by the features of the highest x̂_ijk and
/// the phrases of the highest Ŷ^U_ikw · Ŷ^I_jkw among those that praise the feature. Jia, PhD thesis, UVA
/// 2022, Eq. (4.1.8).
class MterRecommender : public Recommender {
 public:
  /// The parameters may change between calls; refresh() follows each change.
  MterRecommender(std::shared_ptr<const MterParameters> parameters, FeaturePhrases phrases,
                  double highest_rating);

  void refresh();
  void score(std::int64_t user, std::span<float> scores) const override;
  std::optional<Explanation> explain(std::int64_t user, std::int64_t item,
                                     const ReviewNames& names) const override;
  void save(StateWriter& state) const override;

  /// x̂_ijk; feature p is the overall rating.
  double preference(std::int64_t user, std::int64_t item, std::int64_t feature) const;
  /// Ŷ^U_ikw · Ŷ^I_jkw.
  double phrase_strength(std::int64_t user, std::int64_t item, std::int64_t feature,
                         std::int64_t phrase) const;

 private:
  double entry(std::size_t task, std::int64_t row, std::int64_t column, std::int64_t feature) const;

  std::shared_ptr<const MterParameters> parameters_;
  FeaturePhrases phrases_;
  double highest_rating_;
  AlignedVector<float> overall_;  // the core's contraction with F of the overall rating
};

extern const std::array<std::string_view, 11> kMterKeys;
extern const std::array<std::string_view, 6> kMterCanonicalKeys;

std::int64_t plan_mter(const RecommendSettings& settings, const ReviewCounts& counts, int threads);
std::unique_ptr<RecommenderTraining> start_mter(const RecommendSettings& settings,
                                                const TrainingData& data);
std::unique_ptr<Recommender> read_mter(StateReader& state, const ReviewCounts& counts);

}  // namespace olrank
