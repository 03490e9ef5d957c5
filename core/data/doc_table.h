#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "core/io/mapped_memory.h"
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

/// Fills zeroed dense rows with the values of sparse documents.
void write_rows(FeatureMatrix docs, float* dense);

/// The documents as dense rows in `values`, for what needs few of them at a time with their zeros.
FeatureMatrix with_zeros(FeatureMatrix docs, std::vector<float>& values);

/// Returns the documents without their zeros.
Dataset as_sparse(const Dataset& data, ThreadPool& pool);

/// A run of consecutive documents of one query in a file. The query is an index into a list of
/// IDs: if the query changed with every document, IDs here would take more memory than the
/// matrix.
struct QueryRun {
  std::uint32_t query = 0;
  std::uint32_t docs = 0;
};

void append_run(std::vector<QueryRun>& runs, QueryRun run);

/// Numbers names in order of first appearance.
class QueryNumbers {
 public:
  std::uint32_t number_of(std::string_view name);
  std::vector<std::string> take_names() { return std::move(names_); }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> names_;
};

struct OwnedFeatures {
  std::int64_t features = 0;
  MappedMemory values;                            // float [docs × features]
  std::optional<SparseRows> rows = std::nullopt;  // in place of values
};

/// Documents in file order, before they are grouped by query.
struct DocTable : OwnedFeatures {
  std::vector<std::uint8_t> grades;  // [docs]
  std::vector<std::string> qids;     // in order of first appearance
  std::vector<QueryRun> query_runs;  // a query may have several runs
  std::vector<float> weights;        // [queries], or empty
  std::string name_text;
  std::vector<std::uint64_t> name_ends;  // [docs], or empty when no document has a name

  std::int64_t docs() const { return std::ssize(grades); }
};

/// Groups documents by query in place (a dense matrix never exists twice): queries in order of first
/// appearance, documents in file order.
Dataset gathered(DocTable table, ThreadPool& pool);

/// Returns the queries, grades and names of `data` with other features. Shares no memory with `data`.
Dataset with_features(const Dataset& data, OwnedFeatures features, ThreadPool& pool);

/// The fingerprint of the contents: equal for equal features, grades, names, weights and order, independent
/// of the source. Blocks of values are hashed in parallel; `look_at` gets each block while it is in the CPU
/// cache.
Fingerprint content_fingerprint(const Dataset::Contents& contents, ThreadPool& pool,
                                const std::function<void(std::span<const float>)>& look_at = {});

}  // namespace olrank
