#pragma once

#include <cstdint>
#include <span>

namespace olrank {

class DeviceDocs;

/// The features of a document that are not zero, by ascending column.
struct SparseRow {
  std::span<const std::int32_t> columns;
  std::span<const float> values;
};

/// Documents × features in row-major order; a view that owns nothing. Dense rows have all their values;
/// sparse ones their non-zeros, those of all rows one after the other.
struct FeatureMatrix {
  const float* values = nullptr;
  std::int64_t docs = 0;
  std::int64_t features = 0;
  /// Where each list of documents that belong together ends, in ascending order; empty: all are one list.
  /// Only models whose scores depend on the other documents of a list look at it.
  std::span<const std::int64_t> list_ends = {};
  const std::int64_t* row_begins = nullptr;  // [docs + 1] into values and columns, of sparse rows
  const std::int32_t* columns = nullptr;     // of values, from 0, of sparse rows
  /// The documents where a device has them; the host then has those alone that were copied to it.
  const DeviceDocs* on_device = nullptr;

  bool is_sparse() const { return row_begins != nullptr; }
  SparseRow sparse_doc(std::int64_t index) const {
    const auto count = static_cast<std::size_t>(row_begins[index + 1] - row_begins[index]);
    return {{columns + row_begins[index], count}, {values + row_begins[index], count}};
  }
  /// The rows must be dense.
  std::span<const float> doc(std::int64_t index) const {
    return {values + index * features, static_cast<std::size_t>(features)};
  }
  /// Documents `begin` to `end` as one list.
  FeatureMatrix part(std::int64_t begin, std::int64_t end) const {
    if (is_sparse()) return {values, end - begin, features, {}, row_begins + begin, columns};
    return {values + begin * features, end - begin, features};
  }
  std::int64_t bytes() const {
    if (!is_sparse()) return docs * features * static_cast<std::int64_t>(sizeof(float));
    constexpr std::int64_t kEntry = sizeof(float) + sizeof(std::int32_t);
    return (row_begins[docs] - row_begins[0]) * kEntry +
           docs * static_cast<std::int64_t>(sizeof(std::int64_t));
  }
  std::int64_t lists() const { return list_ends.empty() ? 1 : std::ssize(list_ends); }
  std::int64_t list_begin(std::int64_t list) const { return list == 0 ? 0 : list_ends[list - 1]; }
  std::int64_t list_end(std::int64_t list) const { return list_ends.empty() ? docs : list_ends[list]; }
};

}  // namespace olrank
