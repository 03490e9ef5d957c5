#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "models/neural/ranker_network.h"
#include "models/ranker_factory.h"
#include "sim/curve.h"
#include "tests/models/neural/plain_training.h"
#include "tests/models/small_world.h"
#include "tests/sim/small_trial.h"
#include "tests/support/saved_state.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

// Rankers in whole trials: where models and simulation meet.

constexpr std::int64_t kCutoff = 10;

const TrialData& data() {
  static const TrialData made = small_trial_data("synth:small?queries=40&test_queries=20");
  return made;
}

TrialSettings settings(std::int64_t rounds, std::int64_t eval_every) {
  return {.rounds = rounds, .cutoff = kCutoff, .eval_every = eval_every};
}

/// Rankers by name, each as its protocol has it.
RankerSettings ranker_settings(const std::string& name) {
  const bool reference = name == "pairrank_reference";
  RankerSettings chosen;
  chosen.kind = value_named<RankerKind>(name.substr(0, name.find('_'))).value();
  chosen.bandit.interleaving = Interleaving::kProbabilistic;
  RankerSettings made =
      RankerSettings::defaults(chosen, reference ? ProtocolName::kReference : ProtocolName::kRecommended);
  made.name = name;
  made.bandit.interleaving = Interleaving::kProbabilistic;
  made.network.network = NetworkForm::kLinear;
  if (reference) made.posterior.covariance = Covariance::kDiagonalOfInverse;
  if (name == "pairrank_theory") {
    made.explore.alpha_schedule = AlphaSchedule::kTheory;
    made.explore.c1 = 0.01;
  }
  return made;
}

std::unique_ptr<OnlineRanker> make(const RankerSettings& settings, const TrialKeys& keys,
                                   const TrialData& on = data(), std::int64_t cutoff = kCutoff) {
  return make_ranker(settings, on.train.features(), keys, cutoff);
}

class LinearTrialsTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<OnlineRanker> make_it(std::uint64_t seed = 1,
                                        const std::string& user = "navigational") const {
    return make(ranker_settings(GetParam()), TrialKeys::of(seed, 1, user));
  }
};

INSTANTIATE_TEST_SUITE_P(All, LinearTrialsTest,
                         testing::Values("pairrank", "pairrank_reference", "pairrank_theory", "p2linrank",
                                         "pdgd", "dbgd", "ranknet"),
                         [](const auto& info) { return info.param; });

TEST_P(LinearTrialsTest, ResumesFromAnyRoundToTheSameCurve) {
  expect_same_curve_from(every_round(33), settings(33, 8), data(), [&] { return make_it(); });
}

/// log det A/det λI and α_t as they follow from the pairs, for two features.
TEST(LinearTheoryTest, CurveHasAlphaAndDeterminantOfTheLearnedPairs) {
  const TrialData two = small_trial_data("synth:realisable?features=2");
  RankerSettings made = ranker_settings("pairrank_theory");
  made.explore = {.alpha_schedule = AlphaSchedule::kTheory, .c1 = 2.0, .c2 = 3.0, .delta = 0.2};
  made.posterior.lambda = 0.5;
  const auto ranker = make(made, TrialKeys::of(1, 1, "informational"), two);
  TrialStage stage(settings(40, 40), two, *ranker, 1, "informational");
  double a = 0.5;
  double b = 0.0;
  double d = 0.5;
  while (!stage.trial.finished()) {
    const PlayedRound& round = stage.trial.play_round();
    const FeatureMatrix docs = two.train.features_of(round.query);
    for (const auto& [winner, loser] : round.learned.pairs) {
      const double x = double{docs.doc(winner)[0]} - double{docs.doc(loser)[0]};
      const double y = double{docs.doc(winner)[1]} - double{docs.doc(loser)[1]};
      a += x * x;
      b += x * y;
      d += y * y;
    }
  }
  const double log_det = std::log((a * d - b * b) / 0.25);
  EXPECT_GT(log_det, 1.0);
  std::map<std::string, double> figures;
  for (const RankerFigure& figure : stage.trial.evaluate().figures) figures[figure.name] = figure.value;
  EXPECT_NEAR(figures.at("log_det"), log_det, 1e-9 * log_det);
  const double alpha =
      2.0 * (TheoryAlpha::kClickNoise * std::sqrt(log_det - 2.0 * std::log(0.2)) + 3.0 * std::sqrt(0.5));
  EXPECT_NEAR(figures.at("alpha"), alpha, 1e-9 * alpha);
}

TEST(LabelTrialsTest, ResumesFromAnyRoundToTheSameCurve) {
  const LabelledQueries labels(data().train);
  for (const RankerKind kind : {RankerKind::kLambdaRankLabels, RankerKind::kRankNetOffline}) {
    for (const NetworkForm network : {NetworkForm::kLinear, NetworkForm::kMlp}) {
      RankerSettings made = RankerSettings::defaults(kind, ProtocolName::kRecommended);
      made.name = "labels";
      made.network.network = network;
      made.network.width = 6;
      made.trainer.epochs = 2;
      const auto make_it = [&] {
        return make_ranker(made, data().train.features(), TrialKeys::of(1, 1, "navigational"), kCutoff,
                           {.labels = &labels});
      };
      expect_same_curve_from({0, 8, 20, 33}, settings(33, 8), data(), make_it);
      std::vector<std::vector<std::string>> curves(2);
      for (const int threads : {1, 3}) {
        const auto ranker = make_it();
        TrialStage stage(settings(33, 8), data(), *ranker, 1, "navigational", threads);
        stage.play_to(33, true, curves[threads / 3]);
      }
      EXPECT_EQ(curves[0], curves[1]);
    }
  }
}

/// Returns the same documents with every grade turned round.
Dataset with_other_grades(const Dataset& data) {
  struct Memory {
    std::shared_ptr<const void> before;
    std::vector<std::uint8_t> grades;
  };
  auto memory = std::make_shared<Memory>();
  memory->before = data.contents().memory;
  for (const std::uint8_t grade : data.all_grades()) {
    memory->grades.push_back(static_cast<std::uint8_t>(data.max_grade() - grade));
  }
  Dataset::Contents contents = data.contents();
  contents.grades = memory->grades;
  contents.memory = memory;
  return Dataset(std::move(contents));
}

const TrialData& other_grades() {
  static const TrialData made = {with_other_grades(data().train), with_other_grades(data().eval_set),
                                 data().max_grade};
  return made;
}

TEST_P(LinearTrialsTest, RecordedFeedbackTeachesTheSameForAnyGrades) {
  const TemporaryFolder folder;
  const auto taught = make_it(6);
  CurvePoint traced;
  {
    TrialStage stage(settings(80, 40), data(), *taught, 6);
    Trace trace(folder / "trace", false, "{}");
    RoundDetail detail;
    while (!stage.trial.finished()) {
      const PlayedRound& round = stage.trial.play_round(&detail);
      trace.write(round, data().train.qid(round.query), detail);
    }
    EXPECT_FALSE(std::filesystem::exists(folder / "trace"));
    trace.close();
    traced = stage.trial.evaluate();
  }
  std::string states[2];
  CurvePoint points[2];
  for (const int which : {0, 1}) {
    const TrialData& on = which == 0 ? data() : other_grades();
    const RecordedFeedback recorded = RecordedFeedback::read(folder / "trace", on.train);
    const auto ranker = make_it(6);
    ExecutionContext execution;
    Trial trial(settings(80, 40), on, {.recorded = &recorded}, TrialKeys::of(6, 1, "recorded"), *ranker,
                execution);
    while (!trial.finished()) trial.play_round();
    states[which] = state_of(*ranker);
    points[which] = trial.evaluate();
  }
  EXPECT_EQ(states[0], states[1]);
  // The record teaches what the rounds taught: learning depends on the feedback alone.
  EXPECT_EQ(states[0], state_of(*taught));
  EXPECT_NE(points[0].online_ndcg, points[1].online_ndcg);
  EXPECT_EQ(points[0].pairs, traced.pairs);
  EXPECT_EQ(points[0].offline_ndcg, traced.offline_ndcg);
  EXPECT_EQ(points[0].online_ndcg, traced.online_ndcg);
  EXPECT_EQ(points[0].discounted_ndcg, traced.discounted_ndcg);
  // Nothing is known of the documents below the recorded ranks.
  EXPECT_FALSE(points[0].regret || points[0].examined_regret || points[0].certain_share);
}

TEST_P(LinearTrialsTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  // More than 4,096 documents to score and more than 2,048 pairs to train on: several blocks of each.
  static const TrialData large = small_trial_data("synth:small?queries=600&test_queries=500&docs=20");
  ASSERT_GT(large.eval_set.docs(), 2 * 4096);
  RankerSettings all_pairs = ranker_settings(GetParam());
  all_pairs.feedback.pairs = PairRule::kAll;
  const TrialKeys keys = TrialKeys::of(2, 1, "informational");
  std::string first;
  std::vector<std::string> first_lines;
  for (const int threads : {1, 2, 4}) {
    const auto ranker = make(all_pairs, keys, large);
    TrialStage stage(settings(600, 200), large, *ranker, 2, "informational", threads);
    std::vector<std::string> lines;
    stage.play_to(600, true, lines);
    if (threads == 1) {
      first = stage.state();
      first_lines = lines;
      if (GetParam().starts_with("pairrank")) {
        EXPECT_GT(stage.trial.latest_point().pairs, 2 * 2048);
      }
    }
    EXPECT_EQ(fingerprint_of(stage.state()), fingerprint_of(first)) << threads;
    EXPECT_EQ(lines, first_lines) << threads;
  }
}

// All that a linear ranker's detailed trace says can be computed again from the trace and the data alone.

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::int64_t kTracedRounds = 100;

/// Few queries of few documents, so that the same pairs come back many times.
const TrialData& few_queries() {
  static const TrialData made = small_trial_data("synth:small?queries=4&test_queries=5&docs=6");
  return made;
}

struct TracedRound {
  std::int64_t query = 0;
  Matrix features;  // [V × d]
  std::vector<double> scores;
  std::vector<std::int32_t> shown;
  std::vector<std::array<std::int32_t, 2>> pairs;
  std::vector<std::vector<int>> certain;
  nlohmann::json json;
};

std::vector<TracedRound> traced_rounds(const RankerSettings& settings, const TrialData& on = few_queries(),
                                       std::int64_t count = kTracedRounds) {
  const TemporaryFolder folder;
  const auto ranker = make(settings, TrialKeys::of(1, 1, "navigational"), on);
  TrialStage stage({.rounds = count, .cutoff = kCutoff, .eval_every = count}, on, *ranker);
  Trace trace(folder / "trace", true, "{}");
  RoundDetail detail;
  while (!stage.trial.finished()) {
    const PlayedRound& round = stage.trial.play_round(&detail, true);
    trace.write(round, on.train.qid(round.query), detail);
  }
  trace.close();
  std::vector<TracedRound> rounds;
  std::ifstream file(folder / "trace");
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    TracedRound round;
    round.json = nlohmann::json::parse(line);
    while (on.train.qid(round.query) != round.json.at("qid").get<std::string>()) ++round.query;
    const FeatureMatrix docs = on.train.features_of(round.query);
    round.features =
        Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
            docs.values, docs.docs, docs.features)
            .cast<double>();
    round.scores = round.json.at("scores").get<std::vector<double>>();
    round.shown = round.json.at("shown").get<std::vector<std::int32_t>>();
    round.pairs = round.json.at("pairs").get<std::vector<std::array<std::int32_t, 2>>>();
    round.certain = round.json.at("certain").get<std::vector<std::vector<int>>>();
    rounds.push_back(std::move(round));
  }
  EXPECT_EQ(std::ssize(rounds), count);
  return rounds;
}

Eigen::VectorXd vector_of(const nlohmann::json& numbers) {
  const std::vector<double> values = numbers;
  return Eigen::Map<const Eigen::VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
}

/// Dot products of some ten single-precision numbers below 100: 10⁻⁵ of the sum of absolute terms.
bool scores_fit(const std::vector<double>& scores, const Matrix& features, const Eigen::VectorXd& theta) {
  for (Eigen::Index doc = 0; doc < features.rows(); ++doc) {
    const double size = features.row(doc).cwiseAbs().dot(theta.cwiseAbs());
    if (!(std::fabs(scores[doc] - features.row(doc).dot(theta)) <= 1e-5 * size)) {
      return false;
    }
  }
  return true;
}

/// Each document that is certainly before a shown one is shown above it.
void expect_shown_respects(const TracedRound& round) {
  std::vector<int> above(round.certain.size(), 0);
  for (const std::int32_t doc : round.shown) {
    for (std::size_t i = 0; i < above.size(); ++i) ASSERT_TRUE(round.certain[i][doc] == 0 || above[i] != 0);
    ASSERT_EQ(std::exchange(above[doc], 1), 0);
  }
}

/// Returns the matrix that widths are a quadratic form of: docs/MATH.md, "Full covariance".
Matrix precision_of(const Matrix& a, Covariance structure) {
  const Matrix inverse = a.ldlt().solve(Matrix::Identity(a.rows(), a.cols()));
  if (structure == Covariance::kDiagonal) return a.diagonal().cwiseInverse().asDiagonal();
  if (structure == Covariance::kDiagonalOfInverse) return inverse.diagonal().asDiagonal();
  return inverse;
}

/// α_t = c₁(√(ν² log(det A/(δ² det λI))) + √λ c₂), docs/MATH.md, "Certain order"; A is its diagonal where
/// only that is kept.
double theoretical_alpha(const Matrix& a, const RankerSettings& settings) {
  const bool diagonal = settings.posterior.covariance == Covariance::kDiagonal;
  const Matrix of = diagonal ? Matrix(a.diagonal().asDiagonal()) : a;
  const double lambda = settings.posterior.lambda;
  const double log_det =
      (Eigen::SelfAdjointEigenSolver<Matrix>(of).eigenvalues().array() / lambda).log().sum();
  const ExplorationSettings& explore = settings.explore;
  const double nu = TheoryAlpha::kClickNoise;
  return explore.c1 * (std::sqrt(nu * nu * (log_det - std::log(explore.delta * explore.delta))) +
                       std::sqrt(lambda) * explore.c2);
}

void expect_pairrank_follows(const RankerSettings& settings) {
  const ExplorationSettings& explore = settings.explore;
  const std::int64_t features = few_queries().train.features();
  Matrix a = 0.5 * Matrix::Identity(features, features);
  std::vector<Eigen::VectorXd> seen;  // x_winner − x_loser of every pair so far
  int certain = 0;
  int uncertain = 0;
  for (const TracedRound& round : traced_rounds(settings)) {
    const auto docs = static_cast<std::size_t>(round.features.rows());
    const Eigen::VectorXd theta = vector_of(round.json.at("theta"));
    ASSERT_EQ(theta.size(), features);
    ASSERT_TRUE(scores_fit(round.scores, round.features, theta));
    // The parameters are the optimum over all pairs before: their gradient vanishes up to the trainer's
    // tolerance of 10⁻⁶ a pair and θ's rounding to single precision, 6·10⁻⁸ of it times curvature ≤ n.
    Eigen::VectorXd gradient = 0.5 * theta;
    for (const Eigen::VectorXd& x : seen) gradient -= x / (1.0 + std::exp(x.dot(theta)));
    const auto n = static_cast<double>(seen.size());
    ASSERT_TRUE(gradient.norm() <= 1e-6 * n + 1e-6 * (1.0 + n) * theta.norm()) << gradient.norm();
    const std::vector<std::vector<double>> width_sq = round.json.at("width_sq");
    const Matrix precision = precision_of(a, settings.posterior.covariance);
    const double alpha =
        explore.alpha_schedule == AlphaSchedule::kTheory ? theoretical_alpha(a, settings) : explore.alpha;
    for (std::size_t i = 0; i < docs; ++i) {
      for (std::size_t j = 0; j < docs; ++j) {
        const Eigen::RowVectorXd g = round.features.row(static_cast<Eigen::Index>(i)) -
                                     round.features.row(static_cast<Eigen::Index>(j));
        const double expected = (g * precision).dot(g);
        // Cancellation from quadratic forms of at most d/λ = 20 to 100: 10⁻¹² of a few tens.
        ASSERT_TRUE(std::fabs(width_sq[i][j] - expected) <= 1e-10 * (1.0 + expected));
        const double z = round.scores[i] - round.scores[j];
        const double margin = 1.0 / (1.0 + std::exp(-z)) - alpha * std::sqrt(width_sq[i][j]) - 0.5;
        if (z == 0.0 || !(std::fabs(margin) > 1e-10)) continue;
        ASSERT_EQ(round.certain[i][j], margin > 0.0 ? 1 : 0);
        ++(margin > 0.0 ? certain : uncertain);
      }
    }
    expect_shown_respects(round);
    for (const auto& [winner, loser] : round.pairs) {
      seen.push_back((round.features.row(winner) - round.features.row(loser)).transpose());
      a += seen.back() * seen.back().transpose();
    }
  }
  EXPECT_GT(certain, 500);
  EXPECT_GT(uncertain, 500);
  EXPECT_GT(seen.size(), 50U);
}

TEST(LinearTraceTest, PairRankFollowsFromItsTrace) {
  for (const Covariance covariance :
       {Covariance::kFull, Covariance::kDiagonal, Covariance::kDiagonalOfInverse}) {
    for (const AlphaSchedule schedule : {AlphaSchedule::kConstant, AlphaSchedule::kTheory}) {
      SCOPED_TRACE(std::string(name_of(covariance)) + ", " + std::string(name_of(schedule)));
      RankerSettings settings = RankerSettings::defaults(RankerKind::kPairRank, ProtocolName::kRecommended);
      settings.name = "traced";
      settings.posterior.covariance = covariance;
      settings.posterior.lambda = 0.5;
      settings.explore.alpha_schedule = schedule;
      settings.explore.alpha = 0.3;
      settings.explore.c1 = 0.1;
      settings.explore.c2 = 0.5;
      expect_pairrank_follows(settings);
    }
  }
}

TEST(LinearTraceTest, P2LinRankFollowsFromItsTrace) {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kP2LinRank, ProtocolName::kRecommended);
  settings.name = "p2";
  settings.posterior.members = 3;
  settings.posterior.lambda = 0.5;
  int certain = 0;
  int uncertain = 0;
  int apart = 0;  // rounds whose members differ
  for (const TracedRound& round : traced_rounds(settings)) {
    ASSERT_EQ(round.json.at("thetas").size(), 3U);
    std::vector<Eigen::VectorXd> members;
    Eigen::VectorXd mean = Eigen::VectorXd::Zero(few_queries().train.features());
    for (const auto& numbers : round.json.at("thetas")) {
      members.push_back(vector_of(numbers));
      mean += members.back() / 3.0;
    }
    apart += (members[0] - members[1]).norm() > 1e-3 && (members[1] - members[2]).norm() > 1e-3 ? 1 : 0;
    ASSERT_TRUE(scores_fit(round.scores, round.features, mean));
    const auto docs = static_cast<std::size_t>(round.features.rows());
    for (std::size_t i = 0; i < docs; ++i) {
      for (std::size_t j = 0; j < docs; ++j) {
        const Eigen::RowVectorXd g = round.features.row(static_cast<Eigen::Index>(i)) -
                                     round.features.row(static_cast<Eigen::Index>(j));
        double least = 1e300;
        for (const Eigen::VectorXd& member : members) least = std::min(least, g.dot(member));
        // Scores below a hundred in single precision are off by 10⁻⁵ of it, and so is what counts as
        // rounding.
        if (i == j || !(std::fabs(least) > 1e-3)) continue;
        ASSERT_EQ(round.certain[i][j], least > 0.0 ? 1 : 0);
        ++(least > 0.0 ? certain : uncertain);
      }
    }
    expect_shown_respects(round);
  }
  EXPECT_GT(certain, 500);
  EXPECT_GT(uncertain, 500);
  EXPECT_GT(apart, 40);
}

/// The clicks on examined documents, the last of which is the one below the last click.
std::vector<std::uint8_t> examined_clicks(const TracedRound& round) {
  std::vector<std::uint8_t> clicks = round.json.at("clicks");
  const auto until_last = clicks.rend() - std::find(clicks.rbegin(), clicks.rend(), 1);
  clicks.resize(std::min(clicks.size(), static_cast<std::size_t>(until_last == 0 ? 0 : until_last + 1)));
  return clicks;
}

std::vector<std::array<std::int32_t, 2>> adjacent_pairs(const TracedRound& round) {
  const std::vector<std::uint8_t> clicks = examined_clicks(round);
  std::vector<std::array<std::int32_t, 2>> pairs;
  for (std::size_t rank = 0; rank + 1 < clicks.size(); rank += 2) {
    if (clicks[rank] == clicks[rank + 1]) continue;
    const bool first = clicks[rank] != 0;
    pairs.push_back({round.shown[first ? rank : rank + 1], round.shown[first ? rank + 1 : rank]});
  }
  return pairs;
}

/// There are as many pairs as examined documents of the rarer kind, and no document wins or loses twice.
void expect_matched(const TracedRound& round) {
  const std::vector<std::uint8_t> clicks = examined_clicks(round);
  std::set<std::int32_t> kinds[2];
  for (std::size_t rank = 0; rank < clicks.size(); ++rank)
    kinds[clicks[rank] != 0 ? 0 : 1].insert(round.shown[rank]);
  ASSERT_EQ(round.pairs.size(), std::min(kinds[0].size(), kinds[1].size()));
  for (const auto& pair : round.pairs)
    for (int side = 0; side < 2; ++side) ASSERT_EQ(kinds[side].erase(pair[side]), 1U);
}

/// After the transitive closure, whatever no uncertain pair joins stays in the order of the scores. Returns
/// the number of such blocks.
int expect_blocks(const TracedRound& round) {
  auto closed = round.certain;
  const std::size_t docs = closed.size();
  for (std::size_t between = 0; between < docs; ++between)
    for (std::size_t i = 0; i < docs; ++i)
      for (std::size_t j = 0; j < docs; ++j) closed[i][j] |= closed[i][between] & closed[between][j];
  std::vector<std::int32_t> order(docs);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return round.scores[a] > round.scores[b]; });
  const auto is_cut = [&](std::size_t place) {
    for (std::size_t i = 0; i < place; ++i)
      for (std::size_t j = place; j < docs; ++j)
        if (closed[order[i]][order[j]] == 0) return false;
    return true;
  };
  int blocks = 0;
  std::set<std::int32_t> block;
  for (std::size_t place = 0; place < docs; ++place) {
    block.insert(order[place]);
    if (!is_cut(place + 1)) continue;
    ++blocks;
    const std::size_t size = block.size();
    for (std::size_t rank = place + 1 - size; rank < std::min(place + 1, round.shown.size()); ++rank)
      EXPECT_EQ(block.erase(round.shown[rank]), 1U);
    block.clear();
  }
  return blocks;
}

/// Checks each round of a trace by plain formulas. Scores and widths come from float32 factors and sums of
/// some ten terms.
void expect_network_follows(const RankerSettings& settings) {
  const NetworkShape shape = network_shape(settings.network, data().train.features());
  const auto p = static_cast<Eigen::Index>(shape.parameters());
  const double lambda = settings.posterior.lambda;
  // 1/m in A and m before λ under `paper`, neither under `reference`.
  const double width =
      settings.network.scaling == WidthScaling::kWidth ? static_cast<double>(shape.width) : 1.0;
  const bool batches = settings.trainer.loss == LossForm::kMean;
  const std::vector<TracedRound> rounds = traced_rounds(settings, data(), 60);
  const std::vector<float> first = rounds.front().json.at("theta");
  ASSERT_EQ(std::ssize(first), p);
  Matrix a = lambda * Matrix::Identity(p, p);
  Matrix other = a;    // observes at the parameters on the other side of the training
  bool apart = false;  // whether a width by the other is off by ten times the rounding, at the end
  int most_blocks = 0;
  std::vector<PlainPair> seen;
  std::size_t refreshed = 0;  // pairs when the curvature was estimated last
  double curvature = 0.0;
  int certain = 0;
  int uncertain = 0;
  int trained = 0;
  for (std::size_t number = 0; number < rounds.size(); ++number) {
    SCOPED_TRACE(number);
    const TracedRound& round = rounds[number];
    const std::vector<double> theta = round.json.at("theta");
    const FeatureMatrix docs = data().train.features_of(round.query);
    Matrix g(docs.docs, p);
    double magnitude = 0.0;
    for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
      const SlowScore slow = slow_score(shape, theta, docs.doc(doc).data());
      magnitude = std::max(magnitude, slow.magnitude);
      ASSERT_NEAR(round.scores[doc], slow.score, 1e-5 * (1.0 + slow.magnitude));
      std::vector<double> gradient;
      plain_network(shape, theta, docs.doc(doc).data(), &gradient);
      g.row(doc) = Eigen::Map<const Eigen::RowVectorXd>(gradient.data(), p);
      ASSERT_TRUE(number > 0 || shape.biases || std::abs(round.scores[doc]) <= 1e-6 * slow.magnitude);
    }
    const std::vector<std::vector<double>> width_sq = round.json.at("width_sq");
    const auto form_by = [&](const Matrix& observed) -> Matrix {
      return g * precision_of(observed, settings.posterior.covariance) * g.transpose() / width;
    };
    const bool last = number + 1 == rounds.size();
    const Matrix form = form_by(a);
    const Matrix other_form = last ? form_by(other) : form;
    for (std::int64_t i = 0; i < docs.docs; ++i) {
      for (std::int64_t j = 0; j < docs.docs; ++j) {
        const auto width_by = [&](const Matrix& m) { return m(i, i) + m(j, j) - 2.0 * m(i, j); };
        const double expected = width_by(form);
        const double rounding = 1e-3 * expected + 1e-6 * form.diagonal().maxCoeff();
        ASSERT_NEAR(width_sq[i][j], expected, rounding);
        apart = apart || std::abs(width_by(other_form) - expected) > 10.0 * rounding;
        // Differences of scores up to 1e-6 of the output layer's absolute terms are no order.
        const double z = round.scores[i] - round.scores[j];
        const double least = 1e-6 * magnitude;
        ASSERT_TRUE(std::abs(z) >= 0.99 * least || round.certain[i][j] == 0);
        const double margin =
            1.0 / (1.0 + std::exp(-z)) - settings.explore.alpha * std::sqrt(width_sq[i][j]) - 0.5;
        if (!(std::abs(z) > 1.01 * least) || !(std::abs(margin) > 1e-6)) continue;
        ASSERT_EQ(round.certain[i][j], margin > 0.0 ? 1 : 0);
        ++(margin > 0.0 ? certain : uncertain);
      }
    }
    ASSERT_EQ(std::ssize(round.shown), std::min(kCutoff, docs.docs));
    if (batches) {
      most_blocks = std::max(most_blocks, expect_blocks(round));
      expect_matched(round);
    } else {
      expect_shown_respects(round);
      ASSERT_EQ(round.pairs, adjacent_pairs(round));
    }
    ASSERT_EQ(round.json.at("step").is_null(), batches || round.pairs.empty());
    for (const auto& [winner, loser] : round.pairs)
      seen.push_back({docs.doc(winner).data(), docs.doc(loser).data()});
    if (last) break;
    const std::vector<float> arrived = rounds[number + 1].json.at("theta");
    for (const auto& [winner, loser] : round.pairs) {
      for (const ObserveAt at : {ObserveAt::kBefore, ObserveAt::kAfter}) {
        const auto gradient_of = [&](std::int32_t doc) -> Eigen::RowVectorXd {
          if (at == ObserveAt::kBefore) return g.row(doc);
          std::vector<double> gradient;
          plain_network(shape, in_double(arrived), docs.doc(doc).data(), &gradient);
          return Eigen::Map<const Eigen::RowVectorXd>(gradient.data(), p);
        };
        const Eigen::RowVectorXd difference = gradient_of(winner) - gradient_of(loser);
        (at == settings.posterior.observe_at ? a : other) += difference.transpose() * difference / width;
      }
    }
    if (round.pairs.empty()) {
      ASSERT_EQ(in_double(arrived), theta);
      continue;
    }
    ++trained;
    std::vector<double> at = batches ? in_double(first) : theta;
    const std::vector<double> began = at;
    std::vector<double> gradient;
    if (batches) {
      // Adam from θ₀ on all pairs at once.
      const double share = 1.0 / static_cast<double>(seen.size());
      PlainAdam adam(at.size());
      for (std::int64_t epoch = 0; epoch < settings.trainer.epochs; ++epoch) {
        plain_loss(shape, at, seen, share, 0.0, {}, &gradient);
        for (std::size_t k = 0; k < at.size(); ++k) gradient[k] += lambda * share * at[k];
        adam.step(settings.trainer.learning_rate, gradient, at);
      }
    } else {
      if (refreshed == 0 || 10 * seen.size() >= 11 * refreshed) {
        refreshed = seen.size();
        curvature = plain_curvature(shape, theta, seen);
      }
      // A power iteration comes from below, to some percent; a step that was too long is halved.
      const double longest = settings.trainer.learning_rate / (curvature + width * lambda);
      const double step = round.json.at("step");
      const double whole = step > 0.7 * longest ? step : 2.0 * step;
      ASSERT_TRUE(0.999 * longest <= whole && whole <= 1.05 * longest) << whole / longest;
      for (std::int64_t count = 0; count < settings.trainer.steps; ++count) {
        plain_loss(shape, at, seen, 1.0, 0.5 * width * lambda, first, &gradient);
        for (std::size_t k = 0; k < at.size(); ++k) at[k] -= step * gradient[k];
      }
    }
    double way = 0.0;
    for (std::size_t k = 0; k < at.size(); ++k) way += (at[k] - began[k]) * (at[k] - began[k]);
    // Gradients in float32 are off by 1e-6 of their terms, which cancel to a hundredth: 1e-4 of the way. In
    // gradient descent the rounding of θ to float32 after each step adds up, too.
    ASSERT_LE(distance_of(arrived, at), (batches ? 1e-4 : 3e-4) * std::sqrt(way));
  }
  EXPECT_EQ(most_blocks > 1, batches);
  EXPECT_TRUE(apart || settings.posterior.observe_at == ObserveAt::kBefore);
  EXPECT_GT(trained, 20);
  EXPECT_GT(certain, 50);
  EXPECT_GT(uncertain, 100);
}

TEST(NeuralTraceTest, OlRankNetFollowsFromItsTrace) {
  struct Row {
    Covariance covariance;
    Parameterisation parameterisation;
    WidthScaling scaling;
    std::int64_t depth;
    double alpha;
    double lambda;
    ObserveAt observe_at = ObserveAt::kBefore;
  };
  constexpr auto kNtk = Parameterisation::kNtk;
  constexpr auto kStandard = Parameterisation::kStandard;
  for (const Row& row :
       {Row{Covariance::kFull, kNtk, WidthScaling::kWidth, 2, 0.1, 0.1},
        Row{Covariance::kDiagonal, kNtk, WidthScaling::kWidth, 3, 0.1, 0.1},
        Row{Covariance::kFull, kNtk, WidthScaling::kWidth, 2, 0.01, 10.0},
        Row{Covariance::kFull, kStandard, WidthScaling::kWidth, 2, 0.01, 10.0},
        Row{Covariance::kDiagonal, kStandard, WidthScaling::kNone, 2, 0.01, 10.0},
        Row{Covariance::kFull, kNtk, WidthScaling::kNone, 2, 0.01, 10.0},
        Row{Covariance::kFull, kNtk, WidthScaling::kWidth, 2, 0.1, 0.1, ObserveAt::kAfter}}) {
    SCOPED_TRACE(testing::Message() << name_of(row.covariance) << ", " << name_of(row.parameterisation)
                                    << ", " << name_of(row.scaling) << ", lambda " << row.lambda);
    RankerSettings settings = RankerSettings::defaults(RankerKind::kOlRankNet, ProtocolName::kPaper);
    settings.name = "traced";
    settings.network.width = 16;
    settings.network.depth = row.depth;
    settings.network.parameterisation = row.parameterisation;
    settings.network.scaling = row.scaling;
    settings.posterior.covariance = row.covariance;
    settings.posterior.lambda = row.lambda;
    settings.explore.alpha = row.alpha;
    settings.posterior.observe_at = row.observe_at;
    expect_network_follows(settings);
  }
  for (const Covariance covariance : {Covariance::kFull, Covariance::kDiagonal}) {
    SCOPED_TRACE(testing::Message() << "reference, " << name_of(covariance));
    RankerSettings settings = RankerSettings::defaults(RankerKind::kOlRankNet, ProtocolName::kReference);
    settings.name = "traced";
    settings.network.width = 16;
    settings.posterior.covariance = covariance;
    settings.explore.alpha = 0.01;
    settings.trainer.learning_rate = 0.01;
    settings.trainer.restart = Restart::kFirst;
    expect_network_follows(settings);
  }
}

// A shadow compares the widths of an approximate covariance with those of the exact one.

constexpr std::int64_t kShadowCutoff = 6;

const TrialData& shadow_data() {
  static const TrialData made = small_trial_data("synth:small?queries=10&test_queries=10");
  return made;
}

RankerSettings shadow_settings(RankerKind kind, Covariance covariance, ShadowCovariance shadow) {
  RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kPaper);
  settings.name = "shadowed";
  settings.network.width = 4;
  settings.posterior.covariance = covariance;
  settings.posterior.shadow = shadow;
  settings.posterior.lambda = 0.5;
  return settings;
}

std::unique_ptr<OnlineRanker> make_shadowed(const RankerSettings& settings) {
  return make(settings, TrialKeys::of(1, 1, "perfect"), shadow_data(), kShadowCutoff);
}

/// σ(Δ) − α w > ½, written as the paper has it.
bool slow_certain(double difference, double alpha, double width_sq) {
  return 1.0 / (1.0 + std::exp(-difference)) - alpha * std::sqrt(std::max(0.0, width_sq)) > 0.5;
}

TEST(ShadowTest, RatiosTurnedDecisionsAndFalseCertaintyMatchSlowFormulas) {
  RankerSettings settings =
      shadow_settings(RankerKind::kOlRankNet, Covariance::kDiagonal, ShadowCovariance::kFull);
  settings.explore.alpha = 0.3;
  const auto ranker = make_shadowed(settings);
  const NetworkShape shape = network_shape(settings.network, shadow_data().train.features());
  const double scale = covariance_scale(settings.network);
  Eigen::MatrixXd a =
      settings.posterior.lambda * Eigen::MatrixXd::Identity(shape.parameters(), shape.parameters());
  TrialStage stage({.rounds = 80, .cutoff = kShadowCutoff, .eval_every = 80}, shadow_data(), *ranker, 1,
                   "perfect");
  stage.trial.evaluate();
  RoundDetail detail;
  TestContext context;
  Tally turned;
  Tally contradicted;
  std::int64_t below = 0;
  std::int64_t compared = 0;
  while (!stage.trial.finished()) {
    // The list that the trial will get, too.
    const auto number = static_cast<std::uint32_t>(stage.trial.rounds_played() + 1);
    const std::int64_t asked = stage.queries.query_of(number);
    const Dataset& train = shadow_data().train;
    const RankedList list =
        ranker->rank(context.round, {asked, train.offset(asked), train.features_of(asked)}, number);
    const std::vector<double> ratios(list.width_ratios.begin(), list.width_ratios.end());
    const Tally turned_here = list.turned_decisions;
    const PlayedRound& round = stage.trial.play_round(&detail, true);
    const auto grades = shadow_data().train.grades_of(round.query);
    const FeatureMatrix docs = shadow_data().train.features_of(round.query);
    std::vector<float> factors(docs.docs * shape.factors());
    tangent_factors(context.execution, shape, detail.theta[0], docs, factors);
    const Eigen::MatrixXd g = slow_gradients(shape, view_of(shape, factors));
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
        ASSERT_LT(at, ratios.size());
        // Differences of forms in double whose terms are at most some thousand times their difference.
        ASSERT_TRUE(std::fabs(ratios[at] / std::sqrt(own_sq / exact_sq) - 1.0) <= 1e-8) << round.round;
        below += ratios[at] < 0.999 ? 1 : 0;
        ++compared;
        ++at;
      }
    }
    ASSERT_EQ(at, ratios.size());
    ASSERT_EQ(turned_here.total, of_round.total);
    ASSERT_EQ(turned_here.count, of_round.count) << round.round;
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
        const auto ranker = make_shadowed(shadow_settings(kind, covariance, shadow));
        TrialStage stage({.rounds = 30, .cutoff = kShadowCutoff, .eval_every = 10}, shadow_data(), *ranker);
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
      shadow_settings(RankerKind::kOlRankNet, Covariance::kDiagonal, ShadowCovariance::kFull);
  expect_same_curve_from({0, 6, 7, 13, 20}, {.rounds = 20, .cutoff = kShadowCutoff, .eval_every = 7},
                         shadow_data(), [&] { return make_shadowed(settings); });
}

}  // namespace
}  // namespace olrank
