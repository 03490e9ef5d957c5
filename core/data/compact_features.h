#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/data/feature_type.h"

namespace olrank {

/// Features in half precision or in 8 bits. Of 8 bits, code k of a column stands for
/// low + k/255 (high - low), where low and high are the column's smallest and largest value in its query:
/// what is the same in all documents of a query moves none of them, so the step is as fine as the query
/// allows. Both ends are exact. A non-owning view.
struct CompactFeatures {
  FeatureType type = FeatureType::kFloat32;  // that is: none
  std::span<const std::byte> codes;          // [docs × columns]
  /// Features of 8 bits have bounds [queries × 2 × columns], a query's lows before its highs; it is empty
  /// where every column goes from 0 to 1.
  std::span<const float> bounds;

  std::int64_t bytes() const { return static_cast<std::int64_t>(codes.size() + bounds.size_bytes()); }
};

/// Bytes of a feature of that type.
std::int64_t bytes_of(FeatureType type);

/// The smallest and the largest value of each column.
void column_bounds(const float* values, std::int64_t docs, std::int64_t columns, float* low, float* high);

/// The documents of one query as `type`, float16 or uint8. Values have to be within ±kLargestHalf or, with
/// 8 bits, within the bounds [2 × columns], which are 0 and 1 where they are empty.
void encode_features(FeatureType type, std::span<const float> values, std::span<const float> bounds,
                     std::int64_t columns, std::byte* codes);
/// The values that the codes of one query stand for.
void decode_features(FeatureType type, const std::byte* codes, std::span<const float> bounds,
                     std::int64_t columns, std::span<float> values);

}  // namespace olrank
