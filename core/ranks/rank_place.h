#pragma once

#include <functional>
#include <optional>
#include <string>

namespace olrank {

/// Where this process stands among the ranks of a run, by the variables that torchrun sets.
struct RankPlace {
  int rank = 0;              // RANK
  int ranks = 1;             // WORLD_SIZE
  int local_rank = 0;        // LOCAL_RANK: on this machine
  int local_ranks = 1;       // LOCAL_WORLD_SIZE; without it all of them, or one for each machine
  std::string address;       // MASTER_ADDR
  int port = 0;              // MASTER_PORT
  bool hosts_store = false;  // rank 0 listens there, unless torchrun itself does
  int attempt = 0;           // TORCHELASTIC_RESTART_COUNT
};

/// The value of an environment variable; null without one.
using Environment = std::function<const char*(const char* name)>;

/// Nothing for a run of one process: WORLD_SIZE is not set, or 1. Throws InvalidArgument for variables that
/// are missing or contradict each other.
std::optional<RankPlace> rank_place(const Environment& environment);

}  // namespace olrank
