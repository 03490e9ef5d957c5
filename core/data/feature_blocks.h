#pragma once

#include <cstdint>

#include "core/data/dataset.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/function_ref.h"

namespace olrank {

/// Calls with all features of the data, the queries as lists: at once, or, where they are compact, decoded
/// block by block of whole queries. `first_doc` is the block's first document.
void for_feature_blocks(const Dataset& data, ExecutionContext& context,
                        FunctionRef<void(FeatureMatrix docs, std::int64_t first_doc)> call);

}  // namespace olrank
