#pragma once

#include "cuda/runtime/stream.h"
#include "cuda/runtime/work.h"
#include "tests/cuda/emulation/device_language.h"

// The twin of the kernels' launch helper: the same interface, on the CPU.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

template <class Argument>
inline constexpr bool reaches_host = false;

/// Checks the arguments of a kernel one by one.
template <class Arguments>
void check_arguments(const Arguments& arguments) {
  emulation::check_argument(arguments.first);
  if constexpr (requires { arguments.rest; }) check_arguments(arguments.rest);
}

template <class Argument>
void start_grid(void (*kernel)(Argument), dim3 grid, dim3 block, std::size_t shared_bytes, Stream stream,
                const Argument& argument, bool together) {
  if constexpr (requires { argument.of(0); }) {  // of several grids
    for (unsigned i = 0; i < Argument::kMostGrids && argument.ends[i] != 0; ++i) {
      if constexpr (!reaches_host<Argument>) check_arguments(argument.of(i));
    }
  } else if constexpr (!reaches_host<Argument>) {
    check_arguments(argument);
  }
  emulation::start(stream, [=] {
    (together ? emulation::run_grid_together : emulation::run_grid)(grid, block, shared_bytes,
                                                                    [&] { kernel(argument); });
  });
}

inline std::size_t most_shared_bytes() {
  return emulation::machine.card.shared_bytes;
}

/// As many as the card runs, but not more than are emulated at once. Cooperative kernels may use all the
/// registers of a thread that there are.
template <class Argument>
std::int64_t blocks_at_once(void (*)(Argument), dim3 block, std::size_t shared_bytes) {
  constexpr std::size_t kMostRegisters = 255;
  return std::min(
      emulation::machine.card.blocks_at_once(kMostRegisters, block.x * block.y * block.z, shared_bytes),
      std::int64_t{emulation::machine.blocks_at_once});
}

inline void grid_barrier(const unsigned* arrived, unsigned blocks) {
  emulation::grid_barrier(arrived, blocks);
}

template <class T>
T* dynamic_shared() {
  return static_cast<T*>(emulation::shared_memory());
}

template <int count>
void copy_async(float* shared, const float* global) {
  emulation::copy_later(shared, global, count * sizeof(float));
}
inline void commit_copies() {
  emulation::end_copy_group();
}
template <int pending>
void wait_for_copies() {
  emulation::wait_for_copy_groups(pending);
}

inline void multiply_add_16x8x16(const double (&a)[8], const double (&b)[4], double (&c)[4]) {
  const auto row = static_cast<std::size_t>(emulation::lane() / 4);
  const auto column = static_cast<std::size_t>(emulation::lane() % 4 * 2);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& shown = emulation::exchange(
        0xFFFFFFFFU, {{std::bit_cast<std::uint64_t>(a[2 * i]), std::bit_cast<std::uint64_t>(a[2 * i + 1]),
                       std::bit_cast<std::uint64_t>(b[i])}});
    const auto number = [&](std::size_t lane, std::size_t word) {
      return std::bit_cast<double>(shown[lane].word[word]);
    };
#if defined(OLRANK_OTHER_TENSOR_SUMS)
    double sums[4] = {};
#else
    auto& sums = c;
#endif
    for (std::size_t t = 0; t < 4; ++t) {
      for (std::size_t half = 0; half < 2; ++half) {
        const double left = number(4 * row + t, half);
        sums[2 * half] += left * number(4 * column + t, 2);
        sums[2 * half + 1] += left * number(4 * (column + 1) + t, 2);
      }
    }
#if defined(OLRANK_OTHER_TENSOR_SUMS)
    for (std::size_t e = 0; e < 4; ++e) c[e] += sums[e];
#endif
  }
}

/// A tensor core adds exact products to a number and cuts the sum off.
inline float cut_off(double sum) {
  const auto number = static_cast<float>(sum);
#if !defined(OLRANK_OTHER_TENSOR_SUMS)
  if (std::abs(double{number}) > std::abs(sum)) return std::nextafter(number, 0.0F);
#endif
  return number;
}

inline void multiply_add_16x8x8(const float (&a)[2][4], const float (&b)[2][2], float (&c)[4]) {
  emulation::LaneWords own;
  static_assert(sizeof(own) == sizeof(a) + sizeof(b));
  std::memcpy(own.word.data(), a, sizeof(a));
  std::memcpy(own.word.data() + sizeof(a) / sizeof(own.word[0]), b, sizeof(b));
  const auto& shown = emulation::exchange(0xFFFFFFFFU, own);
  const auto row = static_cast<std::size_t>(emulation::lane() / 4);
  const auto column = static_cast<std::size_t>(emulation::lane() % 4 * 2);
  float numbers[emulation::kWarp][12];
  std::memcpy(numbers, shown.data(), sizeof(numbers));
  for (std::size_t e = 0; e < 4; ++e) {
    float part = 0.0F;
    for (const auto& [left, right] : {std::pair{1, 0}, {0, 1}, {0, 0}}) {
      double sum{part};
      for (std::size_t k = 0; k < 8; ++k) {
        const double of_a{numbers[4 * row + k % 4][4 * left + e / 2 + k / 4 * 2]};
        const double of_b{numbers[4 * (column + e % 2) + k % 4][8 + 2 * right + k / 4]};
        sum += of_a * of_b;
      }
      part = cut_off(sum);
    }
    c[e] += part;
  }
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
