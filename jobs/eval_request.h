#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/metrics/evaluator.h"
#include "core/metrics/metric_options.h"
#include "core/metrics/score_files.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// A request of `olrank eval`: an external ranking or a saved model, to be evaluated on one part of a data
/// set.
struct EvalRequest {
  std::string data;   // as given by the user
  std::string qrels;  // a file of TREC judgements instead
  std::int64_t fold = 1;
  std::string part = "test";
  std::string scores;  // a file; exactly one of these three is set
  std::string run;
  std::string model;
  bool trust_code = false;    // of the model, if it is a TorchScript module
  std::string per_query;      // a CSV file to write; empty: none
  bool keep_queries = false;  // in EvalResult
  Convention convention = Convention::kOlrank;
  std::vector<std::string> overrides;  // flags that override the convention
  MetricOptions metrics;
};

struct EvalResult {
  EvalRequest request;
  MetricReport report;
  std::int64_t missing_docs = 0;  // not listed in the TREC run
  std::int64_t missing_queries = 0;
  std::int64_t unjudged_docs = 0;  // listed in the run and not judged
  std::int64_t ignored_queries = 0;
  // With keep_queries:
  std::vector<std::string> qids;
  std::vector<std::vector<double>> named;  // by metric of MetricOptions::named and query; NaN: left out
  std::string queries_csv;                 // what a per-query file holds
};

/// Reads the ranking, evaluates it on `data`, and writes the per-query file if requested.
EvalResult evaluate_ranking(const EvalRequest& request, const Dataset& data, ExecutionContext& context);

EvalResult evaluate_judged_run(const EvalRequest& request, const Qrels& qrels, ExecutionContext& context);

/// The tool's conventions and what overrides them, in words.
std::string conventions_of(const EvalRequest& request);
/// Returns the conventions as JSON, with the largest grade that ERR uses.
nlohmann::ordered_json conventions_json(const EvalRequest& request, int max_grade);

/// A text table: a block of rows for each fold, and the mean over several folds.
std::string eval_table(std::span<const EvalResult> folds);
/// One JSON object for one fold; {"folds": […], "mean": {…}} for several.
std::string eval_json(std::span<const EvalResult> folds);

}  // namespace olrank
