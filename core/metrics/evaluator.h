#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/data/dataset.h"
#include "core/metrics/list_metrics.h"
#include "core/metrics/metric_options.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// Metrics that are one number each.
struct SingleMetrics {
  double map = 0.0;
  double mrr = 0.0;
  double precision = 0.0;
  double err = 0.0;
  double arp = 0.0;  // Σ grade·(rank + 1) / Σ grade
  double pair_accuracy = 0.0;
};

/// Metrics of one query, with the rule for empty queries applied: NaN where the query is excluded from the
/// mean.
struct QueryMetrics : SingleMetrics {
  std::span<const double> ndcg;  // in the order of MetricOptions::cutoffs
  std::span<const double> dcg;
  std::span<const double> random_ndcg;
  std::span<const double> named;         // in the order of MetricOptions::named
  std::span<const double> random_named;  // what a random order has on average; NaN where that is unknown
  std::int64_t misordered_pairs = 0;
  std::int64_t pairs = 0;  // of documents with different grades
};

/// Means over the queries of one data set; a mean over no query is NaN. See docs/METRICS.md.
struct MetricReport : SingleMetrics {
  std::vector<double> ndcg;  // in the order of MetricOptions::cutoffs
  std::vector<double> dcg;
  std::vector<double> random_ndcg;  // what a random order of the documents has on average
  std::vector<double> named;        // in the order of MetricOptions::named
  std::vector<double> random_named;
  std::int64_t misordered_pairs = 0;  // summed over the queries
  std::int64_t pairs = 0;
  std::int64_t queries = 0;
  std::int64_t docs = 0;
  std::int64_t empty_queries = 0;     // without a relevant document
  std::int64_t pairless_queries = 0;  // all documents of one grade
  int max_grade = 0;                  // used by ERR
};

/// Evaluates rankings of whole data sets. Keeps its memory: evaluating the same data again allocates
/// nothing. Queries are evaluated in parallel and means are taken in query order, so results do not depend
/// on the number of threads.
class Evaluator {
 public:
  explicit Evaluator(MetricOptions options = {});

  const MetricOptions& options() const { return options_; }

  /// `scores` has one number per document, in the order of the data set. `retrieved`, if given, is the
  /// number of documents of each query that a run named (the first by score); otherwise all. Throws
  /// InvalidArgument if counts do not match or grades exceed max_grade, NumericError for a NaN score.
  const MetricReport& evaluate(const Dataset& data, std::span<const float> scores,
                               ExecutionContext& context, std::span<const std::int64_t> retrieved = {});
  const MetricReport& evaluate(const Dataset& data, std::span<const double> scores,
                               ExecutionContext& context, std::span<const std::int64_t> retrieved = {});

  const MetricReport& report() const { return report_; }
  /// A query of the last evaluation.
  QueryMetrics of_query(std::int64_t query) const;

 private:
  template <class Score>
  struct Input;
  struct List;

  template <class Score>
  const MetricReport& evaluate_scores(const Input<Score>& input, ExecutionContext& context);
  template <class Score>
  void prepare(const Input<Score>& input, ExecutionContext& context);
  template <class Score>
  void evaluate_query(const Input<Score>& input, std::int64_t query, Scratch& scratch);
  template <class Score>
  void order_query(const Input<Score>& input, std::int64_t query, std::int64_t retrieved,
                   std::span<std::int32_t> order, Scratch& scratch) const;
  double ideal_of(const NamedMetric& metric, const List& list) const;
  double value_of(const NamedMetric& metric, const List& list, double ideal) const;
  double random_of(const NamedMetric& metric, const List& list, double ideal) const;
  void apply_empty_rule(MetricKind kind, double& value, double& random) const;
  double column_mean(std::size_t column) const;
  void summarise(const Dataset& data);

  /// A row, or the means of all, has the value of each metric, and then what a random order has of each.
  std::size_t columns() const { return 2 * metrics_.size(); }
  QueryMetrics metrics_of(const double* row) const;
  double* row(std::int64_t query) { return values_.data() + static_cast<std::size_t>(query) * columns(); }
  const double* row(std::int64_t query) const {
    return values_.data() + static_cast<std::size_t>(query) * columns();
  }

  MetricOptions options_;
  std::vector<NamedMetric> metrics_;  // NDCG and DCG at every cutoff, SingleMetrics, MetricOptions::named
  std::int64_t top_ranks_ = 0;        // the largest cutoff of any metric
  GainTable gains_{};
  GainTable satisfactions_{};  // err_satisfaction of every grade
  DiscountTable discounts_;
  std::vector<double> values_;  // [queries × columns]
  std::vector<double> means_;   // [columns]
  std::vector<std::int64_t> misordered_;
  std::vector<std::int64_t> pairs_;
  std::vector<std::uint8_t> empty_;
  MetricReport report_;
};

}  // namespace olrank
