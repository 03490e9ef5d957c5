#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace olrank {

/// The evaluated part of a trial, and what its ranker makes of it. Spans are valid during the call.
struct ScoredPart {
  std::int64_t round = 0;                 // rounds played
  std::span<const std::int64_t> offsets;  // [queries + 1], documents before each query
  std::span<const std::uint8_t> grades;   // [docs]
  std::span<const float> scores;          // [docs]
};

/// A metric of a program that uses olrank as a library: one finite number, the larger the better, which
/// follows from the argument alone. Several threads call it at once.
using ExternalMetric = std::function<double(const ScoredPart&)>;

/// Makes a metric known, so that protocol.metrics = ["NAME"] measures it in each evaluation. Trials keep
/// the description, one line, and refuse to continue with a metric of another one. Throws InvalidArgument
/// for a name that is taken or that no file can have. Any thread may call this.
void register_metric(const std::string& name, const std::string& description, ExternalMetric metric);
/// Does nothing for an unknown name.
void unregister_metric(const std::string& name);

}  // namespace olrank
