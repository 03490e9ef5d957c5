#pragma once

#include <cstdint>
#include <vector>

#include "core/data/dataset.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// The parts one after the other as one, as wide as the widest: what reading their texts joined would give,
/// queries that come back gathered. Each part is let go once its documents have moved.
Dataset join_parts(std::vector<Dataset> parts, ExecutionContext& context);

/// The same documents with zeros for further features.
Dataset widened(const Dataset& data, std::int64_t features, ExecutionContext& context);

/// The queries with the given numbers, in that order.
Dataset select_queries(const Dataset& data, const std::vector<std::int64_t>& queries,
                       ExecutionContext& context);

}  // namespace olrank
