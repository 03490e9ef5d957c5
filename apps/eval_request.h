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

/// What `olrank eval` was asked: a ranking made elsewhere or by a saved model, to be judged on one part of
/// a data set.
struct EvalRequest {
  std::string data;  // as the user named it
  std::int64_t fold = 1;
  std::string part = "test";
  std::string scores;  // a file; one of these three
  std::string run;
  std::string model;
  std::string per_query;  // a file; empty: none
  Convention convention = Convention::kOlrank;
  std::vector<std::string> overrides;  // flags that departed from the convention
  MetricOptions metrics;
};

/// One judged ranking: the question, and what there is to say.
struct EvalAnswer {
  EvalRequest request;
  MetricReport report;
  std::int64_t missing_docs = 0;  // of a TREC run
  std::int64_t missing_queries = 0;
};

/// Reads the ranking, judges it on `data`, and writes the file of single queries if one is asked for.
EvalAnswer judge(const EvalRequest& request, const Dataset& data, ExecutionContext& context);

/// For people: a block of rows for each fold, and the mean over folds when there are several.
std::string eval_table(std::span<const EvalAnswer> folds);
/// One JSON object for one fold; {"folds": […], "mean": {…}} for several.
std::string eval_json(std::span<const EvalAnswer> folds);

}  // namespace olrank
