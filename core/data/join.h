#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/data/dataset.h"
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

}  // namespace olrank
