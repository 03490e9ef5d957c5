#include "core/metrics/metric_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace olrank {

void apply_convention(Convention convention, MetricOptions& options) {
  options.gain = Gain::kExponential;
  options.discount = Discount::kLog2;
  options.ties = Ties::kDocIndex;
  options.empty_queries = EmptyQueries::kZero;
  options.short_lists = ShortLists::kScored;
  options.unretrieved = Unretrieved::kLast;
  switch (convention) {
    case Convention::kOlrank:
      break;
    case Convention::kLetor:
      // Eval-Score-4.0.pl: DCG() leaves positions 1 and 2 undiscounted; NDCG() fills no position beyond the
      // list, and the average over queries counts what is not filled as 0; sort by score over lines in
      // order.
      options.discount = Discount::kLetor;
      options.short_lists = ShortLists::kZero;
      break;
    case Convention::kLightgbm:
      // src/metric/rank_metric.hpp: "if all doc in this query are all negative, let its NDCG=1";
      // map_metric.hpp likewise; dcg_calculator.cpp: label_gain 2^i − 1, 1/log2(2 + i), std::stable_sort.
      options.empty_queries = EmptyQueries::kOne;
      break;
    case Convention::kTrecEval:
      // m_ndcg_cut.c: gain is the judgement, 1/log2(i + 2); form_res_rels.c: sorted by score, then by
      // document name, both descending, whatever the rank column says; documents not retrieved are never
      // shown.
      options.gain = Gain::kLinear;
      options.ties = Ties::kNameDescending;
      options.unretrieved = Unretrieved::kLost;
      break;
  }
}

void check_metric_options(const MetricOptions& options) {
  if (options.cutoffs.empty()) throw InvalidArgument("The list of cutoffs must not be empty.");
  for (auto cutoff = options.cutoffs.begin(); cutoff != options.cutoffs.end(); ++cutoff) {
    if (*cutoff < 1) throw InvalidArgument(fmt::format("A cutoff must be at least 1, not {}.", *cutoff));
    if (std::find(options.cutoffs.begin(), cutoff, *cutoff) != cutoff) {
      throw InvalidArgument(fmt::format("The cutoff {} is listed twice. Remove one of them.", *cutoff));
    }
  }
  if (options.precision_cutoff < 1 || options.err_cutoff < 1) {
    throw InvalidArgument("The cutoffs of precision and ERR must be at least 1.");
  }
  if (options.metrics == MetricSet::kTop) {
    for (const NamedMetric& metric : options.named) {
      if (!metric.whole_list()) continue;
      throw InvalidArgument(
          fmt::format("{} looks at the whole list, but only its top is evaluated.", metric.title()));
    }
  }
  if (options.max_grade && (*options.max_grade < 0 || *options.max_grade > kHighestGrade)) {
    throw InvalidArgument(fmt::format("The largest grade must be between 0 and {}, not {}.", kHighestGrade,
                                      *options.max_grade));
  }
}

std::string describe_conventions(const MetricOptions& options) {
  std::string text = options.gain == Gain::kExponential ? "gain 2^grade - 1" : "gain = grade";
  text += options.discount == Discount::kLog2 ? ", discount 1/log2(rank + 2)"
                                              : ", discount 1/log2(rank + 1) from the third rank";
  text += " (rank from 0)";
  text +=
      options.ties == Ties::kDocIndex ? ", ties by document index" : ", ties by document name, descending";
  switch (options.empty_queries) {
    case EmptyQueries::kZero:
      text += ", empty queries count 0";
      break;
    case EmptyQueries::kOne:
      text += ", empty queries count 1";
      break;
    case EmptyQueries::kSkip:
      text += ", empty queries skipped";
      break;
  }
  if (options.short_lists == ShortLists::kZero) text += ", NDCG@k of lists shorter than k is 0";
  if (options.unretrieved == Unretrieved::kLost) text += ", documents missing from a run are never shown";
  return text;
}

}  // namespace olrank
