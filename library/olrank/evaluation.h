#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "olrank/data.h"

/// The metrics of `olrank eval`. Needs the C++20 standard library alone.
namespace olrank {

struct EvaluationOptions {
  std::vector<std::int64_t> at = {1, 3, 5, 10};  // cutoffs of NDCG and DCG
  std::vector<std::string> metrics = {};         // further ones: "map@5", "err@5"
  std::string convention = "olrank";             // olrank, letor, lightgbm or trec_eval
  std::string gain = {};                         // exponential or linear; empty: as the convention has it
  std::string empty_queries = {};                // zero, one or skip; empty: as the convention has it
  std::optional<int> max_grade = std::nullopt;   // of ERR; the largest of the data unless given
  bool by_query = false;                         // also the values of every query
  int threads = 0;                               // 0: all cores
};

struct MetricValues {
  std::vector<std::pair<std::string, double>> means;  // over the queries; NaN over none
  std::vector<std::vector<double>> by_query;  // in the order of `means`; NaN where a query is left out
  std::int64_t queries = 0;
  std::int64_t empty_queries = 0;  // without a relevant document
};

/// Metrics of the order that the scores give, one a document. docs/METRICS.md defines them.
MetricValues measure_scores(const RankingData& data, std::span<const double> scores,
                            const EvaluationOptions& options = {});

}  // namespace olrank
