#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/metrics/evaluator.h"
#include "core/metrics/metric_options.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// A request of `olrank eval`: an external ranking or a saved model, to be evaluated on one part of a data
/// set.
struct EvalRequest {
  std::string data;  // as given by the user
  std::int64_t fold = 1;
  std::string part = "test";
  std::string scores;  // a file; exactly one of these three is set
  std::string run;
  std::string model;
  std::string per_query;  // a CSV file to write; empty: none
  Convention convention = Convention::kOlrank;
  std::vector<std::string> overrides;  // flags that override the convention
  MetricOptions metrics;
};

/// The metrics of one ranking.
struct EvalResult {
  EvalRequest request;
  MetricReport report;
  std::int64_t missing_docs = 0;  // not listed in the TREC run
  std::int64_t missing_queries = 0;
};

/// Reads the ranking, evaluates it on `data`, and writes the per-query file if requested.
EvalResult evaluate_ranking(const EvalRequest& request, const Dataset& data, ExecutionContext& context);

/// A text table: a block of rows for each fold, and the mean over several folds.
std::string eval_table(std::span<const EvalResult> folds);
/// One JSON object for one fold; {"folds": […], "mean": {…}} for several.
std::string eval_json(std::span<const EvalResult> folds);

}  // namespace olrank
