#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/runtime/execution_context.h"
#include "core/settings/schema.h"
#include "recommend/reviews.h"

namespace olrank {

/// A key of a source "NAME?key=value&…", as it was written.
using SourceKeys = std::vector<std::pair<std::string, std::string>>;

/// A generator of reviews. Its schema describes the keys; equal keys give equal reviews on any number of
/// threads.
struct ReviewGenerator {
  std::string_view name;
  std::string_view about;  // one line
  const Schema& (*schema)() = nullptr;
  Reviews (*make)(ExecutionContext&, const SourceKeys&) = nullptr;
};
std::span<const ReviewGenerator> review_generators();

/// Whether a source of data names generated reviews: "synth:…".
bool is_synthetic_reviews(std::string_view source);
/// The reviews of "synth:NAME?key=value&…" or "NAME?key=value&…". Throws InvalidArgument for unknown names,
/// keys and values.
Reviews make_synthetic_reviews(ExecutionContext& context, std::string_view source);

/// Writes the keys into a generator's settings; throws InvalidArgument as for flags.
void assign_source_keys(const Schema& schema, void* settings, const SourceKeys& keys);

}  // namespace olrank
