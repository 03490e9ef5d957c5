#pragma once

#include <cstdint>

#include "cuda/runtime/launch.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// m [n × n] (lower triangle) = Σ parts [parts × n × n], part by part: a thread owns a number, so that the
/// order of the sum is fixed.
static __global__ void sum_lower_parts_kernel(std::int64_t n, std::int64_t parts, const double* numbers,
                                              double* m) {
  const std::int64_t column = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t row = blockIdx.y;
  if (column > row) return;
  const std::int64_t at = row * n + column;
  double sum = 0.0;
#pragma unroll 8
  for (std::int64_t part = 0; part < parts; ++part) sum += numbers[part * n * n + at];
  m[at] = sum;
}

static inline void sum_lower_parts(Stream stream, std::int64_t n, std::int64_t parts, const double* numbers,
                                   double* m) {
  const dim3 grid{static_cast<unsigned>((n + 127) / 128), static_cast<unsigned>(n)};
  launch(sum_lower_parts_kernel, grid, dim3{128}, 0, stream, n, parts, numbers, m);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
