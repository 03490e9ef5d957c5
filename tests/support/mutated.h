#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/random/rng_stream.h"

namespace olrank {

/// One to four small damages: bytes changed, dropped, doubled, inserted, or a piece of another input put
/// in. `telling` are the bytes that mean something in the format.
inline std::string mutated(std::string bytes, const std::vector<std::string>& others,
                           std::string_view telling, RngStream& rng) {
  const auto below = [&](std::size_t bound) {
    return std::size_t{rng.index(static_cast<std::uint32_t>(bound))};
  };
  for (std::uint32_t left = 1 + rng.index(4); left > 0; --left) {
    const std::size_t at = below(bytes.size() + 1);
    switch (rng.index(5)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(rng.next_bits());
        break;
      case 1:
        bytes.erase(at, rng.index(8));
        break;
      case 2:
        bytes.insert(at, 1, telling[below(telling.size())]);
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, rng.index(30)));
        break;
      default: {
        const std::string& other = others[below(others.size())];
        const std::size_t from = below(other.size() + 1);
        bytes.insert(at, other.substr(from, rng.index(60)));
      }
    }
  }
  return bytes;
}

/// The bytes with one bit turned over.
inline std::string with_flipped_bit(std::string bytes, RngStream& rng) {
  const std::uint32_t bit = rng.index(static_cast<std::uint32_t>(8 * bytes.size()));
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
  return bytes;
}

}  // namespace olrank
