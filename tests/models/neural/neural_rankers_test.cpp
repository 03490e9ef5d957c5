// olRankNet, olLambdaRank and P²NeurRank in all their forms: what every one of them keeps.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "core/feedback/preference_pairs.h"
#include "models/neural/network_rankers.h"
#include "models/neural/ranker_network.h"
#include "models/skeleton/network_settings.h"
#include "tests/models/neural/plain_training.h"
#include "tests/models/neural/recorded_rounds.h"
#include "tests/support/chi_square.h"
#include "tests/support/message_of.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

constexpr std::int64_t kWorldFeatures = 5;
constexpr std::uint32_t kRounds = 40;

/// 320 documents: more than two blocks of a pass.
const SmallWorld& world() {
  static const SmallWorld made(81, 8, 40, kWorldFeatures);
  return made;
}

Course play(OnlineRanker& ranker, std::uint32_t first, std::uint32_t last, int threads = 1) {
  return play_course(ranker, world(), first, last, threads);
}

class EveryRankerTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<OnlineRanker> make() const {
    return make_neural(settings_named(GetParam()), world().features());
  }

  TestContext context_;
};

TEST_P(EveryRankerTest, ThreadsAndRestartsChangeNoBit) {
  expect_same_bits(settings_named(GetParam()), world(), kRounds, {0, 7, 30});
}

TEST_P(EveryRankerTest, LearnsTheSameFromRecordedFeedback) {
  const auto ranker = make();
  const Course course = play(*ranker, 1, kRounds);
  const auto reader_of_records = make();
  for (std::uint32_t round = 1; round <= kRounds; ++round)
    reader_of_records->learn(context_.round, course.rounds[round - 1].feedback(world(), round));
  // Nor does a list of another query in between, or of another round, teach anything.
  const auto distracted = make();
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    if (round % 2 == 0) distracted->rank(context_.round, world().query_of(round + 3), round + 100);
    distracted->learn(context_.round, course.rounds[round - 1].feedback(world(), round));
  }
  const QueryDocs query = world().query(5);
  const RoundDetail expected = detail_of(*ranker, query, kRounds);
  for (OnlineRanker* other : {reader_of_records.get(), distracted.get()}) {
    EXPECT_EQ(flat_theta(*other), flat_theta(*ranker));
    const RoundDetail detail = detail_of(*other, query, kRounds);
    EXPECT_EQ(detail.scores, expected.scores);
    EXPECT_EQ(detail.certain, expected.certain);
    EXPECT_EQ(detail.width_sq, expected.width_sq);
  }
}

TEST_P(EveryRankerTest, HandlesFewDocuments) {
  const auto& bandits = bandit_names();
  const bool is_bandit = std::find(bandits.begin(), bandits.end(), GetParam()) != bandits.end();
  for (const std::int64_t docs : {1, 2, 3}) {
    const SmallWorld tiny(82, 3, docs, kWorldFeatures);
    const auto ranker = make();
    for (std::uint32_t round = 1; round <= 20; ++round) {
      const RecordedRound played = play_round(*ranker, context_.round, tiny, round);
      ShownDocs sorted = played.shown;
      std::sort(sorted.begin(), sorted.end());
      ShownDocs all(docs);
      std::iota(all.begin(), all.end(), 0);
      ASSERT_EQ(sorted, all);
      const RoundDetail detail = detail_of(*ranker, tiny.query_of(round), round - 1);
      ASSERT_EQ(std::ssize(detail.scores), docs);
      ASSERT_EQ(std::ssize(detail.certain), is_bandit ? 0 : docs * docs);
      const RankedList list = ranker->rank(context_.round, tiny.query_of(round), round + 1);
      ASSERT_EQ(list.certainty.has_value(), !is_bandit);
      for (const float theta : flat_theta(*ranker)) ASSERT_TRUE(std::isfinite(theta));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Neural, EveryRankerTest, testing::ValuesIn(neural_names()), kOwnName);
INSTANTIATE_TEST_SUITE_P(Linear, EveryRankerTest, testing::ValuesIn(linear_names()), kOwnName);
INSTANTIATE_TEST_SUITE_P(Bandit, EveryRankerTest, testing::ValuesIn(bandit_names()), kOwnName);

class NeuralRankersTest : public EveryRankerTest {};

TEST_P(NeuralRankersTest, ScoresAQueryAgainOnceParametersHaveChanged) {
  // One query only, so that what was seen of it in an earlier round must not count in the next.
  const SmallWorld one(84, 1, 12, kWorldFeatures);
  const auto ranker = make();
  const auto reader_of_records = make();
  const auto reloaded = make();
  for (std::uint32_t round = 1; round <= 10; ++round) {
    const std::string before = state_of(*ranker);
    const RecordedRound played = play_round(*ranker, context_.round, one, round);
    reader_of_records->learn(context_.round, played.feedback(one, round));
    // A list from other parameters, which loading then replaces.
    reloaded->learn(context_.round, played.feedback(one, round));
    reloaded->rank(context_.round, one.query(0), round);
    load_state(*reloaded, before);
    reloaded->learn(context_.round, played.feedback(one, round));
  }
  const RoundDetail expected = detail_of(*ranker, one.query(0), 10);
  for (OnlineRanker* other : {reader_of_records.get(), reloaded.get()}) {
    EXPECT_EQ(flat_theta(*other), flat_theta(*ranker));
    const RoundDetail detail = detail_of(*other, one.query(0), 10);
    ASSERT_EQ(detail.width_sq.size(), expected.width_sq.size());
    // As above: a full covariance's form may differ, and with it rounding.
    for (std::size_t i = 0; i < detail.width_sq.size(); ++i)
      ASSERT_NEAR(detail.width_sq[i], expected.width_sq[i], 1e-10 * (1.0 + expected.width_sq[i]));
  }
}

TEST_P(NeuralRankersTest, ReportsLossesThatAreNotFinite) {
  RankerSettings settings = neural_settings(GetParam());
  settings.trainer.optimizer = Optimizer::kAdam;
  settings.trainer.learning_rate = 1e25;  // one step carries the parameters to where scores overflow
  for (const int threads : {1, 4}) {
    const auto ranker = make_neural(settings, kWorldFeatures);
    const std::vector<float> before = flat_theta(*ranker);
    TestContext context(threads);
    const ShownDocs shown = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    const std::vector<std::uint8_t> clicks = {1, 0, 1, 0, 0, 1, 0, 1, 1, 0};
    const std::string message = message_of<NumericError>([&] {
      ranker->learn(context.round, {1, world().query(1), shown, clicks});
    });
    EXPECT_TRUE(contains(message, "round 1")) << threads;
    EXPECT_TRUE(contains(message, "step 2")) << threads;
    EXPECT_EQ(flat_theta(*ranker), before);
  }
}

/// A list whose clicks make no pair.
LearnReport learn_without_pairs(OnlineRanker& ranker, std::uint32_t round, std::uint8_t clicked) {
  TestContext context;
  const std::vector<std::uint8_t> clicks(10, clicked);
  const ShownDocs shown = shown_of(ranker.rank(context.round, world().query(2), round), 10);
  return ranker.learn(context.round, {round, world().query(2), shown, clicks});
}

/// Members of an ensemble that trains in every round get new noise once there are pairs; all else stays.
TEST_P(NeuralRankersTest, RoundsWithoutPairsTeachNothing) {
  const bool retrains = GetParam().ends_with("ensemble") && GetParam().find("growth") == std::string::npos;
  const auto ranker = make();
  const auto fresh = make();
  learn_without_pairs(*fresh, 1, 0);
  EXPECT_TRUE(state_of(*fresh) == state_of(*ranker));
  const Course course = play(*ranker, 1, 10);
  for (const std::uint8_t clicked : {0, 1}) {
    const std::vector<float> before = flat_theta(*ranker);
    const LearnReport report = learn_without_pairs(*ranker, 11 + clicked, clicked);
    EXPECT_TRUE(report.pairs.empty());
    EXPECT_EQ(flat_theta(*ranker) == before, !retrains);
    EXPECT_EQ(state_of(*ranker) == course.state, !retrains);
    if (!retrains) {
      EXPECT_TRUE(report.steps.empty());
    }
  }
}

TEST_P(NeuralRankersTest, RanksRelevantDocumentsHigher) {
  const auto ranker = make();
  EXPECT_EQ(ranker->parameters(), std::ssize(flat_theta(*ranker)));
  const double untrained = world().ndcg(*ranker, 10);
  play(*ranker, 1, 120);
  EXPECT_GT(world().ndcg(*ranker, 10), std::max(untrained, 0.5) + 0.1);
}

/// The ranker's tensors are those of a network, or of `members` networks, and give the ranker's scores.
void expect_tensors_of(const OnlineRanker& ranker, const NetworkShape& shape, std::int64_t members = 0) {
  const bool ensemble = members > 0;
  members = std::max<std::int64_t>(members, 1);
  const ModelTensors model = ranker.model();
  std::size_t at = 0;
  for (std::int64_t member = 0; member < members; ++member) {
    const std::string prefix = ensemble ? "members." + std::to_string(member) + "." : "";
    for (std::int64_t l = 0; l < shape.depth; ++l) {
      const NetworkLayer layer = shape.layer(l);
      ASSERT_LT(at, model.tensors.size());
      EXPECT_EQ(model.tensors[at].name, prefix + "layers." + std::to_string(l) + ".weight");
      EXPECT_EQ(model.tensors[at].shape, (std::vector<std::int64_t>{layer.rows, layer.columns}));
      EXPECT_EQ(std::ssize(model.tensors[at++].values), layer.rows * layer.columns);
      if (!layer.has_bias()) continue;
      ASSERT_LT(at, model.tensors.size());
      EXPECT_EQ(model.tensors[at].name, prefix + "layers." + std::to_string(l) + ".bias");
      EXPECT_EQ(model.tensors[at].shape, (std::vector<std::int64_t>{layer.rows}));
      EXPECT_EQ(std::ssize(model.tensors[at++].values), layer.rows);
    }
  }
  EXPECT_EQ(at, model.tensors.size());
  // The ranker says what those tensors make of documents.
  const std::vector<double> theta = in_double(flat_theta(ranker));
  const FeatureMatrix docs = world().query(4).features;
  const std::vector<float> scores = scores_of(ranker, docs);
  const auto p = static_cast<std::ptrdiff_t>(shape.parameters());
  for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
    double mean = 0.0;
    double magnitude = 0.0;
    for (std::int64_t member = 0; member < members; ++member) {
      const std::vector<double> one(theta.begin() + member * p, theta.begin() + (member + 1) * p);
      const SlowScore slow = slow_score(shape, one, docs.doc(doc).data());
      mean += slow.score / static_cast<double>(members);
      magnitude += slow.magnitude;
    }
    // Float32: sums of eight terms, whose inner sums cancel by no more than a factor of ten here.
    EXPECT_NEAR(scores[doc], mean, 1e-5 * (1.0 + magnitude));
  }
}

TEST_P(NeuralRankersTest, ModelTensorsFollowTheOrderOfTheta) {
  const RankerSettings settings = neural_settings(GetParam());
  const auto ranker = make();
  play(*ranker, 1, 10);
  expect_tensors_of(*ranker, network_shape(settings.network, kWorldFeatures),
                    settings.kind == RankerKind::kP2NeurRank ? settings.posterior.members : 0);
}

INSTANTIATE_TEST_SUITE_P(Forms, NeuralRankersTest, testing::ValuesIn(neural_names()), kOwnName);

/// Six rounds of a perfect user, who may say what clicks are worth. `add(feedback, report)` takes what a
/// round brings, and `weigh(at, first)` weighs `pairs` before each of the six steps of a training, which
/// has to end where gradient descent does.
template <class Add, class Weigh>
void expect_plain_steps(RankerSettings settings, bool rewarded, const std::vector<PlainPair>& pairs,
                        const Add& add, const Weigh& weigh) {
  settings.trainer.steps = 6;
  const NetworkShape shape = network_shape(settings.network, kWorldFeatures);
  const double prior = 0.5 * static_cast<double>(shape.width) * settings.posterior.lambda;
  const auto ranker = make_neural(settings, kWorldFeatures);
  TestContext context;
  const std::vector<float> first = flat_theta(*ranker);
  for (std::uint32_t round = 1; round <= 6; ++round) {
    const QueryDocs query = world().query_of(round);
    const ShownDocs shown = shown_of(ranker->rank(context.round, query, round), 10);
    const std::vector<std::uint8_t> clicks = world().perfect_clicks(query.query, shown);
    const std::vector<float> began = flat_theta(*ranker);
    std::vector<double> rewards;
    for (const std::uint8_t click : clicks)
      rewards.push_back(static_cast<double>((1 + rewards.size() % 3) * click));
    Feedback feedback{round, query, shown, clicks};
    if (rewarded) feedback.rewards = rewards;
    const LearnReport report = ranker->learn(context.round, feedback);
    add(feedback, report);
    if (report.pairs.empty()) continue;
    std::vector<double> at = in_double(began);
    std::vector<double> gradient;
    for (int step = 0; step < 6; ++step) {
      weigh(at, first);
      plain_loss(shape, at, pairs, 1.0, prior, first, &gradient);
      for (std::size_t k = 0; k < at.size(); ++k) at[k] -= report.steps.front() * gradient[k];
    }
    // As for full-batch trainers; where two documents change places within rounding it would be far off.
    EXPECT_LE(distance_of(flat_theta(*ranker), at), 1e-3 * distance_of(began, at)) << "round " << round;
  }
}

/// The covariance takes one matching, the loss all of them, each click by its reward.
TEST(ConfidentNetworkTest, ExpectedPairsTrainOnTheMeanOfMatchings) {
  for (const bool rewarded : {false, true}) {
    std::vector<PlainPair> pairs;
    std::size_t observed = 0;
    double weights = 0.0;
    const auto add = [&](const Feedback& feedback, const LearnReport& report) {
      const auto& [shown, clicks] = std::tie(feedback.shown, feedback.clicks);
      observed += report.pairs.size();
      const auto examined = static_cast<std::size_t>(examined_documents(clicks));
      const auto clicked = static_cast<std::size_t>(std::count(clicks.begin(), clicks.end(), 1));
      const double weight = 1.0 / static_cast<double>(std::max(clicked, examined - clicked));
      for (std::size_t winner = 0; winner < examined; ++winner) {
        for (std::size_t loser = 0; loser < examined; ++loser) {
          if (clicks[winner] == 0 || clicks[loser] != 0) continue;
          const double of_pair = rewarded ? weight * feedback.rewards[winner] : weight;
          pairs.push_back({feedback.query.features.doc(shown[winner]).data(),
                           feedback.query.features.doc(shown[loser]).data(), of_pair, of_pair});
          weights += weight;
        }
      }
    };
    expect_plain_steps(neural_settings("expected"), rewarded, pairs, add,
                       [](const std::vector<double>&, const std::vector<float>&) {});
    EXPECT_GT(pairs.size(), 2 * observed);
    EXPECT_NEAR(weights, static_cast<double>(observed), 1e-9);
  }
}

/// Each step's weights are from the scores at that step.
TEST(ConfidentNetworkTest, LambdaRankStepsMatchItsWeights) {
  const RankerSettings settings = neural_settings("lambdarank");
  const NetworkShape shape = network_shape(settings.network, kWorldFeatures);
  ExecutionContext context;
  DocumentHistory history(kWorldFeatures, true);
  std::vector<PlainPair> pairs;
  const auto add = [&](const Feedback& feedback, const LearnReport& report) {
    if (report.pairs.empty()) return;
    history.add(feedback, report.pairs);
    const FeatureMatrix& docs = feedback.query.features;
    for (const auto& [winner, loser] : report.pairs)
      pairs.push_back({docs.doc(winner).data(), docs.doc(loser).data(), 1.0, 1.0});
  };
  const auto weigh = [&](const std::vector<double>& at, const std::vector<float>& first) {
    std::vector<float> scores;
    for (std::int32_t row = 0; row < history.docs(); ++row)
      scores.push_back(
          static_cast<float>(plain_network(shape, at, history.features().doc(row).data(), nullptr)));
    // Before the first training all scores are zero up to rounding, and its order is no formula's.
    if (at == in_double(first)) score_docs(context, shape, first, history.features(), scores);
    std::vector<double> changes;
    ndcg_changes(history.pair_lists(), scores, changes);
    for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i].label = pairs[i].weight = changes[i];
  };
  expect_plain_steps(settings, false, pairs, add, weigh);
  EXPECT_GT(pairs.size(), 8U);
}

/// One pair of documents, of which the first is always clicked: its two networks' noise can be read off a
/// single step, θ' = θ − σ((n σ(z) − labels) g + mλ(θ − θ₀)).
TEST(P2NeurRankTest, LabelsGetFreshNormalNoiseEveryRound) {
  RankerSettings settings = neural_settings("ensemble");
  settings.posterior.members = 2;
  settings.posterior.noise_variance = 0.3;
  settings.posterior.lambda = 0.1;
  settings.trainer.steps = 1;
  const NetworkShape shape = network_shape(settings.network, kWorldFeatures);
  const auto p = static_cast<std::size_t>(shape.parameters());
  const double prior = static_cast<double>(settings.network.width) * settings.posterior.lambda;
  const SmallWorld two(83, 1, 2, kWorldFeatures);
  const auto ranker = make_neural(settings, kWorldFeatures);
  const std::vector<float> first = flat_theta(*ranker);
  ASSERT_EQ(first.size(), 2 * p);
  const std::vector<std::int32_t> shown = {0, 1};
  const std::vector<std::uint8_t> clicks = {1, 0};
  TestContext context;
  constexpr int kTrained = 400;
  double squares[2] = {0.0, 0.0};
  double between_members = 0.0;
  double between_rounds = 0.0;
  double earlier = 0.0;
  for (int n = 1; n <= kTrained; ++n) {
    const std::vector<float> before = flat_theta(*ranker);
    const LearnReport report =
        ranker->learn(context.round, {static_cast<std::uint32_t>(n), two.query(0), shown, clicks});
    ASSERT_EQ(report.steps.size(), 2U);
    const std::vector<float> after = flat_theta(*ranker);
    double noise[2];
    for (std::size_t member = 0; member < 2; ++member) {
      const std::vector<double> theta(before.begin() + static_cast<std::ptrdiff_t>(member * p),
                                      before.begin() + static_cast<std::ptrdiff_t>((member + 1) * p));
      std::vector<double> g;
      std::vector<double> loser;
      const double z = plain_network(shape, theta, two.query(0).features.doc(0).data(), &g) -
                       plain_network(shape, theta, two.query(0).features.doc(1).data(), &loser);
      double along = 0.0;
      double norm_sq = 0.0;
      for (std::size_t k = 0; k < p; ++k) {
        g[k] -= loser[k];
        const std::size_t at = member * p + k;
        const double gradient = (double{before[at]} - double{after[at]}) / report.steps[member] -
                                prior * (theta[k] - double{first[at]});
        along += gradient * g[k];
        norm_sq += g[k] * g[k];
      }
      // labels = n + γ; the noise of n repetitions is N(0, n ν²).
      const double labels = n / (1.0 + std::exp(-z)) - along / norm_sq;
      noise[member] = (labels - n) / std::sqrt(0.3 * n);
      squares[member] += noise[member] * noise[member];
    }
    between_members += noise[0] * noise[1];
    between_rounds += noise[0] * earlier;
    earlier = noise[0];
  }
  // χ² bounds of Laurent and Massart 2000, Lemma 1, e⁻²³ = 10⁻¹⁰ a side; sums of 400 products of
  // independent normals pass 7 deviations with less than 10⁻⁷ a side.
  for (const double square : squares) {
    EXPECT_TRUE(square <= chi_square_bound(kTrained, kTail)) << square;
    EXPECT_TRUE(square >= chi_square_lower_bound(kTrained, kTail)) << square;
  }
  EXPECT_TRUE(std::fabs(between_members) <= 7.0 * std::sqrt(kTrained)) << between_members;
  EXPECT_TRUE(std::fabs(between_rounds) <= 7.0 * std::sqrt(kTrained)) << between_rounds;
}

/// Neither references nor noise know its round.
TEST(NetworkLearnerTest, AFailedTrainingOnTheHistoryStaysDue) {
  for (const bool ensemble : {false, true}) {
    const RankerSettings settings = neural_settings(ensemble ? "growth_ensemble" : "growth");
    const auto members =
        ensemble ? std::optional(EnsembleSpec{settings.posterior.members, 0.1}) : std::nullopt;
    const auto learner = make_network_learner(make_tangent_model(settings.network, kWorldFeatures),
                                              settings, test_keys(), members, {});
    const PairWorld world(98, 4, 8, kWorldFeatures);
    const std::vector<float> huge(2 * kWorldFeatures, std::numeric_limits<float>::infinity());
    const std::vector<std::int32_t> shown = {0, 1};
    const std::vector<std::uint8_t> clicks = {1, 0};
    const PreferencePair pair{0, 1};
    ExecutionContext context;
    const auto observe = [&](const QueryDocs& query) {
      learner->observe({1, query, shown, clicks}, {{pair}});
    };
    const auto latest = [&] {
      StateReader reader(state_of(*learner), "memory");
      if (!ensemble) reader.get<float>("theta");
      DocumentHistory history(kWorldFeatures, history_content(settings));
      history.load(reader);
      RetrainingSchedule schedule(retraining_rule(settings.trainer));
      std::uint32_t noise_round = 0;
      StateFields fields(reader);
      schedule_fields(fields, schedule, noise_round);
      EXPECT_EQ(noise_round, 1U);
      return schedule.latest();
    };
    for (int number = 0; number < 198; ++number) observe(world.query(number % 4));
    learner->train(context, 1);
    EXPECT_EQ(latest().observed, 198);
    observe({9, 1000, {huge.data(), 2, kWorldFeatures}});
    EXPECT_THROW(learner->train(context, 2), NumericError);
    EXPECT_EQ(latest().observed, 0);
    EXPECT_EQ(latest().distinct, 0);
  }
}

/// Adam's first step moves a parameter by the learning rate at most.
TEST(NetworkLearnerTest, StartsWhereRestartSays) {
  for (const std::string protocol : {"dual", "reference"}) {
    RankerSettings settings = neural_settings(protocol);
    settings.trainer.optimizer = Optimizer::kAdam;
    settings.trainer.learning_rate = 0.5;
    settings.trainer.steps = 1;
    settings.trainer.epochs = 1;
    settings.trainer.batch = 1000;
    for (const Restart restart : {Restart::kWarm, Restart::kFirst, Restart::kFresh}) {
      settings.trainer.restart = restart;
      const auto ranker = make_neural(settings, kWorldFeatures);
      const std::vector<float> first = flat_theta(*ranker);
      play(*ranker, 1, 10);
      const std::shared_ptr<const TangentModel> model =
          make_tangent_model(settings.network, kWorldFeatures);
      const auto fresh = model->first_parameters(key_of_round(test_keys().key(Purpose::kRestart), 10));
      const auto farthest = [&](const std::vector<float>& from) {
        const std::vector<float> theta = flat_theta(*ranker);
        float largest = 0.0F;
        for (std::size_t i = 0; i < from.size(); ++i)
          largest = std::max(largest, std::fabs(theta[i] - from[i]));
        return largest;
      };
      EXPECT_EQ(farthest(first) <= 0.501F, restart == Restart::kFirst);
      EXPECT_EQ(farthest(fresh) <= 0.501F, restart == Restart::kFresh);
    }
  }
}

/// Under a prior far stronger than the data, training ends at its centre. Squares of 1,152 normal numbers;
/// a false alarm has a probability below 1e-6.
TEST(P2NeurRankTest, NoiseMovesThePriorsCentre) {
  for (const bool noisy : {false, true}) {
    RankerSettings settings = neural_settings("ensemble");
    settings.posterior.prior_noise = noisy;
    settings.posterior.lambda = 1e8;
    settings.network.width = 64;
    const auto ranker = make_neural(settings, kWorldFeatures);
    const std::vector<float> first = flat_theta(*ranker);
    play(*ranker, 1, 9);
    const std::vector<float> before = flat_theta(*ranker);
    TestContext context;
    ranker->learn(context.round, {10, world().query(1), ShownDocs{0, 1, 2, 3, 4, 5},
                                  std::vector<std::uint8_t>{0, 1, 0, 1, 0, 0}});
    const std::vector<float> after = flat_theta(*ranker);
    const double variance = settings.posterior.noise_variance / (64.0 * settings.posterior.lambda);
    const auto mean_square = [&](const std::vector<float>& a, const std::vector<float>& b) {
      double sum = 0.0;
      for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(double{a[i]} - double{b[i]}, 2.0);
      return sum / static_cast<double>(a.size()) / variance;
    };
    EXPECT_NEAR(mean_square(after, first), noisy ? 1.0 : 0.0, noisy ? 0.22 : 0.01);
    EXPECT_NEAR(mean_square(after, before), noisy ? 2.0 : 0.0, noisy ? 0.44 : 0.01);
  }
}

TEST(P2NeurRankTest, MembersDoNotDependOnEachOther) {
  for (const std::string name : {"ensemble", "reference_ensemble"}) {
    RankerSettings settings = neural_settings(name);
    settings.posterior.members = 4;
    const auto four = make_neural(settings, kWorldFeatures);
    const Course course = play(*four, 1, kRounds, 4);
    const std::vector<float> together = flat_theta(*four);
    const std::size_t p = together.size() / 4;
    for (std::int64_t members : {1, 2, 3}) {
      settings.posterior.members = members;
      const auto fewer = make_neural(settings, kWorldFeatures);
      TestContext context;
      for (std::uint32_t round = 1; round <= kRounds; ++round)
        fewer->learn(context.round, course.rounds[round - 1].feedback(world(), round));
      const std::vector<float> apart = flat_theta(*fewer);
      ASSERT_EQ(apart.size(), p * static_cast<std::size_t>(members));
      EXPECT_TRUE(std::equal(apart.begin(), apart.end(), together.begin())) << name << ", " << members;
    }
    for (std::size_t member = 1; member < 4; ++member)
      EXPECT_FALSE(std::equal(together.begin(), together.begin() + static_cast<std::ptrdiff_t>(p),
                              together.begin() + static_cast<std::ptrdiff_t>(member * p)));
  }
}

TEST(P2NeurRankTest, OneMemberMakesEveryOrderCertain) {
  RankerSettings settings = neural_settings("ensemble");
  settings.posterior.members = 1;
  const auto ranker = make_neural(settings, kWorldFeatures);
  TestContext context;
  play(*ranker, 1, 20);
  const auto list = ranker->rank(context.round, world().query(0), 21);
  RoundDetail detail;
  ranker->describe(world().query(0), true, detail);
  // Every order is certain, so that the list is the one by score.
  EXPECT_EQ(list.certainty.value().certain_pairs, list.certainty.value().shown_pairs);
  for (std::size_t rank = 1; rank < list.docs.size(); ++rank) {
    const auto above = static_cast<std::size_t>(list.docs[rank - 1]);
    const auto below = static_cast<std::size_t>(list.docs[rank]);
    EXPECT_GT(detail.scores[above], detail.scores[below]);
    EXPECT_EQ(detail.certain[above * detail.scores.size() + below], 1);
  }
}

TEST(P2NeurRankTest, RefusesTheStateOfAnotherEnsemble) {
  RankerSettings settings = neural_settings("ensemble");
  const std::string state = play(*make_neural(settings, kWorldFeatures), 1, 5).state;
  settings.posterior.members = 2;
  const auto two = make_neural(settings, kWorldFeatures);
  EXPECT_ANY_THROW(load_state(*two, state));
}

// The methods of the literature that follow a gradient or try neighbours of θ, on networks.

class NetworkFormsTest : public testing::TestWithParam<std::string> {};

/// A tiny world that a linear function separates, and a user who clicks on what is relevant.
TEST_P(NetworkFormsTest, LearnsSeparableData) {
  const std::string& name = GetParam();
  const RankerKind kind = *value_named<RankerKind>(name.substr(0, name.find('_')));
  const Parameterisation parameterisation =
      name.ends_with("ntk") ? Parameterisation::kNtk : Parameterisation::kStandard;
  const SmallWorld small(94, 6, 12, kWorldFeatures);
  RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kReference);
  settings.name = name;
  settings.network = {.network = NetworkForm::kMlp, .width = 8, .parameterisation = parameterisation};
  // A step in some 50 parameters goes in another direction than any other: dueling takes larger ones.
  if (kind == RankerKind::kDbgd || kind == RankerKind::kMgd) settings.trainer.learning_rate = 0.1;
  const auto ranker = make_neural(settings, kWorldFeatures);
  const NetworkShape shape = network_shape(settings.network, kWorldFeatures);
  EXPECT_EQ(ranker->parameters(), shape.parameters());
  // It starts where the other rankers of this shape start.
  EXPECT_EQ(flat_theta(*ranker),
            first_parameters(settings.network, shape, test_keys().key(Purpose::kInitialisation)));
  const double untrained = small.ndcg(*ranker, 10);
  TestContext context;
  for (std::uint32_t round = 1; round <= 1500; ++round)
    play_perfect(*ranker, context.round, small, round, 10);
  const double trained = small.ndcg(*ranker, 10);
  // A third of the documents is relevant: a random order has an NDCG of about a half.
  EXPECT_GT(trained, 0.85) << "from " << untrained;
  EXPECT_GT(trained, untrained + 0.05);
  expect_tensors_of(*ranker, shape);
}

INSTANTIATE_TEST_SUITE_P(Kinds, NetworkFormsTest,
                         testing::Values("pdgd_standard", "pdgd_ntk", "dbgd_standard", "mgd_standard",
                                         "mgd_ntk", "ranknet_standard", "ranknet_ntk"),
                         kOwnName);

}  // namespace
}  // namespace olrank
