#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/memory_traffic.h"

namespace olrank {

/// What a rate is held against; each is measured beside the work itself.
enum class CeilingKind { kNone, kGemmFloat, kGemmDouble, kMemory };

/// Work that is timed by itself.
struct BenchCase {
  std::string name;  // "pair_width/pair_width_sq": the operation's stem and entry
  std::vector<std::pair<std::string, std::int64_t>> parameters;
  double operations = 0.0;  // multiplications and additions
  MemoryTraffic traffic;
  CeilingKind ceiling = CeilingKind::kNone;
  /// Sets everything up and returns the work, which may be called any number of times.
  std::function<std::function<void()>()> prepare;
};

/// Seconds of the processor, over repeats.
struct Spread {
  double median = 0.0;
  double min = 0.0;
  double max = 0.0;
  std::int64_t repeats = 0;
};

Spread spread_of(std::vector<double> seconds);

struct Measurement {
  std::string name;
  std::string device = "cpu";
  std::vector<std::pair<std::string, std::int64_t>> parameters;
  Spread seconds;
  double operations = 0.0;
  double bytes = 0.0;
  std::string ceiling;         // its name; empty for none
  double ceiling_value = 0.0;  // operations or bytes a second
  double share = 0.0;          // of the ceiling, the median over repeats; NaN without one

  /// Name, device and parameters: what makes measurements comparable.
  std::string identity() const;
};

/// Throws InvalidArgument, before anything is allocated, where the case's data and the bare traffic beside
/// it cannot fit into this machine's memory.
void check_memory(const BenchCase& work);

/// Times the case, each repeat beside its ceiling, so that a share is a ratio of neighbours and a busy
/// machine touches both alike.
Measurement measure(const BenchCase& work);

/// Throws Error for a share above 1.05: then bytes or operations are miscounted.
void check_share(const Measurement& measurement);

/// This process's processor seconds, of all threads.
double processor_seconds();

}  // namespace olrank
