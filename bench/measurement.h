#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace olrank {

inline double real(std::int64_t count) {
  return static_cast<double>(count);
}

/// The minimum number of bytes that work moves, by kind of access. Updated bytes count twice in the total,
/// as they are read and written, but occupy the caches once.
struct MemoryTraffic {
  double read = 0.0;     // only
  double updated = 0.0;  // read and written in place
  double written = 0.0;  // only

  double bytes() const { return read + 2.0 * updated + written; }
  double footprint() const { return read + updated + written; }
};

/// The number of concurrent read streams; which is faster depends on the caches. kNarrow: few, and all
/// loops in vectors of 32 bytes.
enum class ReadStreams { kFew, kMany, kNarrow };

/// How memory is written: by memcpy and memset, which bypass the caches for large sizes, or by plain
/// stores, which fill them.
enum class Stores { kLibrary, kPlain };

/// This makes equal traffic without computation: a copy of what is both read and written elsewhere, a sum
/// over the remaining reads or a fill of the remaining writes, and additions in place.
std::function<void()> bare_traffic(const MemoryTraffic& traffic, ReadStreams streams, Stores stores);

/// The ceiling that a rate is compared with; it is measured next to the work itself.
enum class CeilingKind {
  kNone,
  kGemmFloat,
  kGemmDouble,
  kMemory,
  kOwn,  // the case brings it; work may also be faster
};

/// A benchmark case: work that is timed in isolation.
struct BenchCase {
  std::string name;  // "pair_width/pair_width_sq": the operation's stem and entry
  std::vector<std::pair<std::string, std::int64_t>> parameters;
  double operations = 0.0;  // multiplications and additions
  MemoryTraffic traffic;
  CeilingKind ceiling = CeilingKind::kNone;
  /// Sets up the data and returns the work, which may be called any number of times.
  std::function<std::function<void()>()> prepare;
  /// CeilingKind::kOwn needs these: what the ceiling is, and one pass over the case's bytes.
  std::string own_name = {};
  std::function<void()> own_body = {};
};

/// CPU seconds per call over the repeats.
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
  bool is_limit = true;        // nothing can be faster than the ceiling
  double share = 0.0;          // of the ceiling, the median over repeats; NaN without one
  double least_share = 0.0;    // of a repeat

  /// Name, device and parameters; measurements with the same identity are comparable.
  std::string identity() const;
};

/// Throws InvalidArgument, before anything is allocated, if the data of the case and of its ceiling do not
/// fit into memory.
void check_memory(const BenchCase& work);

/// Times the case. Each repeat is followed by its ceiling, so that load on the machine affects both alike.
Measurement measure(const BenchCase& work);

/// Throws Error if every repeat has a share above 1.05, which means that bytes or operations are
/// miscounted.
void check_share(const Measurement& measurement);

/// The CPU time of this process, over all threads.
double processor_seconds();

}  // namespace olrank
