#include "core/metrics/online.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/metrics/evaluator.h"
#include "tests/core/metrics/slow_metrics.h"
#include "tests/core/metrics/small_data.h"

namespace olrank {
namespace {

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

slow::Query as_query(const std::vector<int>& list) {
  slow::Query query;
  query.grades = list;
  for (std::size_t rank = 0; rank < list.size(); ++rank) query.scores.push_back(-static_cast<double>(rank));
  query.retrieved = std::ssize(list);
  return query;
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

TEST(RandomOnline, SumsLikeOnlineMetrics) {
  RandomOnline online({.cutoff = 3, .discount = 0.9, .max_grade = 4});
  EXPECT_EQ(online.mean_ndcg(), 0.0);
  double sum = 0.0;
  double discounted = 0.0;
  double weight = 1.0;
  for (const auto& grades : kSmallQueries) {
    const double ndcg = online.observe(grades).mean;
    sum += ndcg;
    discounted += weight * ndcg;
    weight *= 0.9;
  }
  EXPECT_DOUBLE_EQ(online.mean_ndcg(), sum / static_cast<double>(kSmallQueries.size()));
  EXPECT_DOUBLE_EQ(online.discounted_ndcg(), discounted);
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
      const MetricReport report = evaluate(data, scores, options, context);
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
