#pragma once

#include <cstdint>

namespace olrank {

/// Device memory that grows in place does so by this many bytes at least. Planning and the device agree on
/// it.
inline constexpr std::int64_t kMemoryChunk = std::int64_t{8} << 20;

}  // namespace olrank
