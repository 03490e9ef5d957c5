#pragma once

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
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
#include "report/final_measures.h"

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

/// A ranking with its results of every fold, which keep their queries.
struct ComparedRanking {
  std::string name;
  std::string file;  // as given
  std::vector<EvalResult> folds;
};

/// One metric of rankings a and b, paired by query over all folds.
struct RankingDifference : PairedComparison {
  std::size_t metric = 0;
  std::int64_t wins = 0;  // queries on which a is better by more than rounding
  std::int64_t ties = 0;
  std::int64_t losses = 0;
};

struct EvalComparison {
  std::vector<ComparedRanking> rankings;
  std::vector<NamedMetric> metrics;
  std::vector<std::vector<double>> means;  // by ranking and metric, over the queries of all folds
  std::size_t baseline = 0;  // what tables compare with: as given, or the best by the first metric
  bool given_baseline = false;
  std::vector<RankingDifference> differences;  // metric by metric
};

/// Compares all pairs of rankings, or with a baseline the others with it. Holm's correction covers all
/// pairs and metrics, for each of the two tests. Throws InvalidArgument for an unknown baseline.
EvalComparison compare_rankings(std::vector<ComparedRanking> rankings,
                                const std::optional<std::string>& baseline, ExecutionContext& context);

/// Names for rankings from their files: the stem, or the ranker of a trial; where these are not unique, the
/// trial (RANKER/CLICKS/foldK/seedS) or the file as given.
std::vector<std::string> ranking_names(const std::vector<std::string>& files);

std::string comparison_table(const EvalComparison& comparison);
std::string comparison_json(const EvalComparison& comparison);
/// The per-query files of all rankings as one, with the ranking in the first column.
std::string comparison_queries_csv(const EvalComparison& comparison, std::size_t fold);

}  // namespace olrank
