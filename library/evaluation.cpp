#include "olrank/evaluation.h"

#include "core/data/dataset.h"
#include "core/metrics/evaluator.h"
#include "core/metrics/named_values.h"
#include "core/runtime/execution_context.h"
#include "core/settings/enum_names.h"
#include "core/settings/value.h"

namespace olrank {
namespace {

MetricOptions metric_options(const EvaluationOptions& wanted) {
  MetricOptions options;
  apply_convention(parse_choice<Convention>("convention", wanted.convention), options);
  options.cutoffs = wanted.at;
  options.named = parse_metrics(wanted.metrics, "metrics");
  if (!wanted.gain.empty()) options.gain = parse_choice<Gain>("gain", wanted.gain);
  if (!wanted.empty_queries.empty())
    options.empty_queries = parse_choice<EmptyQueries>("empty_queries", wanted.empty_queries);
  options.max_grade = wanted.max_grade;
  check_metric_options(options);
  return options;
}

}  // namespace

MetricValues measure_scores(const RankingData& data, std::span<const double> scores,
                            const EvaluationOptions& options) {
  Evaluator evaluator(metric_options(options));
  ExecutionContext context(options.threads > 0 ? options.threads : available_threads());
  const MetricReport& report = evaluator.evaluate(data.dataset(), scores, context);
  MetricValues values;
  values.means = named_values(evaluator.options(), report);
  values.queries = report.queries;
  values.empty_queries = report.empty_queries;
  if (!options.by_query) return values;
  for (std::int64_t query = 0; query < report.queries; ++query) {
    std::vector<double>& row = values.by_query.emplace_back();
    for (const auto& [name, value] : named_values(evaluator.options(), evaluator.of_query(query)))
      row.push_back(value);
  }
  return values;
}

}  // namespace olrank
