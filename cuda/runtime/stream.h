#pragma once

// The tests run the kernels' own source on the CPU too, in a namespace of its own.
#ifndef OLRANK_DEVICE_NAMESPACE
#define OLRANK_DEVICE_NAMESPACE cuda
#endif

struct CUstream_st;

namespace olrank {

/// cudaStream_t, for headers that need no CUDA.
using Stream = CUstream_st*;

}  // namespace olrank
