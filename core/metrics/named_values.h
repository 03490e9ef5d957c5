#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/metrics/evaluator.h"

namespace olrank {

/// A metric's name, such as "ndcg@10", and its value.
using NamedValues = std::vector<std::pair<std::string, double>>;

/// The means of an evaluation in the order in which `olrank eval` shows them.
NamedValues named_values(const MetricOptions& options, const MetricReport& report);
/// Returns the values of one query in that order.
NamedValues named_values(const MetricOptions& options, const QueryMetrics& query);

}  // namespace olrank
