#include "core/data/sparse_rows.h"

#include <fmt/format.h>

#include <utility>

#include "core/data/doc_table.h"
#include "core/error.h"

namespace olrank {

void SparseRows::reserve(std::int64_t docs, std::int64_t nonzeros) {
  begins.reserve(docs + 1);
  columns.reserve(nonzeros);
  values.reserve(nonzeros);
}

void SparseRows::append_rows(FeatureMatrix docs) {
  for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
    if (docs.is_sparse()) {
      const SparseRow row = docs.sparse_doc(doc);
      columns.insert(columns.end(), row.columns.begin(), row.columns.end());
      values.insert(values.end(), row.values.begin(), row.values.end());
    } else {
      const std::span<const float> row = docs.doc(doc);
      for (std::size_t column = 0; column < row.size(); ++column) {
        if (row[column] != 0.0F) append(static_cast<std::int32_t>(column), row[column]);
      }
    }
    end_row();
  }
}

void SparseRows::truncate(std::int64_t docs) {
  begins.resize(docs + 1);
  columns.resize(begins.back());
  values.resize(begins.back());
}

FeatureMatrix with_zeros(FeatureMatrix docs, std::vector<float>& values) {
  if (!docs.is_sparse()) return docs;
  values.assign(docs.docs * docs.features, 0.0F);
  for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
    const SparseRow row = docs.sparse_doc(doc);
    for (std::size_t i = 0; i < row.columns.size(); ++i)
      values[doc * docs.features + row.columns[i]] = row.values[i];
  }
  return {values.data(), docs.docs, docs.features};
}

Dataset as_sparse(const Dataset& data, ThreadPool& pool) {
  if (data.is_sparse()) return data;
  if (data.features() > kMostSparseColumns) {
    throw InvalidArgument(fmt::format("Sparse data may have {} columns at most, not {}.",
                                      kMostSparseColumns, data.features()));
  }
  SparseRows rows;
  rows.append_rows(data.all_rows());
  return with_rows(data, std::move(rows), data.features(), pool);
}

}  // namespace olrank
