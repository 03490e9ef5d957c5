#pragma once

#include <cstdint>

#include "core/math/portable_exp.h"

// The tests also compile the kernels' source for the CPU, in another namespace.
#ifndef OLRANK_DEVICE_NAMESPACE
#define OLRANK_DEVICE_NAMESPACE cuda
#endif

struct CUstream_st;

namespace olrank {

/// cudaStream_t, for headers that need no CUDA.
using Stream = CUstream_st*;

}  // namespace olrank

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The parts of at most `part` numbers into which n are cut.
OLRANK_HOST_DEVICE constexpr std::int64_t parts_of(std::int64_t n, std::int64_t part) {
  return (n + part - 1) / part;
}
/// A side of a grid.
constexpr unsigned count_of(std::int64_t n) {
  return static_cast<unsigned>(n);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
