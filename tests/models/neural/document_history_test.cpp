#include "models/neural/document_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/feedback/preference_pairs.h"
#include "tests/core/ops/network_fixture.h"
#include "tests/models/neural/recorded_rounds.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/saved_state.h"
#include "tests/support/slow_ndcg.h"

namespace olrank {
namespace {

constexpr std::int64_t kDocs = 9;  // of each of four queries; a document's one feature is its number

struct Impression {
  std::int64_t query = 0;
  std::vector<std::int32_t> shown;
  std::vector<std::uint8_t> clicks;
  std::vector<PreferencePair> pairs;
};

/// Random lists with random clicks, and all their pairs.
std::vector<Impression> random_impressions(std::size_t count, std::uint64_t seed) {
  std::vector<Impression> made;
  RngStream draws(test_key(seed), 5);
  while (made.size() < count) {
    Impression one;
    one.query = draws.index(4);
    one.shown = shuffled(draws, kDocs);
    one.shown.resize(2 + draws.index(kDocs - 1));
    for (std::size_t rank = 0; rank < one.shown.size(); ++rank)
      one.clicks.push_back(draws.uniform() < 0.4 ? 1 : 0);
    preference_pairs({.pairs = made.size() % 2 == 0 ? PairRule::kAll : PairRule::kAdjacent, .debias = {}},
                     one.shown, one.clicks, draws, one.pairs);
    if (!one.pairs.empty()) made.push_back(one);
  }
  return made;
}

void add(DocumentHistory& history, const Impression& one) {
  std::vector<float> values(4 * kDocs);
  std::iota(values.begin(), values.end(), 0.0F);
  const QueryDocs query{one.query, one.query * kDocs, {values.data() + one.query * kDocs, kDocs, 1}};
  history.add({1, query, one.shown, one.clicks}, one.pairs);
}

std::int64_t number_of(const DocumentHistory& history, std::int32_t row) {
  return static_cast<std::int64_t>(history.features().doc(row)[0]);
}

TEST(DocumentHistoryTest, FoldedTermsEqualThePlainList) {
  RngStream draws(test_key(61), 6);
  std::vector<double> score;
  for (std::int64_t doc = 0; doc < 4 * kDocs; ++doc) score.push_back(draws.normal());
  for (const bool impressions : {false, true}) {
    DocumentHistory history(1, impressions);
    std::map<std::pair<std::int64_t, std::int64_t>, std::pair<double, double>> counted;
    std::set<std::int64_t> seen;
    double plain = 0.0;
    std::int64_t observed = 0;
    for (const Impression& one : random_impressions(60, 62)) {
      add(history, one);
      for (const auto& [winner, loser] : one.pairs) {
        const std::int64_t w = one.query * kDocs + winner;
        const std::int64_t l = one.query * kDocs + loser;
        auto& [weight, labels] = counted[{std::min(w, l), std::max(w, l)}];
        weight += 1.0;
        labels += w < l ? 1.0 : 0.0;
        seen.insert({w, l});
        plain += std::log1p(std::exp(-(score[w] - score[l])));
        ++observed;
      }
      for (std::int64_t rank = 0; impressions && rank < examined_documents(one.clicks); ++rank)
        seen.insert(one.query * kDocs + one.shown[rank]);
    }
    EXPECT_EQ(history.observed(), observed);
    EXPECT_EQ(history.docs(), std::ssize(seen));
    ASSERT_EQ(history.terms().size(), counted.size());
    ASSERT_LT(2 * counted.size(), static_cast<std::size_t>(observed));  // pairs did come back
    double folded = 0.0;
    for (const PairTerm& term : history.terms()) {
      const std::int64_t first = number_of(history, term.first);
      const std::int64_t second = number_of(history, term.second);
      const auto known = counted.find({first, second});
      ASSERT_NE(known, counted.end()) << first << ", " << second;
      EXPECT_EQ(std::pair(term.weight, term.labels), known->second);
      const double z = score[first] - score[second];
      folded +=
          term.labels * std::log1p(std::exp(-z)) + (term.weight - term.labels) * std::log1p(std::exp(z));
    }
    // Sums of some hundred doubles.
    EXPECT_NEAR(folded, plain, 1e-12 * plain);
    // Weights of observations fold the same way.
    std::vector<double> weights;
    std::vector<double> expected_weight(history.terms().size());
    std::vector<double> expected_labels(history.terms().size());
    for (const auto& one : history.observations()) {
      weights.push_back(draws.uniform());
      expected_weight[one.term] += weights.back();
      if (one.first_wins != 0) expected_labels[one.term] += weights.back();
    }
    std::vector<PairTerm> weighted;
    fold_pairs(history.terms(), history.observations(), weights, weighted);
    ASSERT_EQ(weighted.size(), history.terms().size());
    for (std::size_t t = 0; t < weighted.size(); ++t) {
      EXPECT_EQ(weighted[t].first, history.terms()[t].first);
      EXPECT_EQ(weighted[t].second, history.terms()[t].second);
      EXPECT_NEAR(weighted[t].weight, expected_weight[t], 1e-12);
      EXPECT_NEAR(weighted[t].labels, expected_labels[t], 1e-12);
    }
  }
}

TEST(DocumentHistoryTest, NdcgChangesEqualThoseOfSwaps) {
  for (std::uint64_t seed = 70; seed < 90; ++seed) {
    const std::vector<Impression> impressions = random_impressions(12, seed);
    DocumentHistory history(1, true);
    for (const Impression& one : impressions) add(history, one);
    // Three possible scores, so that most documents are tied with others.
    RngStream draws(test_key(seed), 7);
    std::vector<float> by_number;
    for (std::int64_t doc = 0; doc < 4 * kDocs; ++doc)
      by_number.push_back(static_cast<float>(draws.index(3)));
    std::vector<float> scores;
    for (std::int32_t row = 0; row < history.docs(); ++row)
      scores.push_back(by_number[number_of(history, row)]);
    std::vector<double> changes;
    ndcg_changes(history.pair_lists(), scores, changes);
    std::size_t at = 0;
    for (const Impression& one : impressions) {
      struct Examined {
        std::int32_t doc;
        int click;
      };
      std::vector<Examined> list;
      for (std::int64_t rank = 0; rank < examined_documents(one.clicks); ++rank)
        list.push_back({one.shown[rank], one.clicks[rank]});
      const auto score_of = [&](const Examined& e) { return by_number[one.query * kDocs + e.doc]; };
      std::sort(list.begin(), list.end(), [&](const Examined& a, const Examined& b) {
        return score_of(a) != score_of(b) ? score_of(a) > score_of(b) : a.doc < b.doc;
      });
      std::vector<int> labels;
      for (const Examined& e : list) labels.push_back(e.click);
      for (const auto& [winner, loser] : one.pairs) {
        const auto place = [&, &list = list](std::int32_t doc) {
          std::size_t rank = 0;
          while (list[rank].doc != doc) ++rank;
          return rank;
        };
        std::vector<int> swapped = labels;
        std::swap(swapped[place(winner)], swapped[place(loser)]);
        ASSERT_LT(at, changes.size());
        // Sums of at most nine numbers below 1.
        EXPECT_NEAR(changes[at], std::fabs(slow_ndcg(labels) - slow_ndcg(swapped)), 1e-14);
        EXPECT_GT(changes[at], 0.0);
        ++at;
      }
    }
    EXPECT_EQ(at, changes.size());
  }
}

TEST(DocumentHistoryTest, NoticesDocumentsThatOutgrowThoseBefore) {
  DocumentHistory history(1, false);
  // ‖x‖² has to quadruple, whatever the sign.
  const std::vector<std::pair<float, bool>> lists = {{1.0F, false}, {1.9F, false}, {3.7F, false},
                                                     {-7.5F, true}, {7.5F, false}, {1e6F, true}};
  for (const auto& [value, outgrows] : lists) {
    const std::int64_t number = history.docs();
    SCOPED_TRACE(value);
    const std::vector<float> values = {0.5F, value};
    const QueryDocs query{number, 2 * number, {values.data(), 2, 1}};
    history.add(
        {static_cast<std::uint32_t>(number + 1), query, ShownDocs{0, 1}, std::vector<std::uint8_t>{1, 0}},
        std::vector{PreferencePair{0, 1}});
    EXPECT_EQ(history.latest_docs_outgrow(), outgrows);
    load_state(history, state_of(history));
  }
}

TEST(DocumentHistoryTest, RefusesTheStateOfOtherFeatures) {
  const DocumentHistory two_features(2, false);
  DocumentHistory one_feature(1, false);
  EXPECT_ANY_THROW(load_state(one_feature, state_of(two_features)));
}

/// Where nothing needs single pairs, repetitions take no memory.
TEST(DocumentHistoryTest, WithCountsAloneRepetitionsTakeNoMemory) {
  DocumentHistory history(1, HistoryContent{.pairs = false, .counts = true});
  std::int64_t bytes = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const Impression& one : random_impressions(60, 93)) add(history, one);
    StateWriter state;
    history.save(state);
    if (repeat > 0) {
      EXPECT_EQ(state.value_bytes(), bytes);
    }
    bytes = state.value_bytes();
  }
}

// The tests below count what a round of a neural ranker allocates once the same queries come back.

/// Allocations of each of `rounds` rounds after `warm` others.
std::vector<std::int64_t> allocations_of(const RankerSettings& settings, std::uint32_t warm,
                                         std::uint32_t rounds) {
  const SmallWorld world(95, 2, 10, 5);
  const auto ranker = make_neural(settings, world.features());
  TestContext context;
  std::vector<std::int64_t> counts;
  std::vector<std::int32_t> shown(10);
  std::vector<std::uint8_t> clicks(10);
  for (std::uint32_t round = 1; round <= warm + rounds; ++round) {
    const QueryDocs query = world.query_of(round);
    const std::int64_t before = allocation_count();
    const auto docs = ranker->rank(context.round, query, round).docs;
    std::int64_t count = allocation_count() - before;
    std::copy(docs.begin(), docs.end(), shown.begin());
    for (std::size_t rank = 0; rank < 10; ++rank) {
      RngStream coins(make_key({.seed = 4, .purpose = Purpose::kClick}), round,
                      static_cast<std::uint32_t>(shown[rank]));
      clicks[rank] = coins.uniform() < 0.5 ? 1 : 0;
    }
    const std::int64_t between = allocation_count();
    ranker->learn(context.round, {round, query, shown, clicks});
    count += allocation_count() - between;
    if (round > warm) counts.push_back(count);
  }
  return counts;
}

/// A round allocates nothing once its arrays have grown. The diagonal covariance copies a round's pairs, at
/// most one vector for each of five; medians, as some rounds let an array grow.
TEST(AllocationTest, RoundsAllocateNothing) {
  for (const std::string name : {"diagonal", "ensemble"}) {
    for (const std::int64_t steps : {1, 10}) {
      for (const std::int64_t members : {1, 3}) {
        for (const Retrain retrain : {Retrain::kEveryRound, Retrain::kGrowth}) {
          SCOPED_TRACE(testing::Message() << name << ", " << steps << " steps, " << name_of(retrain));
          RankerSettings settings = neural_settings(name);
          settings.trainer.steps = steps;
          settings.trainer.retrain = retrain;
          settings.trainer.replay = 64;
          settings.posterior.members = members;
          if (name == "diagonal" && members == 3) continue;  // it has none
          std::vector<std::int64_t> counts = allocations_of(settings, 300, 201);
          std::sort(counts.begin(), counts.end());
          EXPECT_EQ(counts.front(), 0);
          EXPECT_LE(counts[100], name == "diagonal" ? 5 : 0);
          EXPECT_LE(counts.back(), 40);
        }
      }
    }
  }
}

}  // namespace
}  // namespace olrank
