#include "core/random/rng_stream.h"

#include <xxhash.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace olrank {

PhiloxKey make_key(const KeySource& source) {
  const std::array<std::uint64_t, 5> parts = {source.seed, static_cast<std::uint64_t>(source.purpose),
                                              source.fold, source.click_model, source.member};
  std::array<unsigned char, parts.size() * 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(parts[i / 8] >> (8 * (i % 8)));
  }
  const std::uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
  return PhiloxKey{{static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32)}};
}

std::uint64_t name_hash(const char* name, std::size_t size) {
  return XXH3_64bits(name, size);
}

std::int64_t RngStream::index_of(std::int64_t count) {
  assert(count > 0);
  if (count <= std::numeric_limits<std::uint32_t>::max()) return index(static_cast<std::uint32_t>(count));
  // At least half of the numbers of so many bits are below the count.
  const std::uint64_t mask = std::bit_ceil(static_cast<std::uint64_t>(count)) - 1;
  for (;;) {
    const std::uint64_t high = next_bits();
    const std::uint64_t bits = (high << 32 | next_bits()) & mask;
    if (bits < static_cast<std::uint64_t>(count)) return static_cast<std::int64_t>(bits);
  }
}

void RngStream::unit_vector(std::span<double> vector) {
  double norm_sq = 0.0;
  // All zero has probability about 2^-52n; redrawing keeps the promise even so.
  while (norm_sq <= 0.0) {
    norm_sq = 0.0;
    for (double& value : vector) {
      value = normal();
      norm_sq += value * value;
    }
    if (vector.empty()) return;
  }
  const double norm = std::sqrt(norm_sq);
  for (double& value : vector) value /= norm;
}

}  // namespace olrank
