#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "core/data/data_settings.h"
#include "core/data/dataset.h"
#include "core/data/join.h"
#include "core/runtime/execution_context.h"

namespace olrank {

struct LetorOptions {
  /// Limit for the dense matrix in bytes; checked before it is allocated.
  std::int64_t max_bytes = std::numeric_limits<std::int64_t>::max();
  /// Takes a larger matrix, too, if there is enough text for it.
  std::shared_ptr<FeatureStore> store = nullptr;
  /// Bytes of text that a thread parses at a time. Does not affect results.
  std::size_t block_bytes = std::size_t{512} << 10;
  /// Refuse data that is_too_wide().
  bool refuse_wide = false;
  FeatureLayout layout = FeatureLayout::kAuto;
  /// Read FILE.weight, too.
  bool weights = true;

  /// Limit for the matrix of so much text.
  double most_bytes_of(double text_bytes) const;
};

/// The size of a file's text that is known without reading it: compressed text counts as ten times its
/// size, a pipe as nothing.
double text_bytes_of(const std::string& path);

/// Whether features take much memory and much more than their text: hardly anybody wants that.
bool is_too_wide(double bytes, double text_bytes);

/// Bytes of sparse rows with so many values, and of a linear model that learns from them: its parameters,
/// their gradients and moments.
double sparse_bytes(double docs, std::int64_t features, double values);

/// NULL values, which are read as 0.
struct MissingValues {
  std::int64_t count = 0;
  std::int64_t line = 0;  // of the first
  std::int64_t column = 0;
};
/// Logs one warning for the whole file, if any value is missing.
void warn_of_missing(const std::string& name, const MissingValues& missing);

/// Reads a file of LETOR lines, plain, gzip or zstd by its first bytes; "-" is standard input. Plain
/// regular files are mapped into memory. The features are as many as the largest feature number, values not
/// given 0. FILE.weight next to a regular FILE has the weights of its documents. The result is the same for
/// any number of threads. Throws DataError with line and column for the first line that breaks the format.
/// Missing values are warned of, and counted into `missing`.
Dataset read_letor(const std::string& path, const LetorOptions& options, ThreadPool& pool,
                   MissingValues* missing = nullptr);

/// Reads bytes in memory as read_letor() reads a file, compressed or not; messages use `name` as the file.
/// `weights` is the file of the documents' weights, if there is one.
Dataset read_letor_bytes(std::string_view bytes, const std::string& name, const LetorOptions& options,
                         ThreadPool& pool, MissingValues* missing = nullptr,
                         const std::string& weights = {});

}  // namespace olrank
