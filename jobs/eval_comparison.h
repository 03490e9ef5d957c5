#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/metrics/metric_options.h"
#include "core/runtime/execution_context.h"
#include "jobs/rankings.h"
#include "report/final_measures.h"

namespace olrank {

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
