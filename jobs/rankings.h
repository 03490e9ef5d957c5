#pragma once

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/metrics/evaluator.h"
#include "core/metrics/metric_options.h"
#include "core/metrics/score_files.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/progress.h"
#include "core/settings/enum_names.h"
#include "core/text/text_table.h"
#include "jobs/saved_trial.h"
#include "models/files/model_scorer.h"

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

enum class ListFormat { kTrec, kScores };

template <>
struct EnumNames<ListFormat> {
  static constexpr std::array values = names_in_order<ListFormat>("trec", "scores");
};

/// Scores and ranks all queries of `data`, whose features match the model: writes lines of a TREC run, best
/// first, or one score per document. The output does not depend on the number of threads. Throws
/// NumericError for a score that is not finite.
void write_ranked(const ModelScorer& scorer, ListFormat format, const Dataset& data,
                  ExecutionContext& context, const TextSink& sink);

/// Writes the grades of all documents as TREC judgements, which `eval --qrels` and trec_eval read.
void write_judgements(const Dataset& data, const TextSink& sink);

}  // namespace olrank
