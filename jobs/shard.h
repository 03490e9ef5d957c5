#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace olrank {

/// One of several parts of the jobs of a run.
struct Shard {
  std::int64_t index = 0;
  std::int64_t count = 1;

  bool is_part() const { return count > 1; }
  /// Whether job `number` of the whole run belongs to it.
  bool has(std::size_t number) const { return static_cast<std::int64_t>(number) % count == index; }
};

/// Parses "I/N", I from 0. Throws InvalidArgument for anything else.
Shard parse_shard(const std::string& text);

/// The shard from a scheduler's environment variables: SLURM_ARRAY_TASK_ID with _MIN, _COUNT and optionally
/// _STEP, JOB_COMPLETION_INDEX with OLRANK_SHARDS, or RANK with WORLD_SIZE, in this order; without them,
/// the whole experiment. `variable` returns null for a variable that is not set.
Shard shard_of_environment(const std::function<const char*(const char*)>& variable);

}  // namespace olrank
