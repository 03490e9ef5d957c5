#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
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

inline bool is_empty(const Query& query) {
  return std::none_of(query.grades.begin(), query.grades.end(), [](int grade) { return grade >= 1; });
}

inline std::optional<double> of_empty(const MetricOptions& options) {
  if (options.empty_queries == EmptyQueries::kSkip) return std::nullopt;
  return options.empty_queries == EmptyQueries::kOne ? 1.0 : 0.0;
}

inline std::int64_t shown_of(const Query& query, const MetricOptions& options) {
  return options.unretrieved == Unretrieved::kLost ? query.retrieved : std::ssize(query.grades);
}

/// 1 for a relevant document that is shown at this rank.
inline int hit(const std::vector<int>& list, std::int64_t rank, std::int64_t shown) {
  return rank < shown && rank < std::ssize(list) && list[rank] >= 1;
}

inline std::vector<int> ranked_grades(const Query& query, Ties ties) {
  std::vector<std::size_t> order(query.grades.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (query.scores[a] != query.scores[b]) return query.scores[a] > query.scores[b];
    if (std::isinf(query.scores[a])) return false;  // not retrieved: in index order
    return ties == Ties::kNameDescending && query.labels[a] > query.labels[b];
  });
  std::vector<int> list;
  for (const std::size_t doc : order) list.push_back(query.grades[doc]);
  return list;
}

inline double dcg(const std::vector<int>& list, std::int64_t cutoff, std::int64_t shown, Gain gain,
                  Discount discount) {
  double sum = 0.0;
  for (std::int64_t rank = 0; rank < cutoff && rank < shown && rank < std::ssize(list); ++rank) {
    const int grade = list[rank];
    const double worth = gain == Gain::kExponential ? std::pow(2.0, grade) - 1.0 : grade;
    const auto position = static_cast<double>(rank + 1);
    const double log =
        discount == Discount::kLog2 ? std::log2(position + 1.0) : std::max(1.0, std::log2(position));
    sum += worth / log;
  }
  return sum;
}

// Each of these is empty where the query is left out of the mean.

inline std::optional<double> ndcg(const Query& query, std::int64_t cutoff, const MetricOptions& options) {
  if (is_empty(query)) return of_empty(options);
  const auto docs = std::ssize(query.grades);
  if (options.short_lists == ShortLists::kZero && docs < cutoff) return 0.0;
  std::vector<int> best = query.grades;
  std::sort(best.begin(), best.end(), std::greater<>());
  return dcg(ranked_grades(query, options.ties), cutoff, shown_of(query, options), options.gain,
             options.discount) /
         dcg(best, cutoff, docs, options.gain, options.discount);
}

inline std::optional<double> average_precision(const Query& query, const MetricOptions& options) {
  if (is_empty(query)) return of_empty(options);
  const std::vector<int> list = ranked_grades(query, options.ties);
  const std::int64_t shown = shown_of(query, options);
  double sum = 0.0;
  double relevant = 0.0;
  for (std::int64_t rank = 0; rank < std::ssize(list); ++rank) {
    relevant += list[rank] >= 1 ? 1.0 : 0.0;
    if (!hit(list, rank, shown)) continue;
    double hits = 0.0;
    for (std::int64_t above = 0; above <= rank; ++above) hits += hit(list, above, shown);
    sum += hits / static_cast<double>(rank + 1);
  }
  return sum / relevant;
}

inline std::optional<double> reciprocal_rank(const Query& query, const MetricOptions& options) {
  if (is_empty(query)) return of_empty(options);
  const std::vector<int> list = ranked_grades(query, options.ties);
  for (std::int64_t rank = 0; rank < std::ssize(list); ++rank) {
    if (hit(list, rank, shown_of(query, options))) return 1.0 / static_cast<double>(rank + 1);
  }
  return 0.0;
}

inline std::optional<double> precision(const Query& query, const MetricOptions& options) {
  if (is_empty(query)) return of_empty(options);
  const std::vector<int> list = ranked_grades(query, options.ties);
  double hits = 0.0;
  for (std::int64_t rank = 0; rank < options.precision_cutoff; ++rank) {
    hits += hit(list, rank, shown_of(query, options));
  }
  return hits / static_cast<double>(options.precision_cutoff);
}

inline std::optional<double> err(const Query& query, int max_grade, const MetricOptions& options) {
  if (is_empty(query)) return of_empty(options);
  const std::vector<int> list = ranked_grades(query, options.ties);
  double sum = 0.0;
  for (std::int64_t rank = 0; rank < options.err_cutoff; ++rank) {
    if (rank >= shown_of(query, options) || rank >= std::ssize(list)) break;
    const auto satisfied = [&](std::int64_t at) {
      return (std::pow(2.0, list[at]) - 1.0) / std::pow(2.0, max_grade);
    };
    double reached = 1.0;
    for (std::int64_t above = 0; above < rank; ++above) reached *= 1.0 - satisfied(above);
    sum += reached * satisfied(rank) / static_cast<double>(rank + 1);
  }
  return sum;
}

inline std::optional<double> relevant_position(const Query& query, const MetricOptions& options) {
  if (is_empty(query)) return std::nullopt;
  const std::vector<int> list = ranked_grades(query, options.ties);
  double weighted = 0.0;
  double weights = 0.0;
  for (std::size_t rank = 0; rank < list.size(); ++rank) {
    weighted += list[rank] * static_cast<double>(rank + 1);
    weights += list[rank];
  }
  return weighted / weights;
}

inline std::int64_t misordered(const std::vector<int>& list) {
  std::int64_t count = 0;
  for (std::size_t above = 0; above < list.size(); ++above) {
    for (std::size_t below = above + 1; below < list.size(); ++below) count += list[above] < list[below];
  }
  return count;
}

inline std::int64_t pairs(const std::vector<int>& list) {
  std::int64_t count = 0;
  for (std::size_t above = 0; above < list.size(); ++above) {
    for (std::size_t below = above + 1; below < list.size(); ++below) count += list[above] != list[below];
  }
  return count;
}

inline std::optional<double> pair_accuracy(const Query& query, const MetricOptions& options) {
  const std::vector<int> list = ranked_grades(query, options.ties);
  const auto all = static_cast<double>(pairs(list));
  if (all == 0.0) return std::nullopt;
  return (all - static_cast<double>(misordered(list))) / all;
}

}  // namespace olrank::slow
