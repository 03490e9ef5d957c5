// Approximate covariances compared with the exact one, in whole trials.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/neural/ranker_network.h"
#include "models/ranker_factory.h"
#include "tests/core/ops/network_fixture.h"
#include "tests/sim/small_trial.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

constexpr std::int64_t kCutoff = 6;

const TrialData& data() {
  static const TrialData made = small_trial_data("synth:small?queries=10&test_queries=10");
  return made;
}

RankerSettings ranker_settings(RankerKind kind, Covariance covariance, ShadowCovariance shadow) {
  RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kPaper);
  settings.name = "shadowed";
  settings.network.width = 4;
  settings.posterior.covariance = covariance;
  settings.posterior.shadow = shadow;
  settings.posterior.lambda = 0.5;
  return settings;
}

std::unique_ptr<OnlineRanker> make(const RankerSettings& settings) {
  return make_ranker(settings, data().train.features(), TrialKeys::of(1, 1, "perfect"), kCutoff);
}

Eigen::MatrixXd gradients(const NetworkShape& shape, const std::vector<float>& theta,
                          const FeatureMatrix& docs) {
  ExecutionContext context;
  std::vector<float> factors(docs.docs * shape.factors());
  tangent_factors(context, shape, theta, docs, factors);
  Eigen::MatrixXd rows(docs.docs, shape.parameters());
  for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
    const std::vector<double> g = slow_gradient(shape, factors.data() + doc * shape.factors());
    for (std::int64_t k = 0; k < shape.parameters(); ++k) rows(doc, k) = g[k];
  }
  return rows;
}

/// Records what the wrapped ranker reports, for tests to check.
class Watched : public OnlineRanker {
 public:
  explicit Watched(OnlineRanker& ranker) : ranker_(ranker) {}
  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override {
    const RankedList list = ranker_.rank(context, query, round);
    ratios.assign(list.width_ratios.begin(), list.width_ratios.end());
    turned = list.turned_decisions;
    return list;
  }
  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
    return ranker_.learn(context, feedback);
  }
  void describe(const QueryDocs& query, bool full, RoundDetail& detail) override {
    ranker_.describe(query, full, detail);
  }
  void score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const override {
    ranker_.score(context, docs, scores);
  }
  std::int64_t parameters() const override { return ranker_.parameters(); }
  ModelTensors model() const override { return ranker_.model(); }
  std::vector<RankerFigure> figures(ExecutionContext& context) const override {
    return ranker_.figures(context);
  }
  void save(StateWriter& state) const override { ranker_.save(state); }
  void load(StateReader& state) override { ranker_.load(state); }

  std::vector<double> ratios;
  Tally turned;

 private:
  OnlineRanker& ranker_;
};

/// σ(Δ) − α w > ½, written as the paper has it.
bool slow_certain(double difference, double alpha, double width_sq) {
  return 1.0 / (1.0 + std::exp(-difference)) - alpha * std::sqrt(std::max(0.0, width_sq)) > 0.5;
}

TEST(ShadowTest, RatiosTurnedDecisionsAndFalseCertaintyMatchSlowFormulas) {
  RankerSettings settings =
      ranker_settings(RankerKind::kOlRankNet, Covariance::kDiagonal, ShadowCovariance::kFull);
  settings.explore.alpha = 0.3;
  const auto ranker = make(settings);
  Watched watched(*ranker);
  const NetworkShape shape = network_shape(settings.network, data().train.features());
  const double scale = covariance_scale(settings.network);
  Eigen::MatrixXd a =
      settings.posterior.lambda * Eigen::MatrixXd::Identity(shape.parameters(), shape.parameters());
  TrialStage stage({.rounds = 80, .cutoff = kCutoff, .eval_every = 80}, data(), watched, 1, "perfect");
  stage.trial.evaluate();
  RoundDetail detail;
  Tally turned;
  Tally contradicted;
  std::int64_t below = 0;
  std::int64_t compared = 0;
  while (!stage.trial.finished()) {
    const PlayedRound& round = stage.trial.play_round(&detail, true);
    const auto grades = data().train.grades_of(round.query);
    const FeatureMatrix docs = data().train.features_of(round.query);
    const Eigen::MatrixXd g = gradients(shape, detail.theta[0], docs);
    const Eigen::MatrixXd inverse = a.inverse();
    Tally of_round;
    std::size_t at = 0;
    for (std::size_t x = 0; x < round.shown.size(); ++x) {
      for (std::size_t y = 0; y < round.shown.size(); ++y) {
        const auto i = static_cast<std::size_t>(round.shown[x]);
        const auto j = static_cast<std::size_t>(round.shown[y]);
        if (detail.certain[i * static_cast<std::size_t>(docs.docs) + j] != 0 && grades[i] != grades[j]) {
          ++contradicted.total;
          contradicted.count += grades[i] < grades[j] ? 1 : 0;
        }
        if (y <= x) continue;
        const Eigen::RowVectorXd d = g.row(round.shown[x]) - g.row(round.shown[y]);
        const double exact_sq = scale * (d * inverse * d.transpose())(0, 0);
        const double own_sq = detail.width_sq[i * static_cast<std::size_t>(docs.docs) + j];
        const double difference = std::fabs(detail.scores[i] - detail.scores[j]);
        ++of_round.total;
        of_round.count += slow_certain(difference, 0.3, own_sq) != slow_certain(difference, 0.3, exact_sq);
        if (!(exact_sq > 0.0)) continue;  // documents whose gradients are the same
        ASSERT_LT(at, watched.ratios.size());
        // Differences of forms in double whose terms are at most some thousand times their difference.
        ASSERT_TRUE(std::fabs(watched.ratios[at] / std::sqrt(own_sq / exact_sq) - 1.0) <= 1e-8)
            << round.round;
        below += watched.ratios[at] < 0.999 ? 1 : 0;
        ++compared;
        ++at;
      }
    }
    ASSERT_EQ(at, watched.ratios.size());
    ASSERT_EQ(watched.turned.total, of_round.total);
    ASSERT_EQ(watched.turned.count, of_round.count) << round.round;
    turned.count += of_round.count;
    turned.total += of_round.total;
    for (const auto& [winner, loser] : round.learned.pairs) {
      const Eigen::RowVectorXd d = g.row(winner) - g.row(loser);
      a += scale * d.transpose() * d;
    }
  }
  const CurvePoint& point = stage.trial.evaluate();
  EXPECT_EQ(point.decisions_differ.count, turned.count);
  EXPECT_EQ(point.decisions_differ.total, turned.total);
  EXPECT_EQ(point.false_certain.count, contradicted.count);
  EXPECT_EQ(point.false_certain.total, contradicted.total);
  EXPECT_GT(below, compared / 10);  // the diagonal is not the exact one
  EXPECT_GT(turned.count, 0);
  EXPECT_GT(contradicted.count, 0);
  EXPECT_LT(contradicted.count, contradicted.total);
}

TEST(ShadowTest, DecidesNothing) {
  for (const RankerKind kind : {RankerKind::kOlRankNet, RankerKind::kOlLambdaRank}) {
    for (const Covariance covariance :
         {Covariance::kDiagonal, Covariance::kDiagonalOfInverse, Covariance::kNone, Covariance::kFull}) {
      std::vector<std::string> lines[2];
      int at = 0;
      for (const ShadowCovariance shadow : {ShadowCovariance::kNone, ShadowCovariance::kFull}) {
        const auto ranker = make(ranker_settings(kind, covariance, shadow));
        TrialStage stage({.rounds = 30, .cutoff = kCutoff, .eval_every = 10}, data(), *ranker);
        stage.play_to(30, true, lines[at++]);
      }
      ASSERT_EQ(lines[0].size(), lines[1].size());
      for (std::size_t line = 0; line < lines[0].size(); ++line) {
        auto without = nlohmann::json::parse(lines[0][line]);
        auto with = nlohmann::json::parse(lines[1][line]);
        EXPECT_TRUE(without.at("width_ratio").is_null());
        EXPECT_EQ(with.at("width_ratio").is_null(), line == 0 || covariance == Covariance::kFull);
        if (covariance == Covariance::kNone && line > 0) {
          EXPECT_EQ(with.at("width_ratio").at("p90"), 0.0);
        }
        without.erase("width_ratio");
        with.erase("width_ratio");
        EXPECT_FALSE(without.contains("decisions_differ"));
        EXPECT_EQ(with.contains("decisions_differ"), line > 0 && covariance != Covariance::kFull);
        with.erase("decisions_differ");
        EXPECT_EQ(without, with);
      }
    }
  }
}

TEST(ShadowTest, ResumesFromAnyRoundToTheSameCurve) {
  const RankerSettings settings =
      ranker_settings(RankerKind::kOlRankNet, Covariance::kDiagonal, ShadowCovariance::kFull);
  expect_same_curve_from({0, 6, 7, 13, 20}, {.rounds = 20, .cutoff = kCutoff, .eval_every = 7}, data(),
                         [&] { return make(settings); });
}

}  // namespace
}  // namespace olrank
