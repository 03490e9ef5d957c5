#include "recommend/trees/factor_rows.h"

#include <algorithm>

namespace olrank {
namespace {

OLRANK_VECTOR_CLONES void score_padded(const float* rows, std::int64_t count, const float* vector,
                                       int stride, float* scores) {
  for (std::int64_t row = 0; row < count; ++row)
    scores[row] = padded_product(rows + row * stride, vector, stride);
}

}  // namespace

void score_rows(const FactorRows& rows, std::span<const float> vector, std::span<float> scores) {
  std::vector<float> padded(rows.stride(), 0.0F);
  std::ranges::copy(vector, padded.begin());
  score_padded(rows.padded_values().data(), rows.rows(), padded.data(), rows.stride(), scores.data());
}

}  // namespace olrank
