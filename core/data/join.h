#pragma once

#include <cstdint>
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

}  // namespace olrank
