#pragma once

// Functions marked so compile for the CPU and, under nvcc, for the GPU too.
#if defined(__CUDACC__)
#define OLRANK_HOST_DEVICE __host__ __device__
#else
#define OLRANK_HOST_DEVICE
#endif
