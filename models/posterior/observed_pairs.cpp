#include "models/posterior/observed_pairs.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>

#include "core/covariance/covariance_checks.h"

namespace olrank {

void ObservedPairs::append(TangentFactors docs, std::span<const PreferencePair> pairs) {
  make_room(std::ssize(pairs));
  for (const PreferencePair& pair : pairs) {
    for (const std::int32_t doc : {pair.winner, pair.loser}) {
      assert(doc >= 0 && doc < docs.docs);
      const float* row = docs.row(shape_, doc);
      values_->insert(values_->end(), row, row + shape_.factors());
    }
  }
  first_ = values_->data();
  pairs_ += std::ssize(pairs);
}

void ObservedPairs::truncate(std::int64_t pairs) {
  pairs_ = pairs;
  values_->resize(pairs * 2 * shape_.factors());
}

/// Growing moves to new memory, as a copy may be reading the old one.
void ObservedPairs::make_room(std::int64_t pairs) {
  const std::size_t needed = values_->size() + static_cast<std::size_t>(pairs * 2 * shape_.factors());
  if (needed <= values_->capacity()) return;
  auto larger = std::make_shared<AlignedVector<float>>();
  larger->reserve(std::max(needed, 2 * values_->capacity()));
  larger->assign(values_->begin(), values_->end());
  values_ = std::move(larger);
}

void ObservedPairs::save(StateWriter& state) const {
  state.put_growing("history", lineage_, std::span<const float>(values_->data(), values_->size()),
                    std::ssize(*values_));
}

void ObservedPairs::load(StateReader& state) {
  const std::vector<float> values = state.get<float>("history");
  if (values.size() % static_cast<std::size_t>(2 * shape_.factors()) != 0) {
    state.fail("The history does not fit this network: its size is not a multiple of a pair's.");
  }
  values_ = std::make_shared<AlignedVector<float>>(values.begin(), values.end());
  lineage_.renew();
  first_ = values_->data();
  pairs_ = std::ssize(values) / (2 * shape_.factors());
}

double gradient_length_sq(const TangentShape& shape, const float* factors) {
  double sum = 0.0;
  for (const NetworkLayer& layer : shape.layers()) {
    double inputs = layer.has_bias() ? 1.0 : 0.0;
    for (std::int64_t k = 0; k < layer.columns; ++k)
      inputs += double{factors[layer.input + k]} * double{factors[layer.input + k]};
    double deltas = 0.0;
    for (std::int64_t k = 0; k < layer.rows; ++k)
      deltas += double{factors[layer.delta + k]} * double{factors[layer.delta + k]};
    sum += inputs * deltas;
  }
  return sum;
}

void require_information(const TangentShape& shape, double lambda, double scale, TangentFactors docs,
                         std::span<const PreferencePair> pairs) {
  for (const PreferencePair& pair : pairs) {
    for (const std::int32_t doc : {pair.winner, pair.loser})
      require_information(lambda, scale * gradient_length_sq(shape, docs.row(shape, doc)));
  }
}

}  // namespace olrank
