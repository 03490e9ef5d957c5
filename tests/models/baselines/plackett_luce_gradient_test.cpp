#include "models/baselines/pdgd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "core/feedback/preference_pairs.h"
#include "tests/support/chi_square.h"

namespace olrank {
namespace {

using Docs = std::vector<std::int32_t>;
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
  made.shown.resize(docs);
  std::iota(made.shown.begin(), made.shown.end(), 0);
  draws.shuffle(std::span<std::int32_t>(made.shown));
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
        made.shown.resize(docs);
        std::iota(made.shown.begin(), made.shown.end(), 0);
        draws.shuffle(std::span<std::int32_t>(made.shown));
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
  std::map<Docs, std::int64_t> seen;
  Docs list = {0, 1, 2, 3};
  std::vector<double> probabilities;
  do {
    seen[list] = 0;
    probabilities.push_back(static_cast<double>(std::exp(log_probability(scores, list))));
  } while (std::next_permutation(list.begin(), list.end()));
  std::vector<double> keys(4);
  for (std::uint32_t round = 1; round <= 100'000; ++round) {
    plackett_luce_keys(scores, plackett_luce_key(3), round, keys);
    std::sort(list.begin(), list.end(), [&](std::int32_t a, std::int32_t b) { return keys[a] > keys[b]; });
    ++seen[list];
  }
  std::vector<std::int64_t> counts;
  for (const auto& [order, count] : seen) counts.push_back(count);
  EXPECT_TRUE(counts_follow(counts, probabilities));
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

}  // namespace
}  // namespace olrank
