#pragma once

#include <functional>

namespace olrank {

/// The bytes that work moves at least, by what it does to them. An update counts twice in the sum, as it is
/// read and written, but fills the caches once.
struct MemoryTraffic {
  double read = 0.0;     // and left alone
  double updated = 0.0;  // read and written in place
  double written = 0.0;  // whatever was there before

  double bytes() const { return read + 2.0 * updated + written; }
  double footprint() const { return read + updated + written; }
};

/// From how many places what is only read is read side by side: which is the quicker depends on the caches.
enum class ReadStreams { kFew, kMany };

/// How memory is written: by memcpy and memset, which go past the caches where much is written, or by plain
/// stores, which leave in the caches what fits there.
enum class Stores { kLibrary, kPlain };

/// The same traffic and nothing else: a copy where something is read and something else written, then a sum
/// over what is read besides or a fill of what is written besides, and additions in place.
std::function<void()> bare_traffic(const MemoryTraffic& traffic, ReadStreams streams, Stores stores);

}  // namespace olrank
