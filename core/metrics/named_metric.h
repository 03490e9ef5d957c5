#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// The metrics that have a name, in the order in which they are shown. docs/METRICS.md defines them.
enum class MetricKind { kNdcg, kDcg, kErr, kPrecision, kMap, kMrr, kArp, kPairAccuracy };

/// A metric and its cutoff: "ndcg@5", or "map", which looks at the whole list.
struct NamedMetric {
  MetricKind kind = MetricKind::kNdcg;
  std::int64_t cutoff = 0;  // 0: the whole list

  /// As users write it.
  std::string name() const;
  /// For titles: "NDCG@5", "MAP".
  std::string title() const;
  /// Whether it looks at the whole list, so that all documents must be sorted.
  bool whole_list() const { return cutoff == 0; }
  bool larger_is_better() const { return kind != MetricKind::kArp; }
  /// Whether all values lie between 0 and 1.
  bool is_share() const { return kind != MetricKind::kDcg && kind != MetricKind::kArp; }

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes what the default compares with for a pointer
  friend auto operator<=>(const NamedMetric&, const NamedMetric&) = default;
};

/// The metric of this name, if there is one.
std::optional<NamedMetric> metric_named(std::string_view name);

/// The metrics of these names. Throws InvalidArgument, beginning with `origin`, for an unknown name, a
/// missing or surplus cutoff, and a metric that is listed twice.
std::vector<NamedMetric> parse_metrics(std::span<const std::string> names, std::string_view origin);

}  // namespace olrank
