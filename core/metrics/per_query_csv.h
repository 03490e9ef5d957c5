#pragma once

#include <string>

#include "core/data/dataset.h"
#include "core/metrics/evaluator.h"

namespace olrank {

/// The figures of every query of `evaluator`'s last evaluation, which was of `data`: a header
/// `qid,docs,ndcg@K,…,map,mrr,p@10,err@10,arp,pairs` and a line a query, in the data's order. `pairs`
/// counts the mis-ordered ones. A field is empty where the query is left out of that figure's mean. Numbers
/// read back exactly.
std::string per_query_csv(const Dataset& data, const Evaluator& evaluator);

/// Only `qid,ndcg@K,…` of the same.
std::string query_ndcg_csv(const Dataset& data, const Evaluator& evaluator);

}  // namespace olrank
