#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/math/dcg.h"
#include "core/settings/enum_names.h"

namespace olrank {

/// How offline metrics count a query without a relevant document.
enum class EmptyQueries { kZero, kOne, kSkip };

template <>
struct EnumNames<EmptyQueries> {
  static constexpr std::array values = names_in_order<EmptyQueries>("zero", "one", "skip");
};

/// The metrics that have a name, in the order in which they are shown. docs/METRICS.md defines them.
enum class MetricKind { kNdcg, kDcg, kErr, kPrecision, kMap, kMrr, kArp, kPairAccuracy, kOwn };

/// A metric and its cutoff: "ndcg@5", or "map", which looks at the whole list.
struct NamedMetric {
  MetricKind kind = MetricKind::kNdcg;
  std::int64_t cutoff = 0;  // 0: the whole list; of a metric of a program its number, a hash of the name

  /// Names it as users write it.
  std::string name() const;
  /// Names it for titles: "NDCG@5", "MAP".
  std::string title() const;
  /// Whether it looks at the whole list, so that all documents must be sorted.
  bool whole_list() const { return cutoff == 0; }
  bool larger_is_better() const { return kind != MetricKind::kArp; }
  /// Whether all values lie between 0 and 1.
  bool is_share() const {
    return kind != MetricKind::kDcg && kind != MetricKind::kArp && kind != MetricKind::kOwn;
  }

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes what the default compares with for a pointer
  friend auto operator<=>(const NamedMetric&, const NamedMetric&) = default;
};

/// The metric of this name, if there is one.
std::optional<NamedMetric> metric_named(std::string_view name);
/// A program's own metric of this name, registered here (core/metrics/external_metric.h) or only read from
/// results.
NamedMetric own_metric(std::string_view name);
/// The description of a registered metric.
std::string own_metric_description(const NamedMetric& metric);
struct ScoredPart;
/// The value of a registered metric. Throws InvalidArgument if it is not finite.
double own_metric_value(const NamedMetric& metric, const ScoredPart& part);

/// The metrics of these names. Throws InvalidArgument, beginning with `origin`, for an unknown name, a
/// missing or surplus cutoff, and a metric that is listed twice.
std::vector<NamedMetric> parse_metrics(std::span<const std::string> names, std::string_view origin);

/// Order of documents with equal scores: lower index within the query first, or, for trec_eval, the name
/// that is last in byte order first (a document without a name uses its index).
enum class Ties { kDocIndex, kNameDescending };

/// NDCG@k of a list with fewer than k documents: computed as it is, or 0 (LETOR 4.0's tool).
enum class ShortLists { kScored, kZero };

/// Documents missing from a run: ranked last in index order, or counted as never shown.
enum class Unretrieved { kLast, kLost };

/// Which tool's figures to reproduce; kOlrank is the default.
enum class Convention { kOlrank, kLetor, kLightgbm, kTrecEval };

/// kTop leaves out what needs the whole list in order (MAP, MRR, average relevant position, pairs), so that
/// only the documents above the largest cutoff are ever sorted.
enum class MetricSet { kAll, kTop };

struct MetricOptions {
  std::vector<std::int64_t> cutoffs = {1, 3, 5, 10};  // k of NDCG@k and DCG@k, in the order of printing
  std::int64_t precision_cutoff = 10;                 // k of P@k
  std::int64_t err_cutoff = 10;                       // k of ERR@k
  std::optional<int> max_grade;                       // of ERR; the data set's largest unless given
  Gain gain = Gain::kExponential;
  Discount discount = Discount::kLog2;
  Ties ties = Ties::kDocIndex;
  EmptyQueries empty_queries = EmptyQueries::kZero;
  ShortLists short_lists = ShortLists::kScored;
  Unretrieved unretrieved = Unretrieved::kLast;
  MetricSet metrics = MetricSet::kAll;
  /// Further ones, at cutoffs of their own. Any that looks at the whole list needs MetricSet::kAll.
  std::vector<NamedMetric> named;
};

/// Sets everything that `convention` decides; cutoffs, max_grade and metrics stay.
void apply_convention(Convention convention, MetricOptions& options);

/// Throws InvalidArgument for cutoffs below 1 or given twice, none at all, a max_grade out of range, or
/// metrics of the whole list where only its top is sorted.
void check_metric_options(const MetricOptions& options);

/// A one-line description: gain, discount, ties, empty queries and other deviations from the default.
std::string describe_conventions(const MetricOptions& options);

template <>
struct EnumNames<Gain> {
  static constexpr std::array values = names_in_order<Gain>("exponential", "linear");
};

template <>
struct EnumNames<Discount> {
  static constexpr std::array values = names_in_order<Discount>("log2", "letor");
};

template <>
struct EnumNames<Ties> {
  static constexpr std::array values = names_in_order<Ties>("doc-index", "name-descending");
};

template <>
struct EnumNames<ShortLists> {
  static constexpr std::array values = names_in_order<ShortLists>("scored", "zero");
};

template <>
struct EnumNames<Unretrieved> {
  static constexpr std::array values = names_in_order<Unretrieved>("last", "lost");
};

template <>
struct EnumNames<Convention> {
  static constexpr std::array values =
      names_in_order<Convention>("olrank", "letor", "lightgbm", "trec_eval");
};

}  // namespace olrank
