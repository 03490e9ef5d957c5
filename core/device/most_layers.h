#pragma once

#include <cstdint>

namespace olrank {

/// The most layers of a gradient on a device: their table then still fits into the 4 KB of arguments that
/// every kernel may have.
inline constexpr std::int64_t kMostDeviceLayers = 32;

}  // namespace olrank
