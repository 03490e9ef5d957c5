#include "olrank/evaluation.h"

#include <optional>

#include "core/data/dataset.h"
#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/metrics/evaluator.h"
#include "core/metrics/score_files.h"
#include "core/runtime/execution_context.h"
#include "core/settings/enum_names.h"
#include "core/settings/value.h"
#include "logs/click_report.h"
#include "logs/off_policy.h"
#include "olrank/logs.h"
#include "option_names.h"

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

std::string off_policy_values(const OffPolicyOptions& options, const RankingData* data) {
  return with_option_names([&] {
    OffPolicyRequest request;
    request.log = options.log;
    request.models = options.models;
    request.trust_code = options.trust_code;
    request.estimates = {.ranks = options.at,
                         .replicates = options.replicates,
                         .confidence = options.confidence,
                         .seed = options.seed,
                         .clip = options.clip};
    request.choose({options.policy, options.reward, options.estimators, options.click_model});
    request.check();
    std::optional<AtomicFile> page;
    if (!options.page.empty()) page.emplace(options.page);
    ExecutionContext context(options.threads > 0 ? options.threads : available_threads());
    const OffPolicyResult result =
        evaluate_off_policy(request, data != nullptr ? &data->dataset() : nullptr, context);
    if (page) {
      page->write(off_policy_page(request, result));
      page->commit();
    }
    return dump_json(off_policy_json(request, result), 2);
  });
}

std::string fit_click_models(const ClickFitOptions& options) {
  return with_option_names([&] {
    ClickReportRequest request;
    request.log = {.log = options.log, .holdout = options.holdout, .ranks = options.at};
    request.fit.iterations = options.iterations;
    request.choose(options.model);
    request.check();
    return dump_json(click_report_json(request, report_clicks(request)), 2);
  });
}

}  // namespace olrank
