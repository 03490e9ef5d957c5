#pragma once

#include <string>

#include "core/data/dataset.h"
#include "core/metrics/evaluator.h"

namespace olrank {

/// The metrics of every query in `evaluator`'s last evaluation, which must be of `data`: a header
/// `qid,docs,ndcg@K,…,map,mrr,p@10,err@10,arp,pairs` and one line per query, in the data's order. `pairs`
/// counts mis-ordered pairs. A field is empty if the query is excluded from that mean. Numbers read back
/// exactly.
std::string per_query_csv(const Dataset& data, const Evaluator& evaluator);

/// Only `qid,ndcg@K,…` of the same.
std::string query_ndcg_csv(const Dataset& data, const Evaluator& evaluator);

}  // namespace olrank
