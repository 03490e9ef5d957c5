#pragma once

#include <bit>
#include <cstdint>

#include "core/runtime/vector_clones.h"

namespace olrank {

inline constexpr float kLargestHalf = 65'504.0F;

/// The bits of the half-precision number (IEEE 754 binary16) next to a float within ±kLargestHalf, ties to
/// even.
OLRANK_ALWAYS_INLINE std::uint16_t half_of(float value) {
  constexpr std::uint32_t kSmallestNormal = 113U << 23;  // 2^-14
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t size = bits & 0x7FFF'FFFFU;
  // The addition itself rounds to a multiple of 2^-24, the smallest half.
  const auto small =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
  const std::uint32_t normal = (size - (112U << 23) + 0xFFFU + ((size >> 13) & 1U)) >> 13;
  return static_cast<std::uint16_t>((size < kSmallestNormal ? small : normal) | ((bits >> 16) & 0x8000U));
}

/// The value of a finite half-precision number, which every float has.
OLRANK_ALWAYS_INLINE float float_of_half(std::uint16_t half) {
  constexpr float kSmallestNormal = 0x1p-14F;
  const std::uint32_t size = std::uint32_t{half} & 0x7FFFU;
  const std::uint32_t shifted = (size << 13) + (112U << 23);
  const float normal = std::bit_cast<float>(shifted);
  const float small = std::bit_cast<float>(shifted + (1U << 23)) - kSmallestNormal;
  const auto bits = std::bit_cast<std::uint32_t>(size < 0x400U ? small : normal);
  return std::bit_cast<float>(bits | ((std::uint32_t{half} & 0x8000U) << 16));
}

}  // namespace olrank
