#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "models/neural/network_trainer.h"
#include "models/neural/training_sample.h"
#include "tests/models/neural/plain_training.h"
#include "tests/support/chi_square.h"

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
        trainer(make_mini_batch_trainer({model, settings, kLambda, 1.0, first, test_key(seed)})) {
    initialise(shape, Initialisation::kUniform, test_key(seed), first);
    key = test_key(seed);
    theta = first;
  }

  void train(std::uint32_t round, std::span<const PairTerm> terms = {}) {
    const auto step =
        trainer->train(context, {history, terms.empty() ? history.terms() : terms, false, round}, theta);
    EXPECT_FALSE(step.has_value());
  }

  /// Trains on the same batches, in double, one pair at a time.
  std::vector<double> plain(std::uint32_t round, std::span<const PlainPair> pairs) const {
    std::vector<double> at = in_double(first);
    PlainAdam adam(at.size());
    std::vector<std::int32_t> order(pairs.size());
    std::iota(order.begin(), order.end(), 0);
    std::vector<double> gradient;
    for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
      RngStream coins(key, round, epoch, 1);
      coins.shuffle(std::span(order));
      for (std::size_t begin = 0; begin < pairs.size(); begin += 8) {
        std::vector<PlainPair> batch;
        for (std::size_t i = begin; i < std::min(begin + 8, pairs.size()); ++i)
          batch.push_back(pairs[order[i]]);
        plain_loss(shape, at, batch, 1.0 / static_cast<double>(batch.size()), 0.0, {}, &gradient);
        for (std::size_t k = 0; k < at.size(); ++k)
          gradient[k] += kLambda / static_cast<double>(pairs.size()) * at[k];
        if (settings.optimizer == Optimizer::kAdam) {
          adam.step(settings.learning_rate, gradient, at);
          continue;
        }
        for (std::size_t k = 0; k < at.size(); ++k) at[k] -= settings.learning_rate * gradient[k];
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
  std::unique_ptr<NetworkTrainer> trainer;
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

TEST(MiniBatchTrainerTest, RefusesNesterov) {
  TrainerSettings settings = adam();
  settings.optimizer = Optimizer::kNesterov;
  EXPECT_THROW(Batches{settings}, InvalidArgument);
}

constexpr std::int64_t kSampleFeatures = 3;

/// A history of pairs of which some came several times, and the pairs of its latest round.
struct Sampled {
  explicit Sampled(bool lists)
      : world(71, 3, 5, kSampleFeatures),
        history(kSampleFeatures, HistoryContent{.lists = lists, .counts = true}) {
    world.add(history, 90);
    add_round();
  }

  /// Three pairs of one list, of which two are the same.
  void add_round() {
    const std::vector<std::int32_t> shown = {0, 1, 2, 3, 4};
    const std::vector<std::uint8_t> clicks = {1, 0, 1, 0, 0};
    const std::vector<PreferencePair> pairs = {{0, 1}, {2, 3}, {0, 1}};
    history.add({91, world.query(1), shown, clicks}, pairs);
  }
  /// A term's weight and labels by its documents in the history.
  using Weights = std::map<std::pair<std::int32_t, std::int32_t>, std::pair<double, double>>;
  Weights weights_of(const TrainingSample& sample) const {
    Weights weights;
    for (const PairTerm& term : sample.terms()) {
      const auto [known, is_new] = weights.try_emplace(
          {sample.rows()[term.first], sample.rows()[term.second]}, term.weight, term.labels);
      EXPECT_TRUE(is_new);
    }
    return weights;
  }
  Weights whole() const {
    Weights weights;
    for (const PairTerm& term : history.terms())
      weights[{term.first, term.second}] = {term.weight, term.labels};
    return weights;
  }

  PairWorld world;
  DocumentHistory history;
  TrainingSample sample;
};

TEST(TrainingSampleTest, TakesAllWhereThereIsNoMoreThanItDraws) {
  for (const bool lists : {false, true}) {
    Sampled sampled(lists);
    for (const std::int64_t replay : {90, 1000}) {
      sampled.sample.draw(sampled.history, test_key(1), 5, replay);
      EXPECT_EQ(sampled.weights_of(sampled.sample), sampled.whole());
      for (std::int32_t row = 0; row < sampled.sample.features().docs; ++row) {
        const auto x = sampled.sample.features().doc(row);
        const auto expected = sampled.history.features().doc(sampled.sample.rows()[row]);
        EXPECT_TRUE(std::equal(x.begin(), x.end(), expected.begin(), expected.end()));
      }
    }
  }
}

TEST(TrainingSampleTest, OwnPairsCountOnceAndDrawnOnesStandForTheOthers) {
  for (const bool lists : {false, true}) {
    Sampled sampled(lists);
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> drawn;
    constexpr std::int64_t kReplay = 20;
    constexpr std::uint32_t kRounds = 2000;
    const auto whole = sampled.whole();
    std::map<std::pair<std::int32_t, std::int32_t>, double> own;
    for (const PairObservation& one : sampled.history.latest()) {
      const PairTerm& term = sampled.history.terms()[one.term];
      own[{term.first, term.second}] += 1.0;
    }
    for (std::uint32_t round = 1; round <= kRounds; ++round) {
      sampled.sample.draw(sampled.history, test_key(2), round, kReplay);
      double total = 0.0;
      for (const auto& [docs, sums] : sampled.weights_of(sampled.sample)) {
        const double times = (sums.first - own[docs]) / (90.0 / kReplay);
        EXPECT_NEAR(times, std::round(times), 1e-9);
        drawn[docs] += std::llround(times);
        total += sums.first;
        // Without lists a drawn pair has the mean label of the others.
        const auto& [weight, labels] = whole.at(docs);
        if (!lists && own[docs] == 0.0) {
          EXPECT_NEAR(sums.second * weight, sums.first * labels, 1e-9);
        }
      }
      EXPECT_NEAR(total, 93.0, 1e-9);
    }
    std::vector<std::int64_t> counts;
    std::vector<double> probabilities;
    for (const auto& [docs, sums] : whole) {
      counts.push_back(drawn[docs]);
      probabilities.push_back((sums.first - own[docs]) / 90.0);
    }
    const ChiSquare test = chi_square(counts, probabilities);
    EXPECT_FALSE(test.impossible_seen);
    EXPECT_GT(test.degrees, 10);
    EXPECT_LT(test.statistic, test.bound(kMillionth));
  }
}

TEST(TrainingSampleTest, DrawsBelongToTheRound) {
  Sampled sampled(false);
  const auto draw = [&](std::uint64_t key, std::uint32_t round) {
    sampled.sample.draw(sampled.history, test_key(key), round, 20);
    return sampled.weights_of(sampled.sample);
  };
  const auto first = draw(3, 1);
  EXPECT_NE(draw(3, 2), first);
  EXPECT_NE(draw(4, 1), first);
  EXPECT_EQ(draw(3, 1), first);
}

/// |ΔNDCG| of a drawn pair is that of its whole list.
TEST(TrainingSampleTest, DrawnPairsKeepTheirLists) {
  Sampled sampled(true);
  for (std::uint32_t round = 1; round <= 50; ++round) {
    sampled.add_round();
    std::vector<float> scores;
    RngStream draws(test_key(round), 9);
    for (std::int64_t row = 0; row < sampled.history.docs(); ++row)
      scores.push_back(static_cast<float>(draws.index(4)));
    std::vector<double> all;
    ndcg_changes(sampled.history.pair_lists(), scores, all);
    sampled.sample.draw(sampled.history, test_key(5), round, 15);
    std::vector<float> of_sample;
    for (const std::int32_t row : sampled.sample.rows()) of_sample.push_back(scores[row]);
    std::vector<double> changes;
    const PairLists lists = sampled.sample.lists();
    ndcg_changes(lists, of_sample, changes);
    ASSERT_EQ(changes.size(), sampled.sample.scales().size());
    // Each is one of the history's, of the same two documents.
    for (std::size_t pair = 0; pair < changes.size(); ++pair) {
      const PairTerm& term = sampled.sample.terms()[lists.pairs[pair].term];
      bool found = false;
      for (std::size_t other = 0; other < all.size(); ++other) {
        const PairObservation& seen = sampled.history.observations()[other];
        const PairTerm& known = sampled.history.terms()[seen.term];
        found = found || (known.first == sampled.sample.rows()[term.first] &&
                          known.second == sampled.sample.rows()[term.second] &&
                          seen.first_wins == lists.pairs[pair].first_wins && all[other] == changes[pair]);
      }
      EXPECT_TRUE(found);
    }
  }
}

/// The changes from one round to the next are the difference of the two histories.
TEST(TrainingSampleTest, ChangesAreNewPairs) {
  for (const bool lists : {false, true}) {
    Sampled sampled(lists);
    for (int round = 0; round < 40; ++round) {
      // By features, as rows may be numbered again.
      const auto sums = [](FeatureMatrix docs, std::span<const PairTerm> terms) {
        std::map<std::pair<float, float>, std::pair<double, double>> found;
        for (const PairTerm& term : terms) {
          auto& [weight, labels] = found[{docs.doc(term.first)[0], docs.doc(term.second)[0]}];
          weight += term.weight;
          labels += term.labels;
        }
        return found;
      };
      auto expected = sums(sampled.history.features(), sampled.history.terms());
      sampled.add_round();
      sampled.sample.take_changes(sampled.history);
      for (const auto& [docs, change] : sums(sampled.sample.features(), sampled.sample.terms())) {
        expected[docs].first += change.first;
        expected[docs].second += change.second;
      }
      std::erase_if(expected, [](const auto& one) { return one.second.first == 0.0; });
      auto now = sums(sampled.history.features(), sampled.history.terms());
      std::erase_if(now, [](const auto& one) { return one.second.first == 0.0; });
      ASSERT_EQ(expected, now);
    }
  }
}

/// The labels of a member as a history's changes move them, from a training on the whole of it.
struct NoisyLabels {
  static constexpr std::uint32_t kNoiseRound = 7;
  static constexpr double kDeviation = 0.6;

  /// The number-th pair of 30, several times.
  void add(std::int32_t number, std::size_t times) {
    const std::int32_t winner = number % 10 / 2;
    const std::int32_t loser = (winner + 1 + number % 2) % 5;
    const std::vector<std::int32_t> shown = {winner, loser};
    const std::vector<std::uint8_t> clicks = {1, 0};
    history.add({1, world.query(number / 10), shown, clicks},
                std::vector<PreferencePair>(times, {winner, loser}));
  }
  double noise_of(std::int32_t term, double weight) const {
    RngStream coins(key, kNoiseRound, static_cast<std::uint32_t>(term));
    return kDeviation * std::sqrt(weight) * coins.normal();
  }
  void train() {
    labels.clear();
    for (std::size_t term = 0; term < history.terms().size(); ++term) {
      const PairTerm& one = history.terms()[term];
      labels.push_back(one.labels + noise_of(static_cast<std::int32_t>(term), one.weight));
    }
  }
  void take_changes() {
    changes.take_changes(history);
    labels.resize(history.terms().size());
    for (const SampledTerm& source : changes.sources()) {
      const SampledLabels change = noisy_sampled_labels(source, key, kNoiseRound, kDeviation);
      labels[source.term] += change.own + change.drawn;
    }
  }

  PhiloxKey key = test_key(72);
  PairWorld world{71, 3, 5, kSampleFeatures};
  DocumentHistory history{kSampleFeatures, HistoryContent{.counts = true}};
  TrainingSample changes;
  std::vector<double> labels;  // of each term
};

// At any time the labels are those of the history as it is, with the noise that its training would give
// them: N(0, ν² W) for pairs of weight W, whatever has come.
TEST(TrainingSampleTest, NoiseIsThatOfTheHistoryAsItIs) {
  NoisyLabels noisy;
  RngStream draws(test_key(73), 1);
  for (std::int32_t pair = 0; pair < 12; ++pair) noisy.add(pair, 3);
  noisy.train();
  for (int round = 0; round < 60; ++round) {
    noisy.add(static_cast<std::int32_t>(draws.index(14)), 1 + draws.index(4));
    noisy.take_changes();
    for (std::size_t term = 0; term < noisy.labels.size(); ++term) {
      const PairTerm& one = noisy.history.terms()[term];
      const double noise = noisy.noise_of(static_cast<std::int32_t>(term), one.weight);
      ASSERT_NEAR(noisy.labels[term], one.labels + noise, 1e-12) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace olrank
