#include "core/data/compact_features.h"

#include <algorithm>
#include <cassert>

#include "core/data/half.h"
#include "core/runtime/vector_clones.h"

namespace olrank {
namespace {

constexpr double kLargestCode = 255.0;

/// `value` is not negative. std::lround() would keep the compiler from computing vectors.
OLRANK_ALWAYS_INLINE std::uint8_t rounded(double value) {
  return static_cast<std::uint8_t>(static_cast<int>(value + 0.5));  // NOLINT(bugprone-incorrect-roundings)
}

OLRANK_VECTOR_CLONES
void encode_halves(const float* values, std::int64_t count, std::uint16_t* codes) {
  for (std::int64_t i = 0; i < count; ++i) codes[i] = half_of(values[i]);
}

OLRANK_VECTOR_CLONES
void decode_halves(const std::uint16_t* codes, std::int64_t count, float* values) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = float_of_half(codes[i]);
}

/// In double: the range of two floats may be no float.
OLRANK_VECTOR_CLONES
void encode_steps(const float* values, std::int64_t docs, std::int64_t columns, const float* low,
                  const float* high, std::uint8_t* codes) {
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const double range = double{high[c]} - double{low[c]};
      const double share = (double{values[c]} - double{low[c]}) / (range > 0.0 ? range : 1.0);
      codes[c] = rounded(kLargestCode * share);
    }
    values += columns;
    codes += columns;
  }
}

OLRANK_VECTOR_CLONES
void decode_steps(const std::uint8_t* codes, std::int64_t docs, std::int64_t columns, const float* low,
                  const float* high, float* values) {
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const double range = double{high[c]} - double{low[c]};
      values[c] =
          static_cast<float>(double{low[c]} + range * (static_cast<double>(codes[c]) / kLargestCode));
    }
    codes += columns;
    values += columns;
  }
}

OLRANK_VECTOR_CLONES
void encode_shares(const float* values, std::int64_t count, std::uint8_t* codes) {
  for (std::int64_t i = 0; i < count; ++i) codes[i] = rounded(kLargestCode * double{values[i]});
}

OLRANK_VECTOR_CLONES
void decode_shares(const std::uint8_t* codes, std::int64_t count, float* values) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(codes[i]) / 255.0F;
}

}  // namespace

std::int64_t bytes_of(FeatureType type) {
  switch (type) {
    case FeatureType::kFloat32:
      return 4;
    case FeatureType::kFloat16:
      return 2;
    case FeatureType::kUint8:
      return 1;
  }
  return 4;
}

OLRANK_VECTOR_CLONES
void column_bounds(const float* values, std::int64_t docs, std::int64_t columns, float* low, float* high) {
  std::copy_n(values, columns, low);
  std::copy_n(values, columns, high);
  for (std::int64_t doc = 1; doc < docs; ++doc) {
    const float* row = values + doc * columns;
    for (std::int64_t c = 0; c < columns; ++c) {
      low[c] = row[c] < low[c] ? row[c] : low[c];
      high[c] = high[c] < row[c] ? row[c] : high[c];
    }
  }
}

void encode_features(FeatureType type, std::span<const float> values, std::span<const float> bounds,
                     std::int64_t columns, std::byte* codes) {
  assert(type != FeatureType::kFloat32);
  auto* const bytes = reinterpret_cast<std::uint8_t*>(codes);
  if (type == FeatureType::kFloat16) {
    encode_halves(values.data(), std::ssize(values), reinterpret_cast<std::uint16_t*>(codes));
  } else if (bounds.empty()) {
    encode_shares(values.data(), std::ssize(values), bytes);
  } else {
    encode_steps(values.data(), std::ssize(values) / columns, columns, bounds.data(),
                 bounds.data() + columns, bytes);
  }
}

void decode_features(FeatureType type, const std::byte* codes, std::span<const float> bounds,
                     std::int64_t columns, std::span<float> values) {
  assert(type != FeatureType::kFloat32);
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(codes);
  if (type == FeatureType::kFloat16) {
    decode_halves(reinterpret_cast<const std::uint16_t*>(codes), std::ssize(values), values.data());
  } else if (bounds.empty()) {
    decode_shares(bytes, std::ssize(values), values.data());
  } else {
    decode_steps(bytes, std::ssize(values) / columns, columns, bounds.data(), bounds.data() + columns,
                 values.data());
  }
}

}  // namespace olrank
