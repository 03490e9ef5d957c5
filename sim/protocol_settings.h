#pragma once

#include <cstdint>
#include <vector>

#include "core/metrics/empty_queries.h"
#include "core/protocol.h"
#include "core/settings/schema.h"

namespace olrank {

/// How the rounds of a trial are played and judged.
struct ProtocolSettings {
  ProtocolName name = ProtocolName::kPaper;
  std::int64_t rounds = 2000;
  std::int64_t cutoff = 10;
  std::int64_t eval_every = 100;
  std::vector<std::int64_t> seeds = {1, 2, 3};
  EmptyQueries empty_queries = EmptyQueries::kZero;
  double discount = 0.9995;

  static const Schema& schema();
  static ProtocolSettings defaults(ProtocolName name);
};

}  // namespace olrank
