#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/metrics/metric_options.h"

// The definitions of docs/METRICS.md, one query at a time, the obvious way.
namespace olrank::slow {

struct Query {
  std::vector<int> grades;  // by document
  std::vector<double> scores;
  std::vector<std::string> labels;  // for ties by name
  std::int64_t retrieved = 0;       // documents that count as shown
};

std::vector<int> ranked_grades(const Query& query, Ties ties);
double dcg(const std::vector<int>& list, std::int64_t cutoff, std::int64_t shown, Gain gain,
           Discount discount);

// Each is empty where the query is left out of the mean.
std::optional<double> ndcg(const Query& query, std::int64_t cutoff, const MetricOptions& options);
std::optional<double> average_precision(const Query& query, const MetricOptions& options);
std::optional<double> reciprocal_rank(const Query& query, const MetricOptions& options);
std::optional<double> precision(const Query& query, const MetricOptions& options);
std::optional<double> err(const Query& query, int max_grade, const MetricOptions& options);
std::optional<double> relevant_position(const Query& query, const MetricOptions& options);
std::optional<double> pair_accuracy(const Query& query, const MetricOptions& options);
std::int64_t misordered(const std::vector<int>& list);
std::int64_t pairs(const std::vector<int>& list);

}  // namespace olrank::slow
