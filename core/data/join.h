#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/data/dataset.h"
#include "core/io/mapped_memory.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// Concatenates parts into one, sparse where one is, as wide as the widest: the same as reading their
/// concatenated texts, with documents grouped by query. Each part is freed as soon as its documents have
/// been copied. Throws InvalidArgument for a query whose parts differ in its weight.
Dataset join_parts(std::vector<Dataset> parts, ExecutionContext& context);

/// Returns the documents padded with zeros to more features. Sparse ones share the memory of `data`.
Dataset widened(const Dataset& data, std::int64_t features, ExecutionContext& context);

/// The queries with the given numbers, in that order.
Dataset select_queries(const Dataset& data, const std::vector<std::int64_t>& queries,
                       ExecutionContext& context);

/// Finds documents of a query by name. A query's names are sorted on first use, and cost four bytes each.
class DocFinder {
 public:
  static constexpr std::int32_t kUnknown = -1;
  static constexpr std::int32_t kAmbiguous = -2;

  explicit DocFinder(const Dataset& data) : data_(data) {}

  std::int32_t by_name(std::int64_t query, std::string_view name);
  /// Uses its label in run files: the name, or without one the index within the query, from 0.
  std::int32_t by_label(std::int64_t query, std::string_view label);

 private:
  const Dataset& data_;
  std::unordered_map<std::int64_t, std::vector<std::int32_t>> sorted_;
};

/// Gives memory for features: the process's own up to a limit, and beyond it pages of files without a name,
/// which the kernel writes out and reads back as memory gets scarce. What the memory holds is the same in
/// both places. A data set carries its store, so that what is made of it (normalised, joined or widened
/// features) counts towards the same limit.
class FeatureStore {
 public:
  FeatureStore(std::int64_t max_bytes, std::filesystem::path folder)
      : max_bytes_(max_bytes), left_(max_bytes), folder_(std::move(folder)) {}

  std::int64_t max_bytes() const { return max_bytes_; }
  /// Bytes of the process's own memory that the limit still allows. They do not come back.
  std::int64_t left() const { return left_; }
  /// Zeroed memory. Throws IoError if it must be in a file and the folder's disk has no room for it. The
  /// first file of a process is told in the log.
  MappedMemory take(std::size_t bytes);
  /// `what` is what errors say the bytes are.
  MappedMemory take_in_file(std::size_t bytes, std::string_view what = "Features") const;
  const std::filesystem::path& folder() const { return folder_; }

  /// Bytes of features that so much text (or a binary file) may become, in memory or in files: a few lines
  /// must not fill a disk.
  static double most_bytes_of(double text_bytes) { return 10.0 * text_bytes; }

 private:
  std::int64_t max_bytes_;
  std::atomic<std::int64_t> left_;
  std::filesystem::path folder_;
};

/// Memory for features, from the store, or the process's own without one.
MappedMemory feature_memory(FeatureStore* store, std::int64_t docs, std::int64_t features);

/// The data set, which carries the store from now on. Throws DataError with `name` if a query alone exceeds
/// the store's limit.
Dataset stored_by(std::shared_ptr<FeatureStore> store, Dataset data, const std::string& name);

}  // namespace olrank
