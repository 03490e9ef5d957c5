#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "core/data/dataset.h"
#include "core/runtime/execution_context.h"

namespace olrank {

struct SyntheticParts {
  Dataset train;
  Dataset vali;
  Dataset test;
};

/// Generated data: "synth:NAME?key=value&…", described in docs/SYNTHETIC.md. The same source gives the same
/// bits on any machine and number of threads, and the first queries of a larger set are those of a smaller
/// one. Throws InvalidArgument for a name, key or value that cannot be used, or without a
/// store for a set that takes more than `max_bytes`, half of the memory unless said.
SyntheticParts make_synthetic(std::string_view source, ExecutionContext& context,
                              std::optional<std::int64_t> max_bytes = std::nullopt,
                              const std::shared_ptr<FeatureStore>& store = nullptr);

}  // namespace olrank
