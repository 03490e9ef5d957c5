#include "sim/ranker_data.h"

#include <algorithm>

namespace olrank {

RankerData ranker_data(const TrialData& data, const LabelledQueries* labels, std::int64_t slot) {
  const auto whole = [](const Dataset& part) {
    return part.is_compact() ? FeatureMatrix{nullptr, 0, part.features()} : part.all_rows();
  };
  RankerData known{whole(data.train), 0, whole(data.eval_set), labels, slot};
  for (std::int64_t query = 0; query < data.train.queries(); ++query)
    known.most_docs = std::max(known.most_docs, data.train.offset(query + 1) - data.train.offset(query));
  return known;
}

}  // namespace olrank
