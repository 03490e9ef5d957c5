#pragma once

#include <tuple>

#include "cuda/runtime/stream.h"
#include "cuda/runtime/work.h"
#include "tests/cuda/emulation/device_language.h"

// The twin of the kernels' launch helper: the same words, on the CPU.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, Stream,
            const Arguments&... arguments) {
  const std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);
  do_or_record(
      [=] { emulation::run_grid(grid, block, shared_bytes, [&] { std::apply(kernel, values); }); });
}

template <class T>
T* dynamic_shared() {
  return static_cast<T*>(emulation::shared_memory());
}

inline void copy_async(float* shared, const float* global) {
  emulation::copy_later(shared, global, sizeof(float));
}
inline void commit_copies() {
  emulation::end_copy_group();
}
template <int pending>
void wait_for_copies() {
  emulation::wait_for_copy_groups(pending);
}

inline void multiply_add_8x8x4(double a, double b, double& c0, double& c1) {
  emulation::LaneWords own;
  std::memcpy(&own.word[0], &a, sizeof a);
  std::memcpy(&own.word[1], &b, sizeof b);
  const auto& shown = emulation::exchange(0xFFFFFFFFU, own);
  const int row = emulation::lane() / 4;
  const int column = emulation::lane() % 4 * 2;
  for (int k = 0; k < 4; ++k) {
    const double left = std::bit_cast<double>(shown[static_cast<std::size_t>(4 * row + k)].word[0]);
    c0 += left * std::bit_cast<double>(shown[static_cast<std::size_t>(4 * column + k)].word[1]);
    c1 += left * std::bit_cast<double>(shown[static_cast<std::size_t>(4 * (column + 1) + k)].word[1]);
  }
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
