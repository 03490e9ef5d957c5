#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "core/data/dataset.h"
#include "core/runtime/thread_pool.h"

namespace olrank {

struct LetorOptions {
  /// Limit for the dense matrix in bytes; checked before it is allocated.
  std::int64_t max_bytes = std::numeric_limits<std::int64_t>::max();
  /// Bytes of text that a thread parses at a time. Does not affect results.
  std::size_t block_bytes = std::size_t{512} << 10;
  /// Refuse data that is_sparse().
  bool refuse_sparse = false;
};

/// Whether a dense matrix is large and much larger than its text: hardly anybody wants that.
bool is_sparse(double dense_bytes, double text_bytes);

/// NULL values, which are read as 0.
struct MissingValues {
  std::int64_t count = 0;
  std::int64_t line = 0;  // of the first
  std::int64_t column = 0;
};
/// Logs one warning for the whole file, if any value is missing.
void warn_of_missing(const std::string& name, const MissingValues& missing);

/// Reads a file of LETOR lines, plain, gzip or zstd by its first bytes; "-" is standard input. Plain
/// regular files are mapped into memory. The matrix as wide as the largest feature number, values not given
/// 0. The result is the same for any number of threads. Throws DataError with line and column for the first
/// line that breaks the format.
/// Missing values are warned of, and counted into `missing`.
Dataset read_letor(const std::string& path, const LetorOptions& options, ThreadPool& pool,
                   MissingValues* missing = nullptr);

/// The same for bytes in memory, compressed or not; messages use `name` as the file.
Dataset read_letor_bytes(std::string_view bytes, const std::string& name, const LetorOptions& options,
                         ThreadPool& pool, MissingValues* missing = nullptr);

}  // namespace olrank
