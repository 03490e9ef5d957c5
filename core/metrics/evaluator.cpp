#include "core/metrics/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/metrics/doc_label.h"
#include "core/metrics/list_metrics.h"

namespace olrank {
namespace {

constexpr double kLeftOut = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kQueriesPerBlock = 32;

// A row has NDCG, DCG and the expected NDCG of a random order at every cutoff, and then these columns.
enum Column : std::size_t { kMap, kMrr, kPrecision, kErr, kArp, kPairAccuracy, kOtherColumns };

constexpr double SingleMetrics::*kSingles[] = {&SingleMetrics::map,       &SingleMetrics::mrr,
                                               &SingleMetrics::precision, &SingleMetrics::err,
                                               &SingleMetrics::arp,       &SingleMetrics::pair_accuracy};
constexpr std::size_t kByCutoff = 3;  // columns for each cutoff
// Last come the named metrics, and what a random order has of each.

double precision_at(std::span<const std::uint8_t> list, std::int64_t cutoff, std::int64_t shown) {
  std::int64_t hits = 0;
  for (std::int64_t rank = 0; rank < std::min(cutoff, shown); ++rank) hits += list[rank] > 0 ? 1 : 0;
  return static_cast<double>(hits) / static_cast<double>(cutoff);
}

double err_at(std::span<const std::uint8_t> list, std::int64_t cutoff, std::int64_t shown,
              const GainTable& satisfactions) {
  double err = 0.0;
  double unsatisfied = 1.0;
  for (std::int64_t rank = 0; rank < std::min(cutoff, shown); ++rank) {
    const double satisfaction = satisfactions[list[rank]];
    err += unsatisfied * satisfaction / static_cast<double>(rank + 1);
    unsatisfied *= 1.0 - satisfaction;
  }
  return err;
}

/// MAP and MRR of the first `shown` ranks; relevant documents below them count as missed.
struct HitMeans {
  double average_precision = 0.0;
  double reciprocal_rank = 0.0;
};

HitMeans hit_means(std::span<const std::uint8_t> list, std::int64_t shown, std::int64_t relevant) {
  HitMeans means;
  double precisions = 0.0;
  std::int64_t hits = 0;
  for (std::int64_t rank = 0; rank < shown; ++rank) {
    if (list[rank] == 0) continue;
    const auto position = static_cast<double>(rank + 1);
    precisions += static_cast<double>(++hits) / position;
    if (hits == 1) means.reciprocal_rank = 1.0 / position;
  }
  means.average_precision = relevant > 0 ? precisions / static_cast<double>(relevant) : 0.0;
  return means;
}

}  // namespace

template <class Score>
struct Evaluator::Input {
  const Dataset& data;
  std::span<const Score> scores;
  std::span<const std::int64_t> retrieved;
};

Evaluator::Evaluator(MetricOptions options) : options_(std::move(options)), discounts_(options_.discount) {
  check_metric_options(options_);
  by_cutoff_.resize(options_.cutoffs.size());
  std::iota(by_cutoff_.begin(), by_cutoff_.end(), std::size_t{0});
  std::sort(by_cutoff_.begin(), by_cutoff_.end(),
            [&](std::size_t a, std::size_t b) { return options_.cutoffs[a] < options_.cutoffs[b]; });
  top_ranks_ =
      std::max({options_.cutoffs[by_cutoff_.back()], options_.precision_cutoff, options_.err_cutoff});
  for (const NamedMetric& metric : options_.named) top_ranks_ = std::max(top_ranks_, metric.cutoff);
  gains_ = gain_table(options_.gain);
  report_.ndcg.resize(options_.cutoffs.size());
  report_.dcg.resize(options_.cutoffs.size());
  report_.random_ndcg.resize(options_.cutoffs.size());
  report_.named.resize(options_.named.size());
  report_.random_named.resize(options_.named.size());
}

std::size_t Evaluator::columns() const {
  return first_named() + 2 * options_.named.size();
}

std::size_t Evaluator::first_named() const {
  return kByCutoff * options_.cutoffs.size() + kOtherColumns;
}

template <class Score>
void Evaluator::prepare(const Input<Score>& input, ExecutionContext& context) {
  const Dataset& data = input.data;
  if (std::ssize(input.scores) != data.docs()) {
    throw InvalidArgument(fmt::format("Got {} scores for {} documents; each document needs one.",
                                      input.scores.size(), data.docs()));
  }
  if (!input.retrieved.empty() && std::ssize(input.retrieved) != data.queries()) {
    throw InvalidArgument(
        fmt::format("Got counts of retrieved documents for {} of {} queries; each query needs one.",
                    input.retrieved.size(), data.queries()));
  }
  if (data.max_grade() > kHighestGrade) {
    throw InvalidArgument(fmt::format("The data has grade {}, but the largest supported grade is {}.",
                                      data.max_grade(), kHighestGrade));
  }
  report_.max_grade = options_.max_grade.value_or(data.max_grade());
  if (data.max_grade() > report_.max_grade) {
    throw InvalidArgument(fmt::format("The data has grade {}, but the largest grade was given as {}.",
                                      data.max_grade(), report_.max_grade));
  }
  for (int grade = 0; grade <= kHighestGrade; ++grade) {
    satisfactions_[grade] = err_satisfaction(grade, report_.max_grade);
  }

  std::int64_t longest = 0;
  for (std::int64_t query = 0; query < data.queries(); ++query)
    longest = std::max(longest, data.docs_of(query));
  if (longest > std::numeric_limits<std::int32_t>::max()) {
    throw InvalidArgument(
        fmt::format("A query has {} documents, but at most 2147483647 can be ranked.", longest));
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
    throw NumericError(
        fmt::format("The score of document {} of query '{}' is NaN; documents cannot be ranked by it.", bad,
                    data.qid(query)));
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
  double* values = row(query);
  empty_[query] = counts[0] == docs ? 1 : 0;
  evaluate_top(list, docs, shown, counts, values);
  evaluate_whole(list, shown, counts, query, values);
  evaluate_named(list, docs, shown, counts, values);
  if (counts[0] == docs) apply_empty_rule(values);
}

void Evaluator::evaluate_top(std::span<const std::uint8_t> list, std::int64_t docs, std::int64_t shown,
                             const GradeCounts& counts, double* row) const {
  const std::size_t cutoffs = options_.cutoffs.size();
  const auto discounts = discounts_.values();
  double dcg = 0.0;
  std::int64_t rank = 0;
  for (const std::size_t place : by_cutoff_) {  // one pass serves all cutoffs
    const std::int64_t cutoff = options_.cutoffs[place];
    for (const std::int64_t end = std::min(cutoff, shown); rank < end; ++rank) {
      dcg += gains_[list[rank]] * discounts[rank];
    }
    const double ideal = ideal_dcg(counts, cutoff, gains_, discounts);
    const bool too_short = options_.short_lists == ShortLists::kZero && docs < cutoff;
    row[place] = ideal > 0.0 && !too_short ? dcg / ideal : 0.0;
    row[cutoffs + place] = dcg;
    row[2 * cutoffs + place] =
        ideal > 0.0 && !too_short ? random_dcg(counts, cutoff, gains_, discounts).mean / ideal : 0.0;
  }

  double* other = row + kByCutoff * cutoffs;
  other[kPrecision] = precision_at(list, options_.precision_cutoff, shown);
  other[kErr] = err_at(list, options_.err_cutoff, shown, satisfactions_);
}

void Evaluator::evaluate_whole(std::span<const std::uint8_t> list, std::int64_t shown,
                               const GradeCounts& counts, std::int64_t query, double* row) {
  double* other = row + kByCutoff * options_.cutoffs.size();
  const auto index = static_cast<std::size_t>(query);
  pairs_[index] = graded_pairs(counts);
  if (options_.metrics == MetricSet::kTop) {
    other[kMap] = other[kMrr] = other[kArp] = other[kPairAccuracy] = kLeftOut;
    misordered_[index] = 0;
    return;
  }
  const std::int64_t relevant = std::ssize(list) - counts[0];
  const HitMeans means = hit_means(list, shown, relevant);
  other[kMap] = means.average_precision;
  other[kMrr] = means.reciprocal_rank;
  std::int64_t grade_sum = 0;
  std::int64_t position_sum = 0;
  for (std::int64_t rank = 0; rank < std::ssize(list); ++rank) {
    const std::int64_t grade = list[rank];
    if (grade == 0) continue;
    grade_sum += grade;
    position_sum += grade * (rank + 1);
  }
  other[kArp] =
      grade_sum > 0 ? static_cast<double>(position_sum) / static_cast<double>(grade_sum) : kLeftOut;
  misordered_[index] = misordered_pairs(list, report_.max_grade);
  const auto pairs = static_cast<double>(pairs_[index]);
  other[kPairAccuracy] =
      pairs_[index] > 0 ? (pairs - static_cast<double>(misordered_[index])) / pairs : kLeftOut;
}

void Evaluator::evaluate_named(std::span<const std::uint8_t> list, std::int64_t docs, std::int64_t shown,
                               const GradeCounts& counts, double* row) const {
  const double* other = row + kByCutoff * options_.cutoffs.size();
  double* value = row + first_named();
  double* random = value + options_.named.size();
  const auto discounts = discounts_.values();
  const std::int64_t relevant = docs - counts[0];
  for (const NamedMetric& metric : options_.named) {
    *value = *random = kLeftOut;
    const std::int64_t cutoff = metric.cutoff;
    const std::int64_t top = std::min(cutoff, shown);
    switch (metric.kind) {
      case MetricKind::kDcg:
        *value = dcg_of_list(list.first(top), gains_, discounts);
        *random = random_dcg(counts, cutoff, gains_, discounts).mean;
        break;
      case MetricKind::kNdcg: {
        const double ideal = ideal_dcg(counts, cutoff, gains_, discounts);
        const bool too_short = options_.short_lists == ShortLists::kZero && docs < cutoff;
        const bool counted = ideal > 0.0 && !too_short;
        *value = counted ? dcg_of_list(list.first(top), gains_, discounts) / ideal : 0.0;
        *random = counted ? random_dcg(counts, cutoff, gains_, discounts).mean / ideal : 0.0;
        break;
      }
      case MetricKind::kErr:
        *value = err_at(list, cutoff, shown, satisfactions_);
        break;
      case MetricKind::kPrecision:
        *value = precision_at(list, cutoff, shown);
        *random = static_cast<double>(relevant) / static_cast<double>(docs) *
                  static_cast<double>(std::min(cutoff, docs)) / static_cast<double>(cutoff);
        break;
      case MetricKind::kMap:
        *value = metric.whole_list() ? other[kMap] : hit_means(list, top, relevant).average_precision;
        break;
      case MetricKind::kMrr:
        *value = metric.whole_list() ? other[kMrr] : hit_means(list, top, relevant).reciprocal_rank;
        break;
      case MetricKind::kArp:
        *value = other[kArp];
        break;
      case MetricKind::kPairAccuracy:
        *value = other[kPairAccuracy];
        break;
    }
    ++value;
    ++random;
  }
}

void Evaluator::apply_empty_rule(double* row) const {
  const bool skip = options_.empty_queries == EmptyQueries::kSkip;
  const double value = skip ? kLeftOut : options_.empty_queries == EmptyQueries::kOne ? 1.0 : 0.0;
  const std::size_t cutoffs = options_.cutoffs.size();
  std::fill_n(row, cutoffs, value);
  std::fill_n(row + cutoffs, cutoffs, skip ? kLeftOut : 0.0);  // DCG is a sum, and this one is empty
  std::fill_n(row + 2 * cutoffs, cutoffs, value);
  double* other = row + kByCutoff * cutoffs;
  other[kPrecision] = other[kErr] = value;
  if (options_.metrics == MetricSet::kAll) other[kMap] = other[kMrr] = value;
  for (std::size_t i = 0; i < options_.named.size(); ++i) {
    const MetricKind kind = options_.named[i].kind;
    if (kind == MetricKind::kArp || kind == MetricKind::kPairAccuracy) continue;  // left out already
    double* named = row + first_named() + i;
    double* random = named + options_.named.size();
    *named = kind == MetricKind::kDcg && !skip ? 0.0 : value;
    if (!std::isnan(*random)) *random = *named;
  }
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
  const std::size_t cutoffs = options_.cutoffs.size();
  for (std::size_t i = 0; i < cutoffs; ++i) {
    report_.ndcg[i] = column_mean(i);
    report_.dcg[i] = column_mean(cutoffs + i);
    report_.random_ndcg[i] = column_mean(2 * cutoffs + i);
  }
  for (std::size_t column = 0; column < kOtherColumns; ++column)
    report_.*kSingles[column] = column_mean(kByCutoff * cutoffs + column);
  for (std::size_t i = 0; i < options_.named.size(); ++i) {
    report_.named[i] = column_mean(first_named() + i);
    report_.random_named[i] = column_mean(first_named() + options_.named.size() + i);
  }
  report_.misordered_pairs = std::accumulate(misordered_.begin(), misordered_.end(), std::int64_t{0});
  report_.pairs = std::accumulate(pairs_.begin(), pairs_.end(), std::int64_t{0});
  report_.queries = data.queries();
  report_.docs = data.docs();
  report_.empty_queries = std::count(empty_.begin(), empty_.end(), std::uint8_t{1});
  report_.pairless_queries = std::count(pairs_.begin(), pairs_.end(), std::int64_t{0});
}

QueryMetrics Evaluator::of_query(std::int64_t query) const {
  const std::size_t cutoffs = options_.cutoffs.size();
  const double* values = row(query);
  const double* other = values + kByCutoff * cutoffs;
  QueryMetrics metrics;
  metrics.ndcg = {values, cutoffs};
  metrics.dcg = {values + cutoffs, cutoffs};
  metrics.random_ndcg = {values + 2 * cutoffs, cutoffs};
  for (std::size_t column = 0; column < kOtherColumns; ++column) metrics.*kSingles[column] = other[column];
  metrics.named = {values + first_named(), options_.named.size()};
  metrics.random_named = {values + first_named() + options_.named.size(), options_.named.size()};
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
