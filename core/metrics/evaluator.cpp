#include "core/metrics/evaluator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr double kLeftOut = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kQueriesPerBlock = 32;

// In the order of the metrics between those by cutoff and the named ones.
constexpr double SingleMetrics::*kSingles[] = {&SingleMetrics::map,       &SingleMetrics::mrr,
                                               &SingleMetrics::precision, &SingleMetrics::err,
                                               &SingleMetrics::arp,       &SingleMetrics::pair_accuracy};

double precision_at(std::span<const std::uint8_t> shown, std::int64_t cutoff) {
  const auto hits = std::count_if(shown.begin(), shown.end(), [](std::uint8_t grade) { return grade > 0; });
  return static_cast<double>(hits) / static_cast<double>(cutoff);
}

double err_at(std::span<const std::uint8_t> shown, const GainTable& satisfactions) {
  double err = 0.0;
  double unsatisfied = 1.0;
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    const double satisfaction = satisfactions[shown[rank]];
    err += unsatisfied * satisfaction / static_cast<double>(rank + 1);
    unsatisfied *= 1.0 - satisfaction;
  }
  return err;
}

/// MAP of the shown ranks; relevant documents below them count as missed.
double average_precision(std::span<const std::uint8_t> shown, std::int64_t relevant) {
  double precisions = 0.0;
  std::int64_t hits = 0;
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    if (shown[rank] > 0) precisions += static_cast<double>(++hits) / static_cast<double>(rank + 1);
  }
  return relevant > 0 ? precisions / static_cast<double>(relevant) : 0.0;
}

double reciprocal_rank(std::span<const std::uint8_t> shown) {
  const auto hit = std::find_if(shown.begin(), shown.end(), [](std::uint8_t grade) { return grade > 0; });
  return hit == shown.end() ? 0.0 : 1.0 / static_cast<double>(hit - shown.begin() + 1);
}

double average_relevant_position(std::span<const std::uint8_t> list) {
  std::int64_t grade_sum = 0;
  std::int64_t position_sum = 0;
  for (std::int64_t rank = 0; rank < std::ssize(list); ++rank) {
    const std::int64_t grade = list[rank];
    grade_sum += grade;
    position_sum += grade * (rank + 1);
  }
  return grade_sum > 0 ? static_cast<double>(position_sum) / static_cast<double>(grade_sum) : kLeftOut;
}

}  // namespace

template <class Score>
struct Evaluator::Input {
  const Dataset& data;
  std::span<const Score> scores;
  std::span<const std::int64_t> retrieved;
};

/// A query's list, as metrics see it.
struct Evaluator::List {
  std::span<const std::uint8_t> grades;  // by rank, of the ranks that any metric looks at
  std::int64_t shown = 0;
  std::int64_t docs = 0;  // of the query
  const GradeCounts& counts;
  std::int64_t pairs = 0;
  std::int64_t misordered = 0;

  std::int64_t relevant() const { return docs - counts[0]; }
};

Evaluator::Evaluator(MetricOptions options) : options_(std::move(options)), discounts_(options_.discount) {
  check_metric_options(options_);
  for (const MetricKind kind : {MetricKind::kNdcg, MetricKind::kDcg}) {
    for (const std::int64_t cutoff : options_.cutoffs) metrics_.push_back({kind, cutoff});
  }
  metrics_.insert(metrics_.end(), {{MetricKind::kMap},
                                   {MetricKind::kMrr},
                                   {MetricKind::kPrecision, options_.precision_cutoff},
                                   {MetricKind::kErr, options_.err_cutoff},
                                   {MetricKind::kArp},
                                   {MetricKind::kPairAccuracy}});
  metrics_.insert(metrics_.end(), options_.named.begin(), options_.named.end());
  for (const NamedMetric& metric : metrics_) top_ranks_ = std::max(top_ranks_, metric.cutoff);
  gains_ = gain_table(options_.gain);
  means_.resize(columns());
}

template <class Score>
void Evaluator::prepare(const Input<Score>& input, ExecutionContext& context) {
  const Dataset& data = input.data;
  if (std::ssize(input.scores) != data.docs()) {
    throw_error<InvalidArgument>("Got {} scores for {} documents; each document needs one.",
                                 input.scores.size(), data.docs());
  }
  if (!input.retrieved.empty() && std::ssize(input.retrieved) != data.queries()) {
    throw_error<InvalidArgument>(
        "Got counts of retrieved documents for {} of {} queries; each query needs one.",
        input.retrieved.size(), data.queries());
  }
  if (data.max_grade() > kHighestGrade) {
    throw_error<InvalidArgument>("The data has grade {}, but the largest supported grade is {}.",
                                 data.max_grade(), kHighestGrade);
  }
  report_.max_grade = options_.max_grade.value_or(data.max_grade());
  if (data.max_grade() > report_.max_grade) {
    throw_error<InvalidArgument>("The data has grade {}, but the largest grade was given as {}.",
                                 data.max_grade(), report_.max_grade);
  }
  for (int grade = 0; grade <= kHighestGrade; ++grade) {
    satisfactions_[grade] = err_satisfaction(grade, report_.max_grade);
  }

  std::int64_t longest = 0;
  for (std::int64_t query = 0; query < data.queries(); ++query)
    longest = std::max(longest, data.docs_of(query));
  if (longest > std::numeric_limits<std::int32_t>::max()) {
    throw_error<InvalidArgument>("A query has {} documents, but at most 2147483647 can be ranked.",
                                 longest);
  }
  discounts_.reach(std::min(longest, top_ranks_));
  const auto queries = static_cast<std::size_t>(data.queries());
  values_.resize(queries * columns());
  misordered_.resize(queries);
  pairs_.resize(queries);
  empty_.resize(queries);
  // Any worker may get the longest query, so each allocates memory for it once.
  for (int worker = 0; worker < context.threads(); ++worker) {
    const Scratch::Frame frame(context.scratch(worker));
    const auto docs = static_cast<std::size_t>(longest);
    context.scratch(worker).take<std::int32_t>(docs);
    context.scratch(worker).take<std::uint8_t>(docs);
    context.scratch(worker).take<std::uint64_t>(2 * docs);
  }
}

template <class Score>
const MetricReport& Evaluator::evaluate_scores(const Input<Score>& input, ExecutionContext& context) {
  prepare(input, context);
  const auto evaluate_block = [&](std::int64_t begin, std::int64_t end, int worker) {
    for (std::int64_t query = begin; query < end; ++query)
      evaluate_query(input, query, context.scratch(worker));
  };
  context.for_blocks(input.data.queries(), kQueriesPerBlock, std::ref(evaluate_block));
  summarise(input.data);
  return report_;
}

template <class Score>
void Evaluator::order_query(const Input<Score>& input, std::int64_t query, std::int64_t retrieved,
                            std::span<std::int32_t> order, Scratch& scratch) const {
  const Dataset& data = input.data;
  const auto scores = input.scores.subspan(data.offset(query), data.docs_of(query));
  const std::int64_t bad = order_by_score(scores, order, scratch);
  if (bad >= 0) {
    throw_error<NumericError>(
        "The score of document {} of query '{}' is NaN; documents cannot be ranked by it.", bad,
        data.qid(query));
  }
  if (options_.ties == Ties::kDocIndex) return;
  // Documents with equal scores are adjacent, in index order, which those not retrieved keep.
  const auto score_at = [&](std::int64_t rank) { return scores[order[rank]]; };
  for (std::int64_t begin = 0, end = 0; begin < retrieved; begin = end) {
    for (end = begin + 1; end < retrieved && score_at(end) == score_at(begin);) ++end;
    std::sort(order.begin() + begin, order.begin() + end, [&](std::int32_t a, std::int32_t b) {
      const int names = DocLabel(data, query, a).view().compare(DocLabel(data, query, b).view());
      return names > 0 || (names == 0 && a < b);
    });
  }
}

template <class Score>
void Evaluator::evaluate_query(const Input<Score>& input, std::int64_t query, Scratch& scratch) {
  const std::int64_t docs = input.data.docs_of(query);
  const auto grades = input.data.grades_of(query);
  const std::int64_t retrieved = input.retrieved.empty() ? docs : input.retrieved[query];
  const bool whole = options_.metrics == MetricSet::kAll || options_.ties == Ties::kNameDescending;
  const std::int64_t ranks = whole ? docs : std::min(docs, top_ranks_);

  const Scratch::Frame frame(scratch);
  const auto order = scratch.take<std::int32_t>(ranks);
  order_query(input, query, std::min(retrieved, ranks), order, scratch);
  const auto list = scratch.take<std::uint8_t>(ranks);  // grades by rank
  for (std::size_t rank = 0; rank < list.size(); ++rank) list[rank] = grades[order[rank]];

  const std::int64_t shown = std::min(ranks, options_.unretrieved == Unretrieved::kLost ? retrieved : docs);
  const GradeCounts counts = count_grades(grades);
  empty_[query] = counts[0] == docs ? 1 : 0;
  pairs_[query] = graded_pairs(counts);
  misordered_[query] =
      options_.metrics == MetricSet::kAll ? misordered_pairs(list, report_.max_grade) : std::int64_t{0};
  const List judged{list, shown, docs, counts, pairs_[query], misordered_[query]};
  double* values = row(query);
  double* randoms = values + metrics_.size();
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    const double ideal = ideal_of(metrics_[i], judged);
    const bool tells_random = i < options_.cutoffs.size() || i + options_.named.size() >= metrics_.size();
    values[i] = value_of(metrics_[i], judged, ideal);
    randoms[i] = tells_random ? random_of(metrics_[i], judged, ideal) : kLeftOut;
    if (counts[0] == docs) apply_empty_rule(metrics_[i].kind, values[i], randoms[i]);
  }
}

/// A DCG is divided by this; 0 where NDCG is 0 without it.
double Evaluator::ideal_of(const NamedMetric& metric, const List& list) const {
  if (metric.kind != MetricKind::kNdcg) return 1.0;
  const bool too_short = options_.short_lists == ShortLists::kZero && list.docs < metric.cutoff;
  return too_short ? 0.0 : ideal_dcg(list.counts, metric.cutoff, gains_, discounts_.values());
}

double Evaluator::value_of(const NamedMetric& metric, const List& list, double ideal) const {
  if (metric.whole_list() && options_.metrics == MetricSet::kTop) return kLeftOut;
  const std::int64_t top = metric.whole_list() ? list.shown : std::min(metric.cutoff, list.shown);
  switch (metric.kind) {
    case MetricKind::kDcg:
    case MetricKind::kNdcg:
      return ideal > 0.0 ? dcg_of_list(list.grades.first(top), gains_, discounts_.values()) / ideal : 0.0;
    case MetricKind::kErr:
      return err_at(list.grades.first(top), satisfactions_);
    case MetricKind::kPrecision:
      return precision_at(list.grades.first(top), metric.cutoff);
    case MetricKind::kMap:
      return average_precision(list.grades.first(top), list.relevant());
    case MetricKind::kMrr:
      return reciprocal_rank(list.grades.first(top));
    case MetricKind::kArp:
      return average_relevant_position(list.grades);
    case MetricKind::kPairAccuracy:
      if (list.pairs == 0) return kLeftOut;
      return static_cast<double>(list.pairs - list.misordered) / static_cast<double>(list.pairs);
    case MetricKind::kOwn:  // measured by own_metric_value()
      break;
  }
  return kLeftOut;
}

double Evaluator::random_of(const NamedMetric& metric, const List& list, double ideal) const {
  if (metric.kind == MetricKind::kDcg || metric.kind == MetricKind::kNdcg) {
    if (ideal <= 0.0) return 0.0;
    return random_dcg(list.counts, metric.cutoff, gains_, discounts_.values()).mean / ideal;
  }
  if (metric.kind != MetricKind::kPrecision) return kLeftOut;
  return static_cast<double>(list.relevant()) / static_cast<double>(list.docs) *
         static_cast<double>(std::min(metric.cutoff, list.docs)) / static_cast<double>(metric.cutoff);
}

/// A metric that is left out already stays so. DCG is a sum, and that of an empty query is empty.
void Evaluator::apply_empty_rule(MetricKind kind, double& value, double& random) const {
  if (std::isnan(value)) return;
  const bool one = options_.empty_queries == EmptyQueries::kOne && kind != MetricKind::kDcg;
  value = options_.empty_queries == EmptyQueries::kSkip ? kLeftOut : one ? 1.0 : 0.0;
  if (!std::isnan(random)) random = value;
}

double Evaluator::column_mean(std::size_t column) const {
  double sum = 0.0;
  std::int64_t counted = 0;
  for (std::size_t at = column; at < values_.size(); at += columns()) {
    if (std::isnan(values_[at])) continue;
    sum += values_[at];
    ++counted;
  }
  return counted > 0 ? sum / static_cast<double>(counted) : kLeftOut;
}

void Evaluator::summarise(const Dataset& data) {
  for (std::size_t column = 0; column < columns(); ++column) means_[column] = column_mean(column);
  const QueryMetrics means = metrics_of(means_.data());
  report_.ndcg.assign(means.ndcg.begin(), means.ndcg.end());
  report_.dcg.assign(means.dcg.begin(), means.dcg.end());
  report_.random_ndcg.assign(means.random_ndcg.begin(), means.random_ndcg.end());
  report_.named.assign(means.named.begin(), means.named.end());
  report_.random_named.assign(means.random_named.begin(), means.random_named.end());
  static_cast<SingleMetrics&>(report_) = static_cast<const SingleMetrics&>(means);
  report_.misordered_pairs = std::accumulate(misordered_.begin(), misordered_.end(), std::int64_t{0});
  report_.pairs = std::accumulate(pairs_.begin(), pairs_.end(), std::int64_t{0});
  report_.queries = data.queries();
  report_.docs = data.docs();
  report_.empty_queries = std::count(empty_.begin(), empty_.end(), std::uint8_t{1});
  report_.pairless_queries = std::count(pairs_.begin(), pairs_.end(), std::int64_t{0});
}

QueryMetrics Evaluator::metrics_of(const double* row) const {
  const std::size_t cutoffs = options_.cutoffs.size();
  const std::size_t named = options_.named.size();
  const double* randoms = row + metrics_.size();
  QueryMetrics metrics;
  metrics.ndcg = {row, cutoffs};
  metrics.dcg = {row + cutoffs, cutoffs};
  metrics.random_ndcg = {randoms, cutoffs};
  for (std::size_t i = 0; i < std::size(kSingles); ++i) metrics.*kSingles[i] = row[2 * cutoffs + i];
  metrics.named = {randoms - named, named};
  metrics.random_named = {randoms + metrics_.size() - named, named};
  return metrics;
}

QueryMetrics Evaluator::of_query(std::int64_t query) const {
  QueryMetrics metrics = metrics_of(row(query));
  metrics.misordered_pairs = misordered_[query];
  metrics.pairs = pairs_[query];
  return metrics;
}

const MetricReport& Evaluator::evaluate(const Dataset& data, std::span<const float> scores,
                                        ExecutionContext& context,
                                        std::span<const std::int64_t> retrieved) {
  return evaluate_scores(Input<float>{data, scores, retrieved}, context);
}

const MetricReport& Evaluator::evaluate(const Dataset& data, std::span<const double> scores,
                                        ExecutionContext& context,
                                        std::span<const std::int64_t> retrieved) {
  return evaluate_scores(Input<double>{data, scores, retrieved}, context);
}

}  // namespace olrank
