#pragma once

#include <functional>

namespace olrank {

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

}  // namespace olrank
