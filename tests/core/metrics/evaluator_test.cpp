#include "core/metrics/evaluator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "core/error.h"
#include "core/metrics/list_metrics.h"
#include "core/metrics/score_files.h"
#include "tests/core/metrics/slow_metrics.h"
#include "tests/core/metrics/small_data.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

// Each figure is a sum of at most 40 terms (a product of 10 for ERR) in an order of its own on both sides:
// 40 roundings of 1.1e-16 each, relative to figures of at most 1; positions go up to 40. 1e-13 covers both.
constexpr double kSumTolerance = 1e-13;

struct Means {
  double sum = 0.0;
  std::int64_t count = 0;
  double reported = 0.0;
  void add(std::optional<double> value) {
    if (!value) return;
    sum += *value;
    ++count;
  }
  double mean() const { return count > 0 ? sum / static_cast<double>(count) : std::nan(""); }
};

void expect_same(double fast, std::optional<double> slow, const std::string& what) {
  if (!slow || std::isnan(*slow)) {
    EXPECT_TRUE(std::isnan(fast)) << what << ": " << fast;
  } else {
    EXPECT_TRUE(std::abs(fast - *slow) <= kSumTolerance * std::max(1.0, std::abs(*slow)))
        << what << ": " << fast << " and " << *slow;
  }
}

slow::Query slow_query(const Dataset& data, std::int64_t query, const std::vector<double>& scores,
                       std::int64_t retrieved) {
  slow::Query made;
  for (std::int64_t doc = 0; doc < data.docs_of(query); ++doc) {
    made.grades.push_back(data.grades_of(query)[doc]);
    made.scores.push_back(scores[data.offset(query) + doc]);
    made.labels.emplace_back(DocLabel(data, query, doc).view());
  }
  made.retrieved = retrieved;
  return made;
}

MetricOptions random_options(RngStream& coins) {
  MetricOptions options;
  options.cutoffs = coins.index(2) == 0 ? std::vector<std::int64_t>{1, 3, 5, 10}
                                        : std::vector<std::int64_t>{100, 2, 1'000'000'000, 7};
  options.gain = coins.index(2) == 0 ? Gain::kExponential : Gain::kLinear;
  options.discount = coins.index(2) == 0 ? Discount::kLog2 : Discount::kLetor;
  options.ties = coins.index(2) == 0 ? Ties::kDocIndex : Ties::kNameDescending;
  options.empty_queries = EnumNames<EmptyQueries>::values[coins.index(3)].first;
  options.short_lists = coins.index(2) == 0 ? ShortLists::kScored : ShortLists::kZero;
  options.unretrieved = coins.index(2) == 0 ? Unretrieved::kLast : Unretrieved::kLost;
  options.precision_cutoff = 1 + coins.index(12);
  options.err_cutoff = 1 + coins.index(12);
  return options;
}

/// Every kind, with and without a cutoff where both exist; kTop takes those with one.
std::vector<NamedMetric> random_named(RngStream& coins, bool whole) {
  std::vector<NamedMetric> metrics;
  for (const char* name : {"ndcg", "dcg", "err", "p", "map", "mrr"}) {
    const auto cutoff = static_cast<std::int64_t>(1 + coins.index(12));
    metrics.push_back(*metric_named(std::string(name) + "@" + std::to_string(cutoff)));
  }
  for (const char* name : {"map", "mrr", "arp", "pair_accuracy"}) {
    if (whole) metrics.push_back(*metric_named(name));
  }
  return metrics;
}

std::optional<double> slow_named(const slow::Query& query, const NamedMetric& metric, int max_grade,
                                 const MetricOptions& options) {
  const std::int64_t shown = slow::shown_of(query, options);
  // The list up to the cutoff, for the metrics that slow:: has of whole lists only.
  slow::Query cut = query;
  MetricOptions of_cut = options;
  if (metric.cutoff > 0) {
    cut.retrieved = std::min(shown, metric.cutoff);
    of_cut.unretrieved = Unretrieved::kLost;
  }
  switch (metric.kind) {
    case MetricKind::kNdcg:
      return slow::ndcg(query, metric.cutoff, options);
    case MetricKind::kDcg:
      if (slow::is_empty(query) && options.empty_queries == EmptyQueries::kSkip) return std::nullopt;
      return slow::dcg(slow::ranked_grades(query, options.ties), metric.cutoff, shown, options.gain,
                       options.discount);
    case MetricKind::kErr:
      of_cut.err_cutoff = metric.cutoff;
      return slow::err(cut, max_grade, of_cut);
    case MetricKind::kPrecision:
      of_cut.precision_cutoff = metric.cutoff;
      return slow::precision(cut, of_cut);
    case MetricKind::kMap:
      return slow::average_precision(cut, of_cut);
    case MetricKind::kMrr:
      return slow::reciprocal_rank(cut, of_cut);
    case MetricKind::kArp:
      return slow::relevant_position(query, options);
    case MetricKind::kPairAccuracy:
      return slow::pair_accuracy(query, options);
    case MetricKind::kOwn:
      break;
  }
  return std::nullopt;
}

/// As a run would leave them: documents beyond the first ones named have no score.
std::vector<std::int64_t> forget_some(RngStream& coins, const Dataset& data, std::vector<double>& scores) {
  std::vector<std::int64_t> retrieved;
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    std::int64_t named = 0;
    for (std::int64_t doc = data.offset(query); doc < data.offset(query + 1); ++doc) {
      const bool is_named = coins.index(3) != 0;
      if (!is_named) scores[doc] = -std::numeric_limits<double>::infinity();
      named += is_named ? 1 : 0;
    }
    retrieved.push_back(named);
  }
  return retrieved;
}

void compare(const Evaluator& evaluator, const Dataset& data, const std::vector<double>& scores,
             const std::vector<std::int64_t>& retrieved) {
  const MetricOptions& options = evaluator.options();
  const MetricReport& report = evaluator.report();
  std::map<std::string, Means> means;
  std::int64_t misordered = 0;
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    const slow::Query obvious =
        slow_query(data, query, scores, retrieved.empty() ? data.docs_of(query) : retrieved[query]);
    const QueryMetrics fast = evaluator.of_query(query);
    const auto check = [&](const std::string& what, double value, std::optional<double> expected,
                           double mean) {
      means[what].add(expected);
      means[what].reported = mean;
      expect_same(value, expected, what + " of " + std::string(data.qid(query)));
    };
    for (std::size_t i = 0; i < options.cutoffs.size(); ++i)
      check(std::to_string(i), fast.ndcg[i], slow::ndcg(obvious, options.cutoffs[i], options),
            report.ndcg[i]);
    check("precision", fast.precision, slow::precision(obvious, options), report.precision);
    check("err", fast.err, slow::err(obvious, report.max_grade, options), report.err);
    for (std::size_t i = 0; i < options.named.size(); ++i)
      check("named " + options.named[i].name(), fast.named[i],
            slow_named(obvious, options.named[i], report.max_grade, options), report.named[i]);
    if (options.metrics != MetricSet::kAll) continue;
    check("map", fast.map, slow::average_precision(obvious, options), report.map);
    check("mrr", fast.mrr, slow::reciprocal_rank(obvious, options), report.mrr);
    check("arp", fast.arp, slow::relevant_position(obvious, options), report.arp);
    check("pair accuracy", fast.pair_accuracy, slow::pair_accuracy(obvious, options), report.pair_accuracy);
    const std::vector<int> list = slow::ranked_grades(obvious, options.ties);
    EXPECT_EQ(fast.misordered_pairs, slow::misordered(list));
    EXPECT_EQ(fast.pairs, slow::pairs(list));
    misordered += slow::misordered(list);
  }
  for (const auto& [what, one] : means) expect_same(one.reported, one.mean(), "mean of " + what);
  if (options.metrics != MetricSet::kAll) {
    for (const double mean : {report.map, report.mrr, report.arp, report.pair_accuracy})
      EXPECT_TRUE(std::isnan(mean));
  }
  EXPECT_EQ(report.misordered_pairs, misordered);
}

TEST(Evaluator, MatchesSlowMetricsOnRaggedQueries) {
  ExecutionContext context(2);
  for (std::uint32_t round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    RngStream coins = test_coins(round);
    const Dataset data = random_dataset(coins, 1 + coins.index(60), 2 + coins.index(6));
    std::vector<double> scores = random_scores(coins, data.docs(), coins.index(2) == 0);
    std::vector<std::int64_t> retrieved;
    if (coins.index(2) == 0) retrieved = forget_some(coins, data, scores);
    MetricOptions options = random_options(coins);
    if (coins.index(2) == 0) options.max_grade = 7;
    if (coins.index(4) == 0) options.metrics = MetricSet::kTop;
    options.named = random_named(coins, options.metrics == MetricSet::kAll);
    Evaluator evaluator(options);
    evaluator.evaluate(data, scores, context, retrieved);
    compare(evaluator, data, scores, retrieved);
    if (HasFailure()) break;
  }
}

TEST(Evaluator, RandomOrdersOfNamedMetricsAreMeansOverAllOrders) {
  ExecutionContext context;
  const Dataset data = make_dataset({{"a", {2, 0, 1, 0}, {}}, {"b", {0, 0}, {}}, {"c", {1, 1}, {}}});
  MetricOptions options;
  for (const char* name : {"ndcg@2", "dcg@3", "p@3", "map", "err@3"})
    options.named.push_back(*metric_named(name));
  Evaluator evaluator(options);
  // The scores of every order of at most four documents, each as often as any other.
  std::vector<double> scores = {1.0, 2.0, 3.0, 4.0};
  std::vector<double> sums(options.named.size(), 0.0);
  double orders = 0.0;
  do {
    std::vector<double> all = scores;
    all.insert(all.end(), {scores[0], scores[1], scores[0], scores[1]});  // as often either way round
    evaluator.evaluate(data, std::span<const double>(all), context);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += evaluator.report().named[i];
    ++orders;
  } while (std::next_permutation(scores.begin(), scores.end()));
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(evaluator.report().random_named[i], sums[i] / orders, 1e-12) << options.named[i].name();
  EXPECT_TRUE(std::isnan(evaluator.report().random_named[3]));
  EXPECT_TRUE(std::isnan(evaluator.report().random_named[4]));
}

/// Documents of grades 3 0 2 1 0, scored so that they stand as 2 0 3 0 1, computed by hand.
TEST(Evaluator, GivesTheFiguresOfAQueryThatWasComputedByHand) {
  constexpr double kFewRoundings = 1e-15;  // a handful of roundings of figures of about 1
  const double log3 = std::log2(3.0);
  const double log6 = std::log2(6.0);
  const auto judged = [](const MetricOptions& options) {
    ExecutionContext context;
    return Evaluator(options).evaluate(make_dataset({{"q", {3, 0, 2, 1, 0}, {}}}),
                                       std::vector<double>{3, 4, 5, 1, 2}, context);
  };
  const MetricReport report = judged({});
  EXPECT_NEAR(report.ndcg[0], 3.0 / 7.0, kFewRoundings);
  EXPECT_NEAR(report.ndcg[1], 6.5 / (7.0 + 3.0 / log3 + 0.5), kFewRoundings);
  EXPECT_NEAR(report.ndcg[2], (6.5 + 1.0 / log6) / (7.0 + 3.0 / log3 + 0.5), kFewRoundings);
  EXPECT_NEAR(report.dcg[1], 3.0 + 7.0 / 2.0, kFewRoundings);
  EXPECT_NEAR(report.map, (1.0 + 2.0 / 3.0 + 3.0 / 5.0) / 3.0, kFewRoundings);
  EXPECT_EQ(report.mrr, 1.0);
  EXPECT_EQ(report.precision, 0.3);  // 3 of 10 ranks, though there are 5 documents
  // Satisfactions are 3/8, 0, 7/8, 0, 1/8.
  EXPECT_NEAR(report.err, 3.0 / 8.0 + 5.0 / 8.0 * 7.0 / 8.0 / 3.0 + 5.0 / 8.0 / 8.0 / 8.0 / 5.0,
              kFewRoundings);
  EXPECT_NEAR(report.arp, (2.0 * 1 + 3.0 * 3 + 1.0 * 5) / 6.0, kFewRoundings);
  EXPECT_EQ(report.pairs, 9);             // of 10, one joins the two zeros
  EXPECT_EQ(report.misordered_pairs, 4);  // 2 < 3, 0 < 3, and each 0 above the 1
  MetricOptions other;
  other.gain = Gain::kLinear;
  other.max_grade = 4;
  EXPECT_NEAR(judged(other).ndcg[1], 3.5 / (3.0 + 2.0 / log3 + 0.5), kFewRoundings);
  other.err_cutoff = 1;
  EXPECT_EQ(judged(other).err, 3.0 / 16.0);
}

std::vector<double> all_numbers(const Evaluator& evaluator) {
  const MetricReport& report = evaluator.report();
  std::vector<double> numbers = report.ndcg;
  numbers.insert(numbers.end(),
                 {report.map, report.mrr, report.precision, report.err, report.arp, report.pair_accuracy});
  for (std::int64_t query = 0; query < report.queries; ++query) {
    const QueryMetrics metrics = evaluator.of_query(query);
    numbers.insert(numbers.end(), metrics.ndcg.begin(), metrics.ndcg.end());
    numbers.insert(numbers.end(), {metrics.map, metrics.err, metrics.arp});
  }
  return numbers;
}

TEST(Evaluator, GivesSameBitsOnAnyThreadsAndFromFloats) {
  RngStream coins = test_coins(2000);
  const Dataset data = random_dataset(coins, 700, 5);
  std::vector<double> scores = random_scores(coins, data.docs(), false);
  for (double& score : scores) score = static_cast<float>(score);
  const std::vector<float> narrow(scores.begin(), scores.end());
  std::vector<double> expected;
  for (const int threads : {1, 2, 4}) {
    ExecutionContext context(threads);
    for (const bool floats : {false, true}) {
      Evaluator evaluator;
      floats ? evaluator.evaluate(data, std::span<const float>(narrow), context)
             : evaluator.evaluate(data, scores, context);
      const std::vector<double> numbers = all_numbers(evaluator);
      if (expected.empty()) expected = numbers;
      ASSERT_EQ(numbers.size(), expected.size());
      EXPECT_EQ(std::memcmp(numbers.data(), expected.data(), numbers.size() * sizeof(double)), 0)
          << threads;
    }
  }
}

TEST(Evaluator, RefusesNanScores) {
  const Dataset data = make_dataset({{"a", {1, 0}, {}}, {"b", {0, 2, 1}, {}}});
  const std::vector<float> scores = {1.0F, 2.0F, 0.5F, std::numeric_limits<float>::quiet_NaN(), 0.0F};
  for (const int threads : {1, 3}) {
    ExecutionContext context(threads);
    EXPECT_EQ(message_of<NumericError>(
                  [&] { Evaluator().evaluate(data, std::span<const float>(scores), context); }),
              "The score of document 1 of query 'b' is NaN; documents cannot be ranked by it.");
  }
}

TEST(Evaluator, RefusesMismatchedCountsAndGrades) {
  ExecutionContext context;
  const Dataset data = make_dataset({{"a", {1, 3}, {}}});
  const std::vector<double> two = {1.0, 2.0};
  const std::vector<double> three = {1.0, 2.0, 3.0};
  EXPECT_THROW(Evaluator().evaluate(data, std::span<const double>(three), context), InvalidArgument);
  MetricOptions options;
  options.max_grade = 2;
  EXPECT_THROW(Evaluator(options).evaluate(data, std::span<const double>(two), context), InvalidArgument);
  options.max_grade = 32;
  EXPECT_THROW(Evaluator{options}, InvalidArgument);
  options.max_grade.reset();
  for (const std::vector<std::int64_t>& cutoffs : {std::vector<std::int64_t>{5, 1, 5}, {0}, {}}) {
    options.cutoffs = cutoffs;
    EXPECT_THROW(Evaluator{options}, InvalidArgument);
  }
  options = {};
  options.metrics = MetricSet::kTop;
  options.named = {*metric_named("map")};
  EXPECT_THROW(Evaluator{options}, InvalidArgument);
}

TEST(Evaluator, CountsEmptyAndPairlessQueries) {
  ExecutionContext context;
  const Dataset data =
      make_dataset({{"none", {}, {}}, {"zeros", {0, 0}, {}}, {"twos", {2, 2}, {}}, {"mixed", {0, 1}, {}}});
  const std::vector<float> scores(data.docs(), 0.0F);
  const MetricReport report = Evaluator().evaluate(data, std::span<const float>(scores), context);
  EXPECT_EQ(report.queries, 4);
  EXPECT_EQ(report.docs, 6);
  EXPECT_EQ(report.empty_queries, 2);
  EXPECT_EQ(report.pairless_queries, 3);
  EXPECT_EQ(report.pairs, 1);
  EXPECT_EQ(report.misordered_pairs, 1);  // the tie puts the first document, of grade 0, in front
  const MetricReport none = Evaluator().evaluate(make_dataset({}), std::span<const float>(), context);
  EXPECT_EQ(none.queries, 0);
  EXPECT_TRUE(std::isnan(none.ndcg[0]));
}

// Other tools print these figures for a small case, by their sources; docs/METRICS.md names them.

// Three documents of grades 0 2 1 in this order of scores, and a query without a relevant one.
const std::vector<SmallQuery> kTwoQueries = {{"1", {0, 2, 1}, {}}, {"2", {0, 0, 0}, {}}};
const std::vector<double> kFallingScores = {3, 2, 1, 3, 2, 1};

TEST(Conventions, MatchFiguresInDocs) {
  ExecutionContext context;
  const Dataset data = make_dataset(kTwoQueries);
  const std::vector<double> expected = {0.329501, 0.453866, 0.334836, 0.829501};
  std::size_t place = 0;
  for (const Convention convention :
       {Convention::kOlrank, Convention::kLetor, Convention::kTrecEval, Convention::kLightgbm}) {
    MetricOptions options;
    options.cutoffs = {3, 4};
    options.max_grade = 4;
    apply_convention(convention, options);
    EXPECT_EQ(options.max_grade, 4);
    const MetricReport report = Evaluator(options).evaluate(data, kFallingScores, context);
    EXPECT_NEAR(report.ndcg.at(0), expected[place++], 5e-7);
    // No list has four documents.
    EXPECT_EQ(report.ndcg.at(1), convention == Convention::kLetor ? 0.0 : report.ndcg[0]);
    const bool as_trec = convention == Convention::kTrecEval;
    EXPECT_EQ(options.ties, as_trec ? Ties::kNameDescending : Ties::kDocIndex);
    EXPECT_EQ(options.unretrieved, as_trec ? Unretrieved::kLost : Unretrieved::kLast);
    apply_convention(Convention::kOlrank, options);  // nothing of the one before stays
    EXPECT_NEAR(Evaluator(options).evaluate(data, kFallingScores, context).ndcg[0], expected[0], 5e-7);
    EXPECT_EQ(options.ties, Ties::kDocIndex);
    EXPECT_EQ(options.unretrieved, Unretrieved::kLast);
  }
}

/// https://github.com/usnistgov/trec_eval/issues/22: equal scores, and the relevant document is b. Against
/// a it stands first, against c second, whatever the column of ranks says; a document that is not retrieved
/// is lost, and its query counts 0, as with -c.
TEST(Conventions, OrderTiesAndLoseDocumentsAsTrecEvalDoes) {
  ExecutionContext context;
  const auto ndcg = [&](Convention convention, const std::vector<SmallQuery>& queries, const char* run) {
    const Dataset data = make_dataset(queries);
    MetricOptions options;
    options.cutoffs = {10};
    apply_convention(convention, options);
    const ExternalScores read = read_trec_run(TextLines::of_memory(run, "run"), data);
    return Evaluator(options).evaluate(data, read.scores, context, read.retrieved).ndcg[0];
  };
  const std::vector<SmallQuery> one = {{"1", {0, 1, 0}, {"a", "b", "c"}}};
  const double second = 1.0 / std::log2(3.0);
  const char* against_a = "1 0 b 1 1.0 run1\n1 0 a 2 1.0 run1\n";
  const char* against_c = "1 0 b 1 1.0 run2\n1 0 c 2 1.0 run2\n";
  EXPECT_EQ(ndcg(Convention::kTrecEval, one, against_a), 1.0);
  EXPECT_NEAR(ndcg(Convention::kTrecEval, one, against_c), second, 1e-15);
  EXPECT_NEAR(ndcg(Convention::kOlrank, one, against_a), second, 1e-15);  // by index
  EXPECT_EQ(ndcg(Convention::kOlrank, one, against_c), 1.0);
  const std::vector<SmallQuery> two = {{"1", {1, 0, 1}, {"a", "b", "c"}}, {"2", {1}, {"a"}}};
  const char* run = "1 Q0 b 1 2 t\n1 Q0 a 2 1 t\n";
  EXPECT_NEAR(ndcg(Convention::kTrecEval, two, run), 0.5 * second / (1.0 + second), 1e-15);
  EXPECT_NEAR(ndcg(Convention::kOlrank, two, run), 0.5 * (second + 0.5) / (1.0 + second) + 0.5, 1e-15);
  // Documents without names have their indices as names, and "9" sorts after "10" by bytes.
  std::vector<std::uint8_t> grades(11, 0);
  grades[9] = 1;
  MetricOptions options;
  apply_convention(Convention::kTrecEval, options);
  const std::vector<double> equal(11, 0.5);
  EXPECT_EQ(Evaluator(options).evaluate(make_dataset({{"0", grades, {}}}), equal, context).ndcg[0], 1.0);
}

TEST(Conventions, AreDescribedInWords) {
  EXPECT_EQ(describe_conventions({}),
            "gain 2^grade - 1, discount 1/log2(rank + 2) (rank from 0), ties by document index, empty "
            "queries count 0");
  MetricOptions letor;
  apply_convention(Convention::kLetor, letor);
  EXPECT_TRUE(contains(describe_conventions(letor), "NDCG@k of lists shorter than k is 0"));
}

}  // namespace
}  // namespace olrank
