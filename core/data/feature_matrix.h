#pragma once

#include <cstdint>
#include <span>

namespace olrank {

/// Documents × features in row-major order; a view that owns nothing.
struct FeatureMatrix {
  const float* values = nullptr;
  std::int64_t docs = 0;
  std::int64_t features = 0;
  /// Where each list of documents that belong together ends, in ascending order; empty: all are one list.
  /// Only models whose scores depend on the other documents of a list look at it.
  std::span<const std::int64_t> list_ends = {};

  std::span<const float> doc(std::int64_t index) const {
    return {values + index * features, static_cast<std::size_t>(features)};
  }
  /// Documents `begin` to `end` as one list.
  FeatureMatrix part(std::int64_t begin, std::int64_t end) const {
    return {values + begin * features, end - begin, features};
  }
  std::int64_t bytes() const { return docs * features * static_cast<std::int64_t>(sizeof(float)); }
  std::int64_t lists() const { return list_ends.empty() ? 1 : std::ssize(list_ends); }
  std::int64_t list_begin(std::int64_t list) const { return list == 0 ? 0 : list_ends[list - 1]; }
  std::int64_t list_end(std::int64_t list) const { return list_ends.empty() ? docs : list_ends[list]; }
};

}  // namespace olrank
