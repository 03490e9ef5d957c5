#pragma once

#include <cstdint>

#include "cuda/runtime/launch.cuh"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Starts a kernel whose threads, `threads` of a block, own a number each: of `numbers` in every row of the
/// grid, blockIdx.y. Nothing starts where there are none.
template <unsigned threads, class Kernel, class... Arguments>
void launch_each(Kernel kernel, std::int64_t numbers, std::int64_t rows, Stream stream,
                 const Arguments&... arguments) {
  if (numbers == 0 || rows == 0) return;
  launch(kernel, dim3{count_of(parts_of(numbers, threads)), count_of(rows)}, dim3{threads}, 0, stream,
         arguments...);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
