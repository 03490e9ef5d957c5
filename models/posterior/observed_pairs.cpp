#include "models/posterior/observed_pairs.h"

#include <cassert>

namespace olrank {

void ObservedPairs::append(TangentFactors docs, std::span<const PreferencePair> pairs) {
  for (const PreferencePair& pair : pairs) {
    for (const std::int32_t doc : {pair.winner, pair.loser}) {
      assert(doc >= 0 && doc < docs.docs);
      const float* row = docs.row(shape_, doc);
      values_.insert(values_.end(), row, row + shape_.factors());
    }
  }
}

void ObservedPairs::truncate(std::int64_t pairs) {
  assert(pairs <= this->pairs());
  values_.resize(static_cast<std::size_t>(pairs * 2 * shape_.factors()));
}

void ObservedPairs::save(StateWriter& state) const {
  state.put("history", std::span<const float>(values_));
}

void ObservedPairs::load(StateReader& state) {
  const std::vector<float> values = state.get<float>("history");
  if (values.size() % static_cast<std::size_t>(2 * shape_.factors()) != 0) {
    state.fail("The history holds no whole number of pairs for this network.");
  }
  values_.assign(values.begin(), values.end());
}

}  // namespace olrank
