#include "sim/ranker_data.h"

#include <algorithm>

namespace olrank {

RankerData ranker_data(const TrialData& data, const LabelledQueries* labels, std::int64_t slot) {
  RankerData known{data.train.all_rows(), 0, data.eval_set.all_rows(), labels, slot};
  for (std::int64_t query = 0; query < data.train.queries(); ++query)
    known.most_docs = std::max(known.most_docs, data.train.offset(query + 1) - data.train.offset(query));
  return known;
}

}  // namespace olrank
