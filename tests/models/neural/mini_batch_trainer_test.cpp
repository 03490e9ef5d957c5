#include "models/neural/network_trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/models/neural/plain_training.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

constexpr double kLambda = 0.7;

TrainerSettings adam(double learning_rate = 0.01) {
  TrainerSettings settings;
  settings.loss = LossForm::kMean;
  settings.optimizer = Optimizer::kAdam;
  settings.learning_rate = learning_rate;
  settings.epochs = 3;
  settings.batch = 8;
  return settings;
}

struct Batches {
  explicit Batches(const TrainerSettings& of_settings, std::uint64_t seed = 51)
      : settings(of_settings),
        first(static_cast<std::size_t>(shape.parameters())),
        world(seed, 4, 8, shape.inputs),
        history(shape.inputs, false),
        trainer({model, settings, kLambda, 1.0, first, test_key(seed)}) {
    initialise(shape, Initialisation::kUniform, test_key(seed), first);
    key = test_key(seed);
    theta = first;
  }

  void train(std::uint32_t round, std::span<const PairTerm> terms = {}) {
    const auto step =
        trainer.train(context, {history, terms.empty() ? history.terms() : terms, false, round}, theta);
    EXPECT_FALSE(step.has_value());
  }

  /// The same batches, in double, one pair at a time.
  std::vector<double> plain(std::uint32_t round, std::span<const PlainPair> pairs) const {
    std::vector<double> at = in_double(first);
    std::vector<double> mean(at.size());
    std::vector<double> square(at.size());
    std::vector<std::int32_t> order(pairs.size());
    std::iota(order.begin(), order.end(), 0);
    std::vector<double> gradient;
    int number = 0;
    for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
      RngStream coins(key, round, epoch, 1);
      coins.shuffle(std::span(order));
      for (std::size_t begin = 0; begin < pairs.size(); begin += 8) {
        std::vector<PlainPair> batch;
        for (std::size_t i = begin; i < std::min(begin + 8, pairs.size()); ++i)
          batch.push_back(pairs[order[i]]);
        plain_loss(shape, at, batch, 1.0 / static_cast<double>(batch.size()), 0.0, {}, &gradient);
        ++number;
        for (std::size_t k = 0; k < at.size(); ++k) {
          const double slope = gradient[k] + kLambda / static_cast<double>(pairs.size()) * at[k];
          if (settings.optimizer == Optimizer::kGradientDescent) {
            at[k] -= settings.learning_rate * slope;
            continue;
          }
          mean[k] = 0.9 * mean[k] + 0.1 * slope;
          square[k] = 0.999 * square[k] + 0.001 * slope * slope;
          at[k] -= settings.learning_rate * mean[k] / (1.0 - std::pow(0.9, number)) /
                   (std::sqrt(square[k] / (1.0 - std::pow(0.999, number))) + 1e-8);
        }
      }
    }
    return at;
  }

  /// Gradients are off by 1e-6 of terms that cancel in a batch, and adam divides them by their own size:
  /// 1e-3 of the way.
  void expect_arrived(const std::vector<double>& expected) const {
    const double way = distance_of(first, expected);
    EXPECT_GT(way, 0.01);
    EXPECT_TRUE(distance_of(theta, expected) <= 1e-3 * way) << distance_of(theta, expected) / way;
  }

  NetworkShape shape = standard_shape(5, 7, 2);
  NetworkModel model = network_of(shape);
  TrainerSettings settings;
  std::vector<float> first;
  std::vector<float> theta;
  PairWorld world;
  DocumentHistory history;
  PhiloxKey key;
  MiniBatchTrainer trainer;
  ExecutionContext context;
};

TEST(MiniBatchTrainerTest, MatchesThePlainFormulaOnTheSameBatches) {
  TrainerSettings plain_steps = adam(0.05);
  plain_steps.optimizer = Optimizer::kGradientDescent;
  for (const TrainerSettings& settings : {adam(), plain_steps}) {
    Batches batches(settings);
    for (std::uint32_t round = 1; round <= 4; ++round) {
      batches.world.add(batches.history, 7);  // 7, 14, 21, 28: batches of 8 that end with a shorter one
      batches.theta = batches.first;
      batches.train(round);
      batches.expect_arrived(batches.plain(round, batches.world.pairs));
    }
  }
}

TEST(MiniBatchTrainerTest, StartsWhereTheParametersAre) {
  Batches batches(adam());
  batches.world.add(batches.history, 30);
  batches.train(1);
  const std::vector<float> arrived = batches.theta;
  EXPECT_NE(arrived, batches.first);
  batches.train(1);
  EXPECT_NE(batches.theta, arrived);
  batches.theta = batches.first;
  batches.train(1);
  EXPECT_EQ(batches.theta, arrived);
  batches.theta = batches.first;
  batches.train(2);  // other batches
  EXPECT_NE(batches.theta, arrived);
}

TEST(MiniBatchTrainerTest, SpreadsAMembersNoiseOverRepetitions) {
  Batches batches(adam());
  batches.world.add(batches.history, 40);
  std::vector<PairTerm> noisy(batches.history.terms().begin(), batches.history.terms().end());
  std::vector<PlainPair> pairs = batches.world.pairs;
  int repeated = 0;
  for (std::size_t t = 0; t < noisy.size(); ++t) {
    const double noise = 0.3 * static_cast<double>(t % 5) - 0.5;
    noisy[t].labels += noise;
    const float* first = batches.history.features().doc(noisy[t].first).data();
    const float* second = batches.history.features().doc(noisy[t].second).data();
    const auto same = [&](const float* a, const float* b) { return std::equal(a, a + 5, b); };
    for (PlainPair& pair : pairs) {
      // Labels are those of the term's first document: the noise of a lost pair counts against its winner.
      if (same(pair.winner, first) && same(pair.loser, second)) pair.label += noise / noisy[t].weight;
      if (same(pair.winner, second) && same(pair.loser, first)) pair.label -= noise / noisy[t].weight;
    }
    repeated += noisy[t].weight > 1.0 ? 1 : 0;
  }
  ASSERT_GT(repeated, 2);
  batches.train(3, noisy);
  batches.expect_arrived(batches.plain(3, pairs));
}

TEST(MiniBatchTrainerTest, ReportsALossThatIsNotFiniteAndKeepsParameters) {
  Batches batches(adam(1e25));  // one step carries the parameters to where scores overflow
  batches.world.add(batches.history, 30);
  std::vector<float> began = batches.first;
  began.front() += 1.0F;
  batches.theta = began;
  const std::string message = message_of<NumericError>([&] { batches.train(7); });
  EXPECT_NE(message.find("round 7 "), std::string::npos) << message;
  EXPECT_NE(message.find("step 2:"), std::string::npos) << message;
  EXPECT_EQ(batches.theta, began);
}

TEST(MiniBatchTrainerTest, RefusesNesterov) {
  TrainerSettings settings = adam();
  settings.optimizer = Optimizer::kNesterov;
  EXPECT_THROW(Batches{settings}, InvalidArgument);
}

}  // namespace
}  // namespace olrank
