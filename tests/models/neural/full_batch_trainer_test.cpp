#include "models/neural/network_trainer.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/neural/plain_training.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

TrainerSettings gradient_descent(double learning_rate = 1.0, std::int64_t steps = 20) {
  TrainerSettings settings;
  settings.learning_rate = learning_rate;
  settings.steps = steps;
  return settings;
}

/// A network, its trainer and its history, with the plain list of pairs.
struct Training {
  Training(const NetworkShape& of_shape, const TrainerSettings& of_settings, double of_lambda,
           std::uint64_t seed, std::int64_t pairs = 0, double scale = 1.0)
      : shape(of_shape),
        model(network_of(of_shape)),
        settings(of_settings),
        lambda(of_lambda),
        first(first_theta(of_shape, seed)),
        theta(first),
        world(seed, 4, 8, of_shape.inputs, scale),
        history(of_shape.inputs, false),
        trainer(make_full_batch_trainer(
            {model, settings, lambda, 0.5 * prior_scale() * lambda, first, test_key(seed)})) {
    world.add(history, pairs);
  }

  static std::vector<float> first_theta(const NetworkShape& shape, std::uint64_t seed) {
    std::vector<float> theta(shape.parameters());
    initialise(shape, shape.biases ? Initialisation::kUniform : Initialisation::kSymmetric, test_key(seed),
               theta);
    return theta;
  }
  double prior_scale() const { return static_cast<double>(shape.width); }

  double train(std::uint32_t round = 1) {
    return trainer->train(context, {history, history.terms(), false, round}, theta).value();
  }
  double loss(const std::vector<double>& at, std::vector<double>* gradient = nullptr) const {
    return plain_loss(shape, at, world.pairs, 1.0, 0.5 * prior_scale() * lambda, first, gradient);
  }
  /// Returns the loss of everything in the history, by the trainer's own formula.
  double loss_of_history() {
    return pair_loss(context, shape, theta, history.features(), history.terms(),
                     {1.0, 0.5 * prior_scale() * lambda, first});
  }
  std::vector<double> plain_steps(std::vector<double> at, double step, std::int64_t steps) const {
    std::vector<double> gradient;
    for (std::int64_t number = 0; number < steps; ++number) {
      loss(at, &gradient);
      for (std::size_t k = 0; k < at.size(); ++k) at[k] -= step * gradient[k];
    }
    return at;
  }
  double curvature(const std::vector<double>& at) const { return plain_curvature(shape, at, world.pairs); }
  /// κ that a step of this size rests on.
  double curvature_behind(double step) const {
    return settings.learning_rate / step - prior_scale() * lambda;
  }

  NetworkShape shape;
  NetworkModel model;
  TrainerSettings settings;
  double lambda;
  std::vector<float> first;
  std::vector<float> theta;
  PairWorld world;
  DocumentHistory history;
  std::unique_ptr<NetworkTrainer> trainer;
  ExecutionContext context;
};

/// Gradients in float32 are off by some 1e-6 of their terms, which cancel over pairs: 1e-4 of the way; θ is
/// rounded to float32 after each of 20 steps: 3e-8 of it at random each time.
void expect_arrived(std::span<const float> theta, const std::vector<double>& expected,
                    const std::vector<double>& began) {
  double size = 0.0;
  double way = 0.0;
  for (std::size_t k = 0; k < began.size(); ++k) {
    size += began[k] * began[k];
    way += (expected[k] - began[k]) * (expected[k] - began[k]);
  }
  EXPECT_GT(std::sqrt(way), 1e-4 * std::sqrt(size));
  EXPECT_TRUE(distance_of(theta, expected) <= 1e-4 * std::sqrt(way) + 3e-7 * std::sqrt(size))
      << distance_of(theta, expected) << " after a way of " << std::sqrt(way);
}

TEST(FullBatchTrainerTest, StepsMatchThePlainFormula) {
  for (const NetworkShape& shape : {ntk_shape(5, 6, 2), ntk_shape(4, 8, 3), standard_shape(5, 7, 2)}) {
    for (const double lambda : {0.05, 2.0}) {
      Training training(shape, gradient_descent(), lambda, 31);
      for (int round = 1; round <= 6; ++round) {
        training.world.add(training.history, 4);
        const std::vector<double> began = in_double(training.theta);
        const double step = training.train();
        expect_arrived(training.theta, training.plain_steps(began, step, 20), began);
      }
    }
  }
}

TEST(FullBatchTrainerTest, StepsFollowTheLargestCurvature) {
  for (const double lambda : {0.01, 1.0}) {
    Training training(ntk_shape(5, 6, 2), gradient_descent(), lambda, 32, 20);
    const double first_curvature = training.curvature(in_double(training.theta));
    // A power iteration comes from below and stops once it grows by less than 1e-3: some percent at most.
    // From above there is only the rounding of factors in float32.
    const double first_step = training.train();
    EXPECT_LE(training.curvature_behind(first_step), first_curvature * (1.0 + 1e-5));
    EXPECT_GE(training.curvature_behind(first_step), first_curvature * 0.97);
    // 21 is less than a tenth more than 20; 22 is a tenth.
    training.world.add(training.history, 1);
    EXPECT_EQ(training.train(), first_step);
    training.world.add(training.history, 1);
    const double curvature = training.curvature(in_double(training.theta));
    const double step = training.train();
    EXPECT_NE(step, first_step);
    EXPECT_LE(training.curvature_behind(step), curvature * (1.0 + 1e-5));
    EXPECT_GE(training.curvature_behind(step), curvature * 0.97);
    // From now on a tenth of 22: 24 is less, 25 is more.
    training.world.add(training.history, 2);
    EXPECT_EQ(training.train(), step);
    training.world.add(training.history, 1);
    EXPECT_NE(training.train(), step);
  }
}

TEST(FullBatchTrainerTest, LearningRatesDecayFromTrainingToTraining) {
  TrainerSettings settings = gradient_descent(0.5);
  settings.learning_rate_decay = 0.9;
  Training training(ntk_shape(5, 6, 2), settings, 1.0, 33, 30);
  const double step = training.train();
  EXPECT_NEAR(training.train(), 0.9 * step, 1e-12 * step);
  EXPECT_NEAR(training.train(), 0.81 * step, 1e-12 * step);
}

TEST(FullBatchTrainerTest, HalvesAStepThatRaisesTheLoss) {
  // Beside a strong prior the loss is a parabola of curvature mλ, and steps of 3.5/(κ + mλ) overshoot
  // by 2.5 times the distance; half of that overshoots by 0.75 times, and comes down.
  Training training(ntk_shape(5, 6, 2), gradient_descent(3.5, 4), 1000.0, 34, 12);
  const std::vector<double> began = in_double(training.theta);
  const double whole = 3.5 / (training.curvature(began) + training.prior_scale() * training.lambda);
  EXPECT_GT(training.loss(training.plain_steps(began, whole, 4)), training.loss(began));
  const double step = training.train();
  EXPECT_NEAR(step, 0.5 * whole, 0.03 * whole);
  expect_arrived(training.theta, training.plain_steps(began, step, 4), began);
  EXPECT_LT(training.loss(in_double(training.theta)), training.loss(began));
}

TEST(FullBatchTrainerTest, DoesNotDivergeInAnySetting) {
  for (const double lambda : {0.01, 1.0, 100.0}) {
    for (const std::int64_t pairs : {1, 20, 500}) {
      for (const double scale : {0.01, 1.0, 30.0, 1e4}) {
        SCOPED_TRACE("lambda " + std::to_string(lambda) + ", pairs " + std::to_string(pairs) + ", scale " +
                     std::to_string(scale));
        Training training(ntk_shape(6, 16, 2), gradient_descent(), lambda, 35, pairs, scale);
        double after = 0.0;
        for (int round = 1; round <= 8; ++round) {
          const double before = training.loss(in_double(training.theta));
          training.train();
          after = training.loss(in_double(training.theta));
          // Rounding: scores in float32, 1e-6 of terms that sum up to some times the loss.
          EXPECT_TRUE(after <= before * (1.0 + 1e-5)) << after << " after " << before;
          if (round < 8) training.world.add(training.history, 1);  // as no round trains without a new pair
        }
        // Below where it began: ln 2 a pair at θ₀.
        EXPECT_LT(after, static_cast<double>(training.world.pairs.size()) * std::log(2.0));
      }
    }
  }
}

/// Each optimizer trains three times, by ten steps.
TEST(FullBatchTrainerTest, NesterovAndAdamMatchTheirPlainFormulas) {
  for (const Optimizer optimizer : {Optimizer::kNesterov, Optimizer::kAdam}) {
    const double rate = optimizer == Optimizer::kAdam ? 0.01 : 0.5;
    TrainerSettings settings = gradient_descent(rate, 10);
    settings.optimizer = optimizer;
    Training training(ntk_shape(5, 6, 2), settings, 0.1, 36);
    for (int round = 1; round <= 3; ++round) {
      training.world.add(training.history, 10);
      const std::vector<double> began = in_double(training.theta);
      const double step = training.train();
      std::vector<double> at = began;
      std::vector<double> latest = began;
      std::vector<double> gradient;
      PlainAdam adam(at.size());
      for (int number = 1; number <= 10; ++number) {
        training.loss(at, &gradient);
        if (optimizer == Optimizer::kAdam) {
          adam.step(rate, gradient, at);
          continue;
        }
        // Sutskever et al., ICML 2013, with the parameters at the point ahead: momentum 0.9.
        for (std::size_t k = 0; k < at.size(); ++k) {
          const double next = at[k] - step * gradient[k];
          at[k] = next + 0.9 * (next - std::exchange(latest[k], next));
        }
      }
      EXPECT_TRUE(optimizer != Optimizer::kAdam || step == rate);
      expect_arrived(training.theta, at, began);
      EXPECT_LT(training.loss(in_double(training.theta)), training.loss(began));
    }
  }
}

/// Adds pairs of new documents whose features are `scale` times those of the world.
void add_scaled(Training& training, double scale, int pairs) {
  PairWorld large(97, 2, 6, training.shape.inputs, scale);
  for (int pair = 0; pair < pairs; ++pair) {
    QueryDocs asked = large.query(pair % 2);
    asked.first_doc += 1000;
    large.add_pair(training.history, asked, pair % 6, (pair + 1) % 6);
  }
}

// The curvature was found before the large documents came, so a step that rests on it explodes.
TEST(FullBatchTrainerTest, SurvivesDocumentsOfAnyScale) {
  for (const Optimizer optimizer : {Optimizer::kGradientDescent, Optimizer::kNesterov}) {
    for (const double scale : {1e2, 1e4, 1e8, 1e12}) {
      SCOPED_TRACE(scale);
      TrainerSettings settings = gradient_descent(1.0, 20);
      settings.optimizer = optimizer;
      Training training(ntk_shape(5, 6, 2), settings, 1.0, 43, 40);
      for (std::uint32_t round = 1; round <= 3; ++round) training.train(round);
      add_scaled(training, scale, 3);
      const double began = training.loss_of_history();
      for (std::uint32_t round = 4; round <= 8; ++round) {
        const double step = training.train(round);
        EXPECT_TRUE(std::isfinite(step) && step > 0.0) << step;
      }
      // Beyond that, a stable step is below the resolution of the parameters.
      if (scale <= 1e4) {
        EXPECT_LT(training.loss_of_history(), 0.98 * began);
      }
      EXPECT_LE(training.loss_of_history(), began * (1.0 + 1e-6));
    }
  }
}

// Labels beyond [0, weight], as noise makes them, leave the loss unbounded below.
TEST(FullBatchTrainerTest, NoiseOnLargeDocumentsDoesNotRunAway) {
  for (const double scale : {1e4, 1e8}) {
    SCOPED_TRACE(scale);
    TrainerSettings settings = gradient_descent(1.0, 20);
    settings.optimizer = Optimizer::kNesterov;
    Training training(ntk_shape(5, 6, 2), settings, 0.1, 44, 40);
    training.train(1);
    add_scaled(training, scale, 3);
    for (std::uint32_t round = 2; round <= 20; ++round) {
      std::vector<PairTerm> noisy(training.history.terms().begin(), training.history.terms().end());
      for (std::size_t t = 0; t < noisy.size(); ++t) noisy[t].labels += (t + round) % 2 == 0 ? 1.5 : -1.5;
      training.trainer->train(training.context, {training.history, noisy, false, round}, training.theta);
    }
    for (const float value : training.theta) EXPECT_LT(std::abs(value), 1e3F);
  }
}

/// A history with counts that trains on samples between two trainings on all of it.
struct Replaying : Training {
  explicit Replaying(const TrainerSettings& of_settings, std::int64_t pairs = 60, double of_lambda = 1.0)
      : Training(standard_shape(5, 7, 2), of_settings, of_lambda, 45) {
    history = DocumentHistory(shape.inputs, HistoryContent{.counts = true});
    world.add(history, pairs);
  }

  static TrainerSettings on_growth(std::int64_t replay_steps = 4) {
    TrainerSettings settings = gradient_descent(0.7, 10);
    settings.retrain = Retrain::kGrowth;
    settings.replay_steps = replay_steps;
    return settings;
  }
  double replay(std::int64_t count, std::uint32_t round) {
    sample.draw(history, test_key(46), round, count);
    changes.take_changes(history);
    const ReplayTask task{history, {sample, sample.terms()}, {changes, changes.terms()}, false, round};
    return trainer->replay(context, task, theta).value();
  }
  /// Returns the gradient of the data alone, pair by pair in double.
  std::vector<double> data_gradient(FeatureMatrix docs, std::span<const PairTerm> terms,
                                    const std::vector<double>& at) const {
    std::vector<PlainPair> pairs_of_terms;
    for (const PairTerm& term : terms)
      pairs_of_terms.push_back(
          {docs.doc(term.first).data(), docs.doc(term.second).data(), term.labels, term.weight});
    std::vector<double> gradient;
    plain_loss(shape, at, pairs_of_terms, 1.0, 0.0, first, &gradient);
    return gradient;
  }

  TrainingSample sample;
  TrainingSample changes;
};

/// Also where trainings on all of the history have momentum.
TEST(FullBatchTrainerTest, ReplayFollowsTheCorrectedGradient) {
  for (const auto& [replay, optimizer] :
       {std::pair{12, Optimizer::kGradientDescent}, std::pair{1000, Optimizer::kGradientDescent},
        std::pair{12, Optimizer::kNesterov}}) {
    TrainerSettings settings = Replaying::on_growth();
    settings.optimizer = optimizer;
    Replaying training(settings);
    training.train(1);
    const std::vector<double> reference = in_double(training.theta);
    for (std::uint32_t round = 2; round <= 6; ++round) {
      training.world.add(training.history, 1);
      const std::vector<double> began = in_double(training.theta);
      const double step = training.replay(replay, round);
      // ∇drawn(θ) + [∇all(θ_ref) − ∇drawn(θ_ref)] + prior, with every gradient from its pairs.
      const FeatureMatrix docs = training.sample.features();
      const auto drawn = training.sample.terms();
      const std::vector<double> all_there =
          training.data_gradient(training.history.features(), training.history.terms(), reference);
      const std::vector<double> drawn_there = training.data_gradient(docs, drawn, reference);
      std::vector<double> at = began;
      for (int number = 0; number < 4; ++number) {
        const std::vector<double> slope = training.data_gradient(docs, drawn, at);
        for (std::size_t k = 0; k < at.size(); ++k) {
          const double prior =
              training.prior_scale() * training.lambda * (at[k] - double{training.first[k]});
          at[k] -= step * (slope[k] + all_there[k] - drawn_there[k] + prior);
        }
      }
      expect_arrived(training.theta, at, began);
      // With all others in the sample that is a training on the whole history.
      if (replay == 1000) expect_arrived(training.theta, training.plain_steps(began, step, 4), began);
    }
  }
}

TEST(FullBatchTrainerTest, ReplayStepsFollowTheCurvatureOfTheHistory) {
  Replaying training(Replaying::on_growth());
  const double curvature = training.curvature_behind(training.train(1));
  for (std::uint32_t round = 2; round <= 30; ++round) {
    training.world.add(training.history, 1);
    const double step = training.replay(12, round);
    // κ grows with the pairs, by an eighth of them or more without a training in between.
    EXPECT_NEAR(training.curvature_behind(step), curvature * (59.0 + round) / 60.0, 1e-9 * curvature);
  }
}

/// The curvature is that of the history, whatever repeats on a sample find.
TEST(FullBatchTrainerTest, ReplayHalvesAStepThatRaisesTheLossAndKeepsTheCurvature) {
  for (const auto& [rate, halvings] : {std::pair{3.5, 1}, {20.0, 2}}) {
    TrainerSettings settings = Replaying::on_growth(3);
    settings.learning_rate = rate;
    Replaying training(settings, 60, 1000.0);
    const double trained = training.train(1);
    const auto curvature = [&] {
      StateReader reader(state_of(*training.trainer), "memory");
      return reader.get_one<double>("trainer.curvature");
    };
    const double of_history = curvature();
    training.world.add(training.history, 1);
    training.theta = training.first;  // away from the minimum
    const double step = training.replay(12, 2);
    // The first training halved its step once, too.
    EXPECT_TRUE(halvings == 2 || std::abs(step - trained) <= 0.1 * trained);
    EXPECT_LT(step, rate / std::pow(2.0, halvings) / training.prior_scale() / training.lambda);
    EXPECT_EQ(curvature(), of_history);
  }
}

/// The winners are coins, so there is next to nothing to learn, and the mean loss of a pair should stay. It
/// rises by 1.4 % with plain steps on samples, and rose by 11 % with momentum there.
TEST(FullBatchTrainerTest, ReplaysOfNoiseDoNotRaiseTheLossOfTheHistory) {
  TrainerSettings settings = Replaying::on_growth();
  settings.learning_rate = 1.0;
  settings.steps = 20;
  settings.optimizer = Optimizer::kNesterov;
  Replaying training(settings, 1600);
  for (int again = 0; again < 5; ++again) training.train(1);
  const double trained = training.loss_of_history() / 1600.0;
  for (std::uint32_t round = 2; round <= 150; ++round) {
    training.world.add(training.history, 1);
    training.replay(64, round);
    EXPECT_LT(training.loss_of_history() / (1599.0 + round), 1.05 * trained) << round;
  }
}

TEST(FullBatchTrainerTest, ReplaySurvivesDocumentsOfAnyScale) {
  for (const double scale : {1e2, 1e4, 1e8}) {
    SCOPED_TRACE(scale);
    Replaying training(Replaying::on_growth());
    training.train(1);
    for (std::uint32_t round = 2; round <= 8; ++round) {
      add_scaled(training, scale, 1);
      const double step = training.replay(12, round);
      EXPECT_TRUE(std::isfinite(step) && step > 0.0) << step;
      for (const float value : training.theta) ASSERT_LT(std::abs(value), 1e3F);
    }
  }
}

}  // namespace
}  // namespace olrank
