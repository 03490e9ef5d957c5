#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "core/metrics/evaluator.h"

namespace olrank {

/// A metric's name, such as "ndcg@10", and its value.
using NamedValues = std::vector<std::pair<std::string, double>>;

/// The means of an evaluation in the order in which `olrank eval` shows them.
NamedValues named_values(const MetricOptions& options, const MetricReport& report);
/// Returns the values of one query in that order.
NamedValues named_values(const MetricOptions& options, const QueryMetrics& query);

/// The metrics of every query in `evaluator`'s last evaluation, which must be of `data`: a header
/// `qid,docs,ndcg@K,…,map,mrr,p@10,err@10,arp,pairs` and one line per query, in the data's order. `pairs`
/// counts mis-ordered pairs. A field is empty if the query is excluded from that mean. Numbers read back
/// exactly.
std::string per_query_csv(const Dataset& data, const Evaluator& evaluator);

/// Only `qid,ndcg@K,…` of the same.
std::string query_ndcg_csv(const Dataset& data, const Evaluator& evaluator);

}  // namespace olrank
