#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "core/metrics/evaluator.h"
#include "core/metrics/list_metrics.h"
#include "tests/core/metrics/slow_metrics.h"
#include "tests/core/metrics/small_data.h"

namespace olrank {
namespace {

struct Round {
  std::vector<std::uint8_t> grades;
  std::vector<std::int32_t> list;
};

std::vector<Round> random_rounds(std::uint32_t number, std::size_t count) {
  RngStream coins = test_coins(number);
  std::vector<Round> rounds(count);
  for (Round& round : rounds) {
    const std::uint32_t docs = coins.index(25);
    const bool empty = coins.index(6) == 0;
    for (std::uint32_t doc = 0; doc < docs; ++doc) {
      round.grades.push_back(empty ? 0 : static_cast<std::uint8_t>(coins.index(5)));
    }
    round.list.resize(docs);
    std::iota(round.list.begin(), round.list.end(), 0);
    coins.shuffle(std::span<std::int32_t>(round.list));
  }
  return rounds;
}

/// The list as scores: the document at rank r scores −r.
slow::Query as_query(const std::vector<int>& list) {
  slow::Query query;
  query.grades = list;
  for (std::size_t rank = 0; rank < list.size(); ++rank) query.scores.push_back(-static_cast<double>(rank));
  query.retrieved = std::ssize(list);
  return query;
}

TEST(OnlineMetrics, MatchTheirDefinitions) {
  OnlineMetrics online({.cutoff = 10, .discount = 0.9});
  EXPECT_EQ(online.mean_ndcg(), 0.0);
  double sum = 0.0;
  double discounted = 0.0;
  std::int64_t regret = 0;
  std::vector<std::vector<std::int64_t>> exposure(10, std::vector<std::int64_t>(5));
  const std::vector<Round> rounds = random_rounds(6000, 200);
  for (std::size_t t = 0; t < rounds.size(); ++t) {
    std::vector<int> list;
    for (const std::int32_t doc : rounds[t].list) list.push_back(rounds[t].grades[doc]);
    const double ndcg = slow::ndcg(as_query(list), 10, {}).value();  // an empty query counts 0
    // Sums of ten terms on both sides.
    EXPECT_NEAR(online.observe(rounds[t].grades, rounds[t].list), ndcg, 1e-14);
    sum += ndcg;
    discounted += std::pow(0.9, static_cast<double>(t)) * ndcg;
    regret += slow::misordered(list);
    for (std::size_t rank = 0; rank < std::min<std::size_t>(10, list.size()); ++rank) {
      ++exposure[rank][list[rank]];
    }
  }
  EXPECT_EQ(online.rounds(), 200);
  EXPECT_NEAR(online.mean_ndcg(), sum / 200.0, 1e-13);  // 200 sums of errors below 1e-16
  EXPECT_NEAR(online.discounted_ndcg(), discounted, 1e-12);
  EXPECT_EQ(online.regret(), regret);
  for (std::int64_t rank = 0; rank < 10; ++rank) {
    for (int grade = 0; grade <= 4; ++grade) {
      EXPECT_EQ(online.exposure(rank, grade), exposure[rank][grade]);
    }
  }
}

TEST(OnlineMetrics, ContinueWithSameBitsAfterRestoring) {
  const std::vector<Round> rounds = random_rounds(6001, 300);
  OnlineMetrics whole({});
  OnlineMetrics first({});
  for (std::size_t t = 0; t < rounds.size(); ++t) {
    whole.observe(rounds[t].grades, rounds[t].list);
    if (t < 137) first.observe(rounds[t].grades, rounds[t].list);
  }
  OnlineMetrics second({});
  second.restore(first.state());
  for (std::size_t t = 137; t < rounds.size(); ++t) second.observe(rounds[t].grades, rounds[t].list);
  EXPECT_TRUE(second.state() == whole.state());
  EXPECT_GT(whole.regret(), 0);
}

TEST(OnlineMetrics, RefuseMismatchedListsAndStates) {
  EXPECT_THROW(OnlineMetrics({.cutoff = 0}), InvalidArgument);
  EXPECT_THROW(OnlineMetrics({.discount = 0.0}), InvalidArgument);
  EXPECT_THROW(OnlineMetrics({.discount = std::nan("")}), InvalidArgument);
  EXPECT_THROW(OnlineMetrics({.max_grade = 32}), InvalidArgument);
  OnlineMetrics ten({});
  OnlineMetrics five({.cutoff = 5});
  EXPECT_THROW(ten.restore(five.state()), InvalidArgument);
  const std::vector<std::uint8_t> grades = {1, 0};
  const std::vector<std::int32_t> list = {1};
  EXPECT_THROW(ten.observe(grades, list), InvalidArgument);
}

const std::vector<std::vector<std::uint8_t>> kSmallQueries = {
    {0},          {3},          {0, 1},          {2, 2, 2},          {0, 0, 0, 0},       {4, 0, 0},
    {1, 0, 2, 0}, {3, 1, 2, 4}, {0, 0, 1, 0, 1}, {4, 3, 2, 1, 0, 0}, {1, 1, 0, 4, 0, 2},
};

/// Mean and variance over every order of the documents, the obvious way.
template <class Value>
RandomNdcg over_all_orders(std::vector<std::uint8_t> grades, Value&& value) {
  std::vector<std::size_t> order(grades.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<double> values;
  do {
    std::vector<int> list;
    for (const std::size_t doc : order) list.push_back(grades[doc]);
    values.push_back(value(list));
  } while (std::next_permutation(order.begin(), order.end()));
  const auto count = static_cast<double>(values.size());
  RandomNdcg all;
  for (const double one : values) all.mean += one / count;
  for (const double one : values) all.variance += (one - all.mean) * (one - all.mean) / count;
  return all;
}

TEST(RandomOnline, EqualsTheMeanOverAllOrders) {
  for (const std::int64_t cutoff : {1, 2, 3, 5, 10}) {
    for (const auto& grades : kSmallQueries) {
      RandomOnline online({.cutoff = cutoff, .max_grade = 4});
      const RandomNdcg found = online.observe(grades);
      const RandomNdcg all = over_all_orders(grades, [&](const std::vector<int>& list) {
        return slow::ndcg(as_query(list), cutoff, {}).value();
      });
      // At most 720 terms below 1, each with an error of a few 1e-16.
      EXPECT_TRUE(std::fabs(found.mean - all.mean) <= 1e-13) << cutoff;
      EXPECT_TRUE(std::fabs(found.variance - all.variance) <= 1e-13) << cutoff;
      const RandomNdcg regret = over_all_orders(
          grades, [](const std::vector<int>& list) { return static_cast<double>(slow::misordered(list)); });
      EXPECT_TRUE(std::fabs(online.regret() - regret.mean) <= 1e-11) << cutoff;
    }
  }
}

TEST(RandomOrder, IsTheExpectedNdcgOfEvaluations) {
  std::vector<SmallQuery> queries;
  for (const auto& grades : kSmallQueries)
    queries.push_back({"q" + std::to_string(queries.size()), grades, {}});
  const Dataset data = make_dataset(queries);
  ExecutionContext context;
  const std::vector<double> scores(data.docs());
  for (const auto convention : {Convention::kOlrank, Convention::kLetor, Convention::kLightgbm}) {
    for (const auto empty : {EmptyQueries::kZero, EmptyQueries::kOne, EmptyQueries::kSkip}) {
      MetricOptions options;
      apply_convention(convention, options);
      options.cutoffs = {1, 4, 10};
      options.empty_queries = empty;
      const MetricReport report = Evaluator(options).evaluate(data, scores, context);
      for (std::size_t place = 0; place < options.cutoffs.size(); ++place) {
        double sum = 0.0;
        double counted = 0.0;
        for (const auto& grades : kSmallQueries) {
          const RandomNdcg all = over_all_orders(grades, [&](const std::vector<int>& list) {
            return slow::ndcg(as_query(list), options.cutoffs[place], options).value_or(std::nan(""));
          });
          if (std::isnan(all.mean)) continue;
          sum += all.mean;
          counted += 1.0;
        }
        EXPECT_TRUE(std::fabs(report.random_ndcg[place] - sum / counted) <= 1e-13);
      }
    }
  }
}

}  // namespace
}  // namespace olrank
