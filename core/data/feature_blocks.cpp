#include "core/data/feature_blocks.h"

#include <vector>

namespace olrank {

void for_feature_blocks(const Dataset& data, ExecutionContext& context,
                        FunctionRef<void(FeatureMatrix docs, std::int64_t first_doc)> call) {
  if (!data.is_compact()) return call(data.all_rows(), 0);
  constexpr std::int64_t kDocs = 4096;
  std::vector<float> values;
  std::vector<std::int64_t> list_ends;
  for (std::int64_t begin = 0, end = 0; begin < data.queries(); begin = end) {
    const std::int64_t first = data.offset(begin);
    list_ends.clear();
    for (; end < data.queries() && data.offset(end) - first < kDocs; ++end)
      list_ends.push_back(data.offset(end + 1) - first);
    values.resize(list_ends.back() * data.features());
    context.for_blocks(end - begin, 8, [&](std::int64_t from, std::int64_t to, int) {
      for (std::int64_t query = begin + from; query < begin + to; ++query)
        data.copy_features(query, values.data() + (data.offset(query) - first) * data.features());
    });
    call({values.data(), list_ends.back(), data.features(), list_ends}, first);
  }
}

}  // namespace olrank
