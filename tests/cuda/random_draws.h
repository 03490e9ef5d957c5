#pragma once

#include <cstdint>
#include <vector>

#include "core/random/rng_stream.h"

namespace olrank {

/// For each place i of [0, count): what RngStream(key, i, 1, 2) draws first as bits, uniform, index below
/// `bound` and normal.
struct DrawnOnDevice {
  std::vector<std::uint32_t> bits;
  std::vector<double> uniforms;
  std::vector<std::uint32_t> indices;
  std::vector<double> normals;
};

DrawnOnDevice draw_on_device(PhiloxKey key, std::int64_t count, std::uint32_t bound);

}  // namespace olrank
