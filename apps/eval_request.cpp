#include "apps/eval_request.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/io/atomic_file.h"
#include "core/metrics/evaluator.h"
#include "core/metrics/per_query_csv.h"
#include "core/metrics/score_files.h"
#include "core/text/nearest.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

/// The means with their names, in the order of printing.
std::vector<std::pair<std::string, double>> named_means(const MetricOptions& options,
                                                        const MetricReport& report) {
  std::vector<std::pair<std::string, double>> means;
  for (std::size_t i = 0; i < options.cutoffs.size(); ++i) {
    means.emplace_back(fmt::format("ndcg@{}", options.cutoffs[i]), report.ndcg[i]);
  }
  for (std::size_t i = 0; i < options.cutoffs.size(); ++i) {
    means.emplace_back(fmt::format("dcg@{}", options.cutoffs[i]), report.dcg[i]);
  }
  means.emplace_back("map", report.map);
  means.emplace_back("mrr", report.mrr);
  means.emplace_back(fmt::format("p@{}", options.precision_cutoff), report.precision);
  means.emplace_back(fmt::format("err@{}", options.err_cutoff), report.err);
  means.emplace_back("arp", report.arp);
  means.emplace_back("pair_accuracy", report.pair_accuracy);
  return means;
}

ordered_json as_json(const EvalRequest& request, const MetricReport& report, const ExternalScores& scores) {
  const MetricOptions& options = request.metrics;
  ordered_json metrics;
  for (const auto& [name, mean] : named_means(options, report)) {
    metrics[name] = std::isnan(mean) ? ordered_json(nullptr) : ordered_json(mean);
  }
  metrics["misordered_pairs"] = report.misordered_pairs;
  metrics["pairs"] = report.pairs;
  ordered_json answer = {{"data", request.data},
                         {"fold", request.fold},
                         {"part", request.part},
                         {"queries", report.queries},
                         {"docs", report.docs},
                         {"empty_queries", report.empty_queries},
                         {"pairless_queries", report.pairless_queries},
                         {"conventions",
                          {{"convention", name_of(request.convention)},
                           {"overrides", request.overrides},
                           {"gain", name_of(options.gain)},
                           {"discount", name_of(options.discount)},
                           {"ties", name_of(options.ties)},
                           {"empty_queries", name_of(options.empty_queries)},
                           {"short_lists", name_of(options.short_lists)},
                           {"unretrieved", name_of(options.unretrieved)},
                           {"max_grade", report.max_grade}}},
                         {"metrics", metrics}};
  if (!request.run.empty()) {
    answer["run"] = {{"missing_docs", scores.missing_docs}, {"missing_queries", scores.missing_queries}};
  }
  return answer;
}

std::string rule_in_words(EmptyQueries rule) {
  switch (rule) {
    case EmptyQueries::kZero:
      return "counted 0";
    case EmptyQueries::kOne:
      return "counted 1";
    case EmptyQueries::kSkip:
      break;
  }
  return "skipped";
}

std::string as_table(const EvalRequest& request, const MetricReport& report, const ExternalScores& scores) {
  std::string table;
  const auto add_row = [&](std::string_view name, std::string_view value) {
    table += fmt::format("{:<17} {}\n", name, value);
  };
  add_row("data", fmt::format("{}, fold {}, {}", request.data, request.fold, request.part));
  add_row("queries", fmt::format("{} with {} documents", report.queries, report.docs));
  add_row("empty queries", fmt::format("{} without a relevant document, {}", report.empty_queries,
                                       rule_in_words(request.metrics.empty_queries)));
  if (!request.run.empty()) {
    const bool lost = request.metrics.unretrieved == Unretrieved::kLost;
    add_row("not in the run",
            fmt::format("{} documents, {}; queries without any: {}", scores.missing_docs,
                        lost ? "never shown" : "standing last in index order", scores.missing_queries));
  }
  const std::string overridden =
      request.overrides.empty() ? "" : fmt::format(" with {}", joined(request.overrides));
  add_row("convention", fmt::format("{}{}: {}", name_of(request.convention), overridden,
                                    describe_conventions(request.metrics)));
  for (const auto& [name, mean] : named_means(request.metrics, report)) {
    add_row(name, std::isnan(mean) ? "none: no query counts" : fmt::format("{:.6f}", mean));
  }
  add_row("misordered_pairs", fmt::format("{} of {}", report.misordered_pairs, report.pairs));
  add_row("max_grade", fmt::format("{} (of ERR)", report.max_grade));
  return table;
}

}  // namespace

std::string answer_eval(const EvalRequest& request, const Dataset& data, bool json,
                        ExecutionContext& context) {
  const ExternalScores scores =
      request.run.empty() ? read_scores(request.scores, data) : read_trec_run(request.run, data);
  Evaluator evaluator(request.metrics);
  const MetricReport& report = evaluator.evaluate(data, scores.scores, context, scores.retrieved);
  if (!request.per_query.empty()) write_file_atomically(request.per_query, per_query_csv(data, evaluator));
  return json ? as_json(request, report, scores).dump(2) + "\n" : as_table(request, report, scores);
}

}  // namespace olrank
