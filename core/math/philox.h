#pragma once

#include <cstdint>

#include "core/math/portable_exp.h"

namespace olrank {

/// Philox 4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
/// A bijection of the 128-bit counter for each 64-bit key: any draw is computed from its counter alone, in
/// any order, on any thread, on CPU and GPU.
struct PhiloxCounter {
  std::uint32_t word[4];
};

struct PhiloxKey {
  std::uint32_t word[2];
};

OLRANK_HOST_DEVICE inline PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key) {
  constexpr std::uint32_t kMultiplier0 = 0xD2511F53U;
  constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57U;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9U;  // golden ratio
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85U;  // √3 − 1
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter.word[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter.word[2];
    const auto high0 = static_cast<std::uint32_t>(product0 >> 32);
    const auto high1 = static_cast<std::uint32_t>(product1 >> 32);
    counter = PhiloxCounter{{high1 ^ counter.word[1] ^ key.word[0], static_cast<std::uint32_t>(product1),
                             high0 ^ counter.word[3] ^ key.word[1], static_cast<std::uint32_t>(product0)}};
    key.word[0] += kWeyl0;
    key.word[1] += kWeyl1;
  }
  return counter;
}

}  // namespace olrank
