#include "cuda/ops/query_inputs.h"

#include <cmath>

#include "core/math/column_range.h"
#include "cuda/runtime/grid_size.h"
#include "cuda/runtime/launch.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kColumns = 32;  // of a block: a warp reads them of one row
constexpr unsigned kRows = 16;     // of a block at once
constexpr unsigned kThreads = kColumns * kRows;

// A block owns kColumns columns, and a thread every kRows-th row of one. Least and largest values depend on
// no order: column_range() takes both zeros for one.
__global__ void __launch_bounds__(kThreads)
    query_inputs_kernel(const GivenDocs given, bool scale, float limit, float* inputs,
                        unsigned long long* bad) {
  auto* low = dynamic_shared<float>();  // [kRows × kColumns]
  float* high = low + kThreads;
  const std::int64_t place = threadIdx.x % kColumns;
  const std::int64_t first = threadIdx.x / kColumns;
  const std::int64_t column = std::int64_t{blockIdx.x} * kColumns + place;
  const std::int64_t docs = column < given.features ? given.docs : 0;
  float least = INFINITY;
  float largest = -INFINITY;
  for (std::int64_t doc = first; doc < docs; doc += kRows) {
    const float value = given.values[doc * given.stride + column];
    least = value < least ? value : least;
    largest = largest < value ? value : largest;
    if (fabsf(value) <= limit) continue;
    const std::int64_t number = doc * given.features + column;
    const bool finite = fabsf(value) < INFINITY;
    atomicMin(bad, static_cast<unsigned long long>(finite ? given.docs * given.features + number : number));
  }
  low[threadIdx.x] = least;
  high[threadIdx.x] = largest;
  __syncthreads();
  for (unsigned row = 0; row < kRows; ++row) {
    const float other_low = low[row * kColumns + place];
    const float other_high = high[row * kColumns + place];
    least = other_low < least ? other_low : least;
    largest = largest < other_high ? other_high : largest;
  }
  const ColumnRange range = column_range(least, largest);
  for (std::int64_t doc = first; doc < docs; doc += kRows) {
    const float value = given.values[doc * given.stride + column];
    inputs[doc * given.features + column] = scale ? share_of_range(value, range.low, range.width) : value;
  }
}

}  // namespace

void query_inputs(Stream stream, const GivenDocs& given, bool scale, float limit, float* inputs,
                  unsigned long long* bad) {
  if (given.docs == 0 || given.features == 0) return;
  launch(query_inputs_kernel, dim3{count_of(parts_of(given.features, kColumns))}, dim3{kThreads},
         2 * kThreads * sizeof(float), stream, given, scale, limit, inputs, bad);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
