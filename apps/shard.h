#pragma once

#include <functional>
#include <string>

#include "sim/experiment.h"

namespace olrank {

/// Parses "I/N", I from 0. Throws InvalidArgument for anything else.
Shard parse_shard(const std::string& text);

/// The shard from a scheduler's environment variables: SLURM_ARRAY_TASK_ID with _MIN, _COUNT and optionally
/// _STEP, JOB_COMPLETION_INDEX with OLRANK_SHARDS, or RANK with WORLD_SIZE, in this order; without them,
/// the whole experiment. `variable` returns null for a variable that is not set.
Shard shard_of_environment(const std::function<const char*(const char*)>& variable);

}  // namespace olrank
