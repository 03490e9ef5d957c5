#include "sim/trial_figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/sim/small_trial.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

const TrialData& made_data() {
  static const TrialData made = small_trial_data("synth:small?queries=30&test_queries=20");
  return made;
}

std::vector<float> numbers(std::size_t count, std::uint64_t seed) {
  RngStream draws(make_key({.seed = seed, .purpose = Purpose::kProbe}), 0);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(draws.normal() + 2.0);
  return values;
}

TEST(CosineTest, MatchesDefinition) {
  const std::vector<float> a = {3, 4};
  EXPECT_DOUBLE_EQ(*cosine_of(a, std::vector<float>{6, 8}), 1.0);
  EXPECT_DOUBLE_EQ(*cosine_of(a, std::vector<float>{-3, -4}), -1.0);
  EXPECT_DOUBLE_EQ(*cosine_of(a, std::vector<float>{4, -3}), 0.0);
  EXPECT_DOUBLE_EQ(*cosine_of(a, std::vector<float>{1, 0}), 0.6);
  EXPECT_FALSE(cosine_of(a, std::vector<float>{0, 0}).has_value());
  EXPECT_FALSE(cosine_of(std::vector<float>{0, 0}, a).has_value());
}

TEST(CosineTest, ScoresAreCentredWithinTheirQueries) {
  const Dataset& eval_set = made_data().eval_set;
  const auto docs = static_cast<std::size_t>(eval_set.docs());
  const std::vector<float> a = numbers(docs, 1);
  const std::vector<float> b = numbers(docs, 2);
  double ab = 0.0;
  double aa = 0.0;
  double bb = 0.0;
  for (std::int64_t query = 0; query < eval_set.queries(); ++query) {
    const auto begin = static_cast<std::size_t>(eval_set.offset(query));
    const auto end = static_cast<std::size_t>(eval_set.offset(query + 1));
    for (std::size_t i = begin; i < end; ++i) {
      double x = a[i];
      double y = b[i];
      for (std::size_t j = begin; j < end; ++j) {
        x -= static_cast<double>(a[j]) / static_cast<double>(end - begin);
        y -= static_cast<double>(b[j]) / static_cast<double>(end - begin);
      }
      ab += x * y;
      aa += x * x;
      bb += y * y;
    }
  }
  // Sums of some hundred terms near one, each with an error of some units of 10⁻¹⁶.
  EXPECT_TRUE(std::fabs(*centred_cosine(eval_set, a, b) - ab / std::sqrt(aa * bb)) <= 1e-13);
  // What moves a whole query changes nothing but rounding to float.
  std::vector<float> moved = a;
  for (std::int64_t query = 0; query < eval_set.queries(); ++query) {
    for (std::int64_t i = eval_set.offset(query); i < eval_set.offset(query + 1); ++i)
      moved[i] += static_cast<float>(query);
  }
  EXPECT_NEAR(*centred_cosine(eval_set, moved, b), *centred_cosine(eval_set, a, b), 1e-5);
  EXPECT_FALSE(centred_cosine(eval_set, std::vector<float>(docs, 5.0F), b).has_value());
}

TEST(CosineTest, LinearModelsAreComparedByParametersAndOthersByScores) {
  const auto docs = static_cast<std::size_t>(made_data().eval_set.docs());
  const OfflineModel offline = {{1, 2, 2}, numbers(docs, 1)};
  const std::vector<float> scores = numbers(docs, 2);
  const ModelTensors linear = {{{"linear.weight", {1, 3}, {0, 0, 3}}}, {{"architecture", "linear"}}};
  EXPECT_DOUBLE_EQ(*cosine_to_offline(linear, made_data().eval_set, scores, offline), 2.0 / 3.0);
  // The mean of (3, 0, 0) and (−1, 2, 0) is (1, 1, 0).
  const ModelTensors ensemble = {
      {{"members.0.linear.weight", {1, 3}, {3, 0, 0}}, {"members.1.linear.weight", {1, 3}, {-1, 2, 0}}},
      {{"architecture", "linear"}, {"members", "2"}}};
  EXPECT_NEAR(*cosine_to_offline(ensemble, made_data().eval_set, scores, offline), 3.0 / std::sqrt(18.0),
              1e-15);
  const ModelTensors network = {{}, {{"architecture", "relu"}}};
  EXPECT_EQ(cosine_to_offline(network, made_data().eval_set, scores, offline),
            centred_cosine(made_data().eval_set, scores, offline.eval_scores));
}

TEST(CosineTest, IsReportedWithAnOfflineModel) {
  TrialData with = made_data();
  with.offline = OfflineModel{numbers(static_cast<std::size_t>(with.train.features()), 3), {}};
  StubRanker ranker(with.train.features());
  TrialStage stage({.rounds = 50, .cutoff = 10, .eval_every = 50}, with, ranker);
  EXPECT_FALSE(stage.trial.evaluate().cosine.has_value());  // θ is zero
  while (!stage.trial.finished()) stage.trial.play_round();
  const CurvePoint& point = stage.trial.evaluate();
  EXPECT_EQ(point.cosine, cosine_of(ranker.model().tensors[0].values, with.offline->theta));
  EXPECT_EQ(nlohmann::json::parse(curve_line(point, nullptr)).at("cosine").get<double>(), *point.cosine);
}

/// Tells ratios that follow from the round.
class RatioRanker : public StubRanker {
 public:
  using StubRanker::StubRanker;
  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override {
    RankedList list = StubRanker::rank(context, query, round);
    ratios_.assign(1, 1.0 / round);
    list.width_ratios = ratios_;
    return list;
  }

 private:
  std::vector<double> ratios_;
};

TEST(WidthRatioTest, QuantilesCoverRoundsSinceLastEvaluation) {
  const TrialSettings settings = {.rounds = 32, .cutoff = 10, .eval_every = 16};
  RatioRanker ranker(made_data().train.features());
  TrialStage stage(settings, made_data(), ranker);
  EXPECT_FALSE(stage.trial.evaluate().width_ratio.has_value());
  for (int round = 1; round <= 16; ++round) stage.trial.play_round();
  stage.trial.evaluate();
  for (int round = 17; round <= 27; ++round) stage.trial.play_round();
  // A saved trial remembers them.
  const std::string saved = stage.state();
  RatioRanker other_ranker(made_data().train.features());
  TrialStage other(settings, made_data(), other_ranker);
  load_state(other.trial, saved);
  // 1/27 to 1/17 are eleven numbers: the quantiles are the second, the sixth and the tenth.
  const CurvePoint& point = other.trial.evaluate();
  ASSERT_TRUE(point.width_ratio.has_value());
  EXPECT_NEAR(point.width_ratio->p10, 1.0 / 26.0, 1e-15);
  EXPECT_NEAR(point.width_ratio->median, 1.0 / 22.0, 1e-15);
  EXPECT_NEAR(point.width_ratio->p90, 1.0 / 18.0, 1e-15);
  const auto json = nlohmann::json::parse(curve_line(point, nullptr)).at("width_ratio");
  EXPECT_EQ(json.size(), 3U);
  EXPECT_EQ(json.at("median").get<double>(), point.width_ratio->median);
  EXPECT_EQ(json.at("p10").get<double>(), point.width_ratio->p10);
  EXPECT_EQ(json.at("p90").get<double>(), point.width_ratio->p90);
}

}  // namespace
}  // namespace olrank
