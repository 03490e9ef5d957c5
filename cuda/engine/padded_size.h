#pragma once

#include <cstdint>

#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The first size of the series 32, 64, … that is at least `needed`; steps are an eighth, rounded up to 32.
inline std::int64_t padded_size(std::int64_t needed) {
  constexpr std::int64_t kStep = 32;
  std::int64_t size = kStep;
  while (size < needed) size += (size / 8 + kStep - 1) / kStep * kStep;
  return size;
}

/// Of what is padded with indices: −1, as bytes.
inline constexpr int kPaddingByte = 0xFF;

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
