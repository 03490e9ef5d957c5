#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/data/dataset.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// Columns of sparse rows are 32-bit integers.
inline constexpr std::int64_t kMostSparseColumns = std::numeric_limits<std::int32_t>::max();

/// As many columns are kept sparse by FeatureLayout::kAuto where few of their values are not zero.
inline constexpr std::int64_t kManyColumns = 10'000;
inline bool prefers_sparse(double docs, std::int64_t features, double nonzeros) {
  constexpr double kMostFilled = 1.0 / 16.0;
  return features >= kManyColumns && nonzeros < kMostFilled * docs * static_cast<double>(features);
}

/// Sparse rows that own their memory.
struct SparseRows {
  std::vector<std::int64_t> begins = {0};  // [docs + 1]
  std::vector<std::int32_t> columns;       // of every row ascending
  std::vector<float> values;

  void append(std::int32_t column, float value) {
    columns.push_back(column);
    values.push_back(value);
  }
  void end_row() { begins.push_back(std::ssize(values)); }
  void reserve(std::int64_t docs, std::int64_t nonzeros);
  /// Rows of sparse or dense documents; zeros of dense ones are left out.
  void append_rows(FeatureMatrix docs);
  void append_rows(const SparseRows& rows) { append_rows(rows.matrix(0)); }
  /// Keeps the first `docs` rows.
  void truncate(std::int64_t docs);

  FeatureMatrix matrix(std::int64_t features) const {
    return {values.data(), std::ssize(begins) - 1, features, {}, begins.data(), columns.data()};
  }
};

/// The documents as dense rows in `values`, for what needs few of them at a time with their zeros.
FeatureMatrix with_zeros(FeatureMatrix docs, std::vector<float>& values);

/// Returns the queries of `data` with other, sparse features. Shares no memory with `data`.
Dataset with_rows(const Dataset& data, SparseRows rows, std::int64_t features, ThreadPool& pool);

/// Returns the documents without their zeros.
Dataset as_sparse(const Dataset& data, ThreadPool& pool);

}  // namespace olrank
