#pragma once

// The tests also compile the kernels' source for the CPU, in another namespace.
#ifndef OLRANK_DEVICE_NAMESPACE
#define OLRANK_DEVICE_NAMESPACE cuda
#endif

struct CUstream_st;

namespace olrank {

/// cudaStream_t, for headers that need no CUDA.
using Stream = CUstream_st*;

}  // namespace olrank
