#include "core/metrics/named_values.h"

#include <fmt/format.h>

#include <algorithm>

namespace olrank {
namespace {

template <class Metrics>
NamedValues values_of(const MetricOptions& options, const Metrics& metrics) {
  NamedValues values;
  for (std::size_t i = 0; i < options.cutoffs.size(); ++i)
    values.emplace_back(fmt::format("ndcg@{}", options.cutoffs[i]), metrics.ndcg[i]);
  for (std::size_t i = 0; i < options.cutoffs.size(); ++i)
    values.emplace_back(fmt::format("dcg@{}", options.cutoffs[i]), metrics.dcg[i]);
  values.emplace_back("map", metrics.map);
  values.emplace_back("mrr", metrics.mrr);
  values.emplace_back(fmt::format("p@{}", options.precision_cutoff), metrics.precision);
  values.emplace_back(fmt::format("err@{}", options.err_cutoff), metrics.err);
  values.emplace_back("arp", metrics.arp);
  values.emplace_back("pair_accuracy", metrics.pair_accuracy);
  for (std::size_t i = 0; i < options.named.size(); ++i) {
    const std::string name = options.named[i].name();
    const bool there =
        std::any_of(values.begin(), values.end(), [&](const auto& value) { return value.first == name; });
    if (!there) values.emplace_back(name, metrics.named[i]);
  }
  return values;
}

}  // namespace

NamedValues named_values(const MetricOptions& options, const MetricReport& report) {
  return values_of(options, report);
}

NamedValues named_values(const MetricOptions& options, const QueryMetrics& query) {
  return values_of(options, query);
}

}  // namespace olrank
