#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/feedback/preference_pairs.h"
#include "core/metrics/list_metrics.h"
#include "core/online/online_ranker.h"
#include "models/baselines/baselines.h"
#include "models/ranker_factory.h"
#include "tests/models/small_world.h"
#include "tests/support/chi_square.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

using Docs = ShownDocs;
using Clicks = std::vector<std::uint8_t>;

PhiloxKey plackett_luce_key(std::uint64_t seed) {
  return make_key({.seed = seed, .purpose = Purpose::kProbe});
}

long double at(const std::vector<double>& scores, std::int32_t doc) {
  return scores[doc];
}

/// log P(list) under Plackett-Luce, each denominator over everything not yet placed, summed from scratch.
long double log_probability(const std::vector<double>& scores, const Docs& list) {
  std::vector<bool> placed(scores.size(), false);
  long double log_p = 0.0L;
  for (const std::int32_t doc : list) {
    long double largest = -INFINITY;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (!placed[i]) largest = std::max<long double>(largest, scores[i]);
    }
    long double sum = 0.0L;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (!placed[i]) sum += std::exp(scores[i] - largest);
    }
    log_p += at(scores, doc) - largest - std::log(sum);
    placed[doc] = true;
  }
  return log_p;
}

/// The closed form, pair by pair, with the probabilities of both whole lists multiplied out.
std::vector<long double> brute_force(const std::vector<double>& scores, const Docs& shown,
                                     const Clicks& clicks) {
  std::vector<long double> weights(scores.size(), 0.0L);
  const auto examined = static_cast<std::size_t>(examined_documents(clicks));
  const long double log_p = log_probability(scores, shown);
  for (std::size_t i = 0; i < examined; ++i) {
    for (std::size_t j = 0; j < examined; ++j) {
      if (clicks[i] == 0 || clicks[j] != 0) continue;
      Docs swapped = shown;
      std::swap(swapped[i], swapped[j]);
      const long double rho = 1.0L / (1.0L + std::exp(log_p - log_probability(scores, swapped)));
      const long double z = at(scores, shown[i]) - at(scores, shown[j]);
      const long double slope = 1.0L / ((1.0L + std::exp(-z)) * (1.0L + std::exp(z)));
      weights[shown[i]] += rho * slope;
      weights[shown[j]] -= rho * slope;
    }
  }
  return weights;
}

struct Impression {
  std::vector<double> scores;
  Docs shown;
  Clicks clicks;
};

/// Documents, shown length, clicks and scores within ±range at random, or in clusters far from each other.
Impression random_impression(RngStream& draws, std::size_t docs, double range, bool clustered) {
  Impression made;
  for (std::size_t i = 0; i < docs; ++i) {
    const double u = clustered ? static_cast<double>(draws.index(3)) - 1.0 + 1e-3 * draws.normal()
                               : 2.0 * draws.uniform() - 1.0;
    made.scores.push_back(range * u);
  }
  made.shown = shuffled(draws, static_cast<std::int64_t>(docs));
  made.shown.resize(1 + draws.index(static_cast<std::uint32_t>(docs)));
  for (std::size_t i = 0; i < made.shown.size(); ++i) {
    made.clicks.push_back(static_cast<std::uint8_t>(draws.index(2)));
  }
  return made;
}

std::vector<double> pair_weights(const Impression& impression) {
  static Scratch scratch;
  std::vector<double> weights(impression.scores.size(), NAN);  // every one has to be written
  plackett_luce_pair_weights(impression.scores, impression.shown, impression.clicks, scratch, weights);
  return weights;
}

/// A weight is a sum of up to 40 terms of one sign, a term a product of up to 40 factors, each good to a
/// few 2^-53 plus the rounding of differences of scores, which sum to less than 745 before all underflows:
/// below 40·8·2^-53 + 745·2^-52 = 2e-13. Subnormal values have an absolute error instead.
void expect_brute_force(const Impression& impression, const std::string& what) {
  const auto expected = brute_force(impression.scores, impression.shown, impression.clicks);
  const auto weights = pair_weights(impression);
  for (std::size_t doc = 0; doc < weights.size(); ++doc) {
    const auto error = std::abs(static_cast<long double>(weights[doc]) - expected[doc]);
    ASSERT_FALSE(!(error <= 1e-300L + 1e-12L * std::abs(expected[doc])))
        << what << ", document " << doc << ": " << weights[doc] << " instead of "
        << static_cast<double>(expected[doc]);
  }
}

TEST(PlackettLuceGradientTest, MatchesTheExpandedClosedForm) {
  RngStream draws(plackett_luce_key(1), 0);
  for (const double range : {1e-6, 1.0, 10.0, 40.0, 200.0, 700.0}) {
    for (std::size_t docs = 2; docs <= 40; ++docs) {
      for (int repetition = 0; repetition < 12; ++repetition) {
        const bool clustered = repetition % 3 == 2;
        expect_brute_force(random_impression(draws, docs, range, clustered),
                           "range " + std::to_string(range) + ", " + std::to_string(docs) + " documents");
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(PlackettLuceGradientTest, MatchesForAllLengthsAndClickPatterns) {
  RngStream draws(plackett_luce_key(2), 0);
  for (std::size_t docs = 1; docs <= 6; ++docs) {
    for (std::size_t length = 1; length <= docs; ++length) {
      for (std::uint32_t pattern = 0; pattern < (1U << length); ++pattern) {
        Impression made = random_impression(draws, docs, 3.0, false);
        made.shown = shuffled(draws, static_cast<std::int64_t>(docs));
        made.shown.resize(length);
        made.clicks.clear();
        for (std::size_t i = 0; i < length; ++i) made.clicks.push_back((pattern >> i) & 1U);
        expect_brute_force(made, "pattern " + std::to_string(pattern));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(PlackettLuceGradientTest, KeysGivePlackettLuceLists) {
  const std::vector<double> scores = {0.7, -0.4, 0.1, 1.2};
  const auto probability_of = [&](const Docs& list) {
    return static_cast<double>(std::exp(log_probability(scores, list)));
  };
  std::vector<double> keys(4);
  EXPECT_TRUE(orders_follow(4, 100'000, probability_of, [&](std::uint32_t round, Docs& list) {
    plackett_luce_keys(scores, plackett_luce_key(3), round, keys);
    std::sort(list.begin(), list.end(), [&](std::int32_t a, std::int32_t b) { return keys[a] > keys[b]; });
  }));
}

TEST(PlackettLuceGradientTest, KeysDependOnTheScoreAlone) {
  // Common random numbers: the same document in the same round has the same Gumbel variable.
  std::vector<double> low(3);
  std::vector<double> high(5);
  plackett_luce_keys(std::vector<double>{0, 0, 0}, plackett_luce_key(4), 9, low);
  plackett_luce_keys(std::vector<double>{0, 2, 0, 7, 7}, plackett_luce_key(4), 9, high);
  EXPECT_EQ(high[0], low[0]);
  EXPECT_DOUBLE_EQ(high[1], low[1] + 2.0);
  EXPECT_EQ(high[2], low[2]);
}

TEST(PdgdTest, FollowsTheWeightedGradient) {
  const SmallWorld world(1, 3, 9, 4);
  const std::vector<float> theta = {0.5F, -1.0F, 2.0F, 0.25F};
  RankerSettings settings = bandit_settings("pdgd");
  settings.trainer.learning_rate = 0.3;
  settings.trainer.learning_rate_decay = 0.5;
  const auto ranker = make_bandit(settings, 4, theta);
  TestContext context;
  const QueryDocs query = world.query(2);
  // A round without a click moves nothing, but the step decays.
  ranker->learn(context.round, {1, query, Docs{0, 1}, Clicks{0, 0}});
  const Docs shown = {8, 1, 3, 0, 5};
  const Clicks clicks = {0, 1, 0, 1, 0};
  const LearnReport report = ranker->learn(context.round, {2, query, shown, clicks});
  EXPECT_EQ(std::vector<PreferencePair>(report.pairs.begin(), report.pairs.end()),
            (std::vector<PreferencePair>{{1, 8}, {1, 3}, {1, 5}, {0, 8}, {0, 3}, {0, 5}}));
  EXPECT_TRUE(report.steps.empty());

  std::vector<double> scores;
  for (std::int64_t doc = 0; doc < 9; ++doc)
    scores.push_back(dot(std::vector<double>(theta.begin(), theta.end()), query.features.doc(doc)));
  std::vector<double> weights(9);
  Scratch scratch;
  plackett_luce_pair_weights(scores, shown, clicks, scratch, weights);
  const std::vector<float> moved = theta_of(*ranker);
  for (std::size_t k = 0; k < 4; ++k) {
    double gradient = 0.0;
    for (std::int64_t doc = 0; doc < 9; ++doc) gradient += weights[doc] * query.features.doc(doc)[k];
    // The ranker's scores are rounded to float: relative 6e-8 of each of a few terms of size 2.
    EXPECT_NEAR(moved[k], theta[k] + 0.15 * gradient, 1e-6);
  }
}

TEST(PdgdTest, RefusesAStepThatWouldOverflowScoresAndKeepsParameters) {
  const SmallWorld world(1, 3, 9, 4);
  const std::vector<float> theta = {0.5F, -1.0F, 2.0F, 0.25F};
  RankerSettings settings = bandit_settings("pdgd");
  settings.trainer.learning_rate = 1e30;
  const auto ranker = make_bandit(settings, 4, theta);
  TestContext context;
  EXPECT_THROW(ranker->learn(context.round, {1, world.query(2), Docs{8, 1, 3}, Clicks{0, 1, 0}}),
               NumericError);
  EXPECT_EQ(theta_of(*ranker), theta);
}

}  // namespace
}  // namespace olrank

// The propensities of lists are the frequencies with which they are drawn.

namespace olrank {
namespace {

constexpr std::int64_t kWorldDocs = 5;
constexpr std::int64_t kShown = 3;
constexpr std::uint32_t kLists = 100'000;

struct Case {
  const char* name;
  RankerKind kind;
  ListRule list = ListRule::kCertain;
  double epsilon = 0.0;
  bool taught = true;  // else all scores tie
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

class PropensityTest : public testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<OnlineRanker> make() {
    const Case& one = GetParam();
    RankerSettings settings = RankerSettings::defaults(one.kind, ProtocolName::kPaper);
    settings.name = one.name;
    settings.network.width = 4;
    settings.trainer.steps = 5;
    settings.explore.list = one.list;
    settings.explore.alpha = 1.0;
    settings.posterior.members = 3;
    if (one.epsilon > 0.0) {
      settings.bandit.exploration = SimpleExploration::kEpsilon;
      settings.bandit.epsilon = one.epsilon;
    }
    auto ranker = make_ranker(settings, world_.features(), TrialKeys::of(3, 1, "propensity"), kShown);
    for (std::uint32_t round = 1; one.taught && round <= 6; ++round) {
      const QueryDocs query = world_.query_of(round);
      ShownDocs shown;
      for (const std::uint32_t step : {0, 2, 3})
        shown.push_back(static_cast<std::int32_t>((round + step) % kWorldDocs));
      ranker->learn(context_.round, {round, query, shown, world_.perfect_clicks(query.query, shown)});
    }
    return ranker;
  }

  SmallWorld world_{17, 4, kWorldDocs, 3};
  TestContext context_;
};

TEST_P(PropensityTest, IsTheFrequencyOfTheList) {
  const auto ranker = make();
  const QueryDocs query = world_.query_of(2);
  struct Prefix {
    std::int64_t count = 0;
    std::vector<double> propensity;
  };
  std::map<std::vector<std::int32_t>, Prefix> seen;
  for (std::uint32_t round = 100; round < 100 + kLists; ++round) {
    const RankedList list = ranker->rank(context_.round, query, round);
    ASSERT_GE(list.propensity.size(), static_cast<std::size_t>(kShown));
    Prefix& prefix = seen[{list.docs.begin(), list.docs.begin() + kShown}];
    const std::vector<double> propensity(list.propensity.begin(), list.propensity.begin() + kShown);
    if (prefix.count++ == 0) prefix.propensity = propensity;
    for (std::size_t rank = 0; rank < propensity.size(); ++rank)
      ASSERT_NEAR(propensity[rank], prefix.propensity[rank], 1e-12);
  }
  std::vector<std::int64_t> counts;
  std::vector<double> probabilities;
  double total = 0.0;
  for (const auto& [docs, prefix] : seen) {
    counts.push_back(prefix.count);
    probabilities.push_back(prefix.propensity[0] * prefix.propensity[1] * prefix.propensity[2]);
    total += probabilities.back();
  }
  EXPECT_LE(total, 1.0 + 1e-9);
  EXPECT_GE(total, 0.999);  // what was not seen is rare
  counts.push_back(0);
  probabilities.push_back(std::max(0.0, 1.0 - total));
  EXPECT_TRUE(counts_follow(counts, probabilities, kTail));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, PropensityTest,
    testing::Values(Case{"certain", RankerKind::kPairRank, ListRule::kCertain},
                    Case{"blocks", RankerKind::kPairRank, ListRule::kBlocks},
                    Case{"blocks-certain", RankerKind::kPairRank, ListRule::kBlocksCertain},
                    Case{"greedy", RankerKind::kPairRank, ListRule::kGreedy},
                    Case{"votes", RankerKind::kP2LinRank, ListRule::kCertain},
                    Case{"pdgd", RankerKind::kPdgd},
                    Case{"pdgd-ties", RankerKind::kPdgd, ListRule::kCertain, 0.0, false},
                    Case{"epsilon", RankerKind::kRankNet, ListRule::kCertain, 0.3}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace olrank
