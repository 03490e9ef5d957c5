#pragma once

// Functions marked so compile for the CPU and, under nvcc, for the GPU too.
#if defined(__CUDACC__)
#define OLRANK_HOST_DEVICE __host__ __device__
#else
#define OLRANK_HOST_DEVICE
#endif

// A function marked OLRANK_VECTOR_CLONES is compiled for several widths of vector registers; the program
// picks the widest that the CPU supports when it starts. Contraction is off and sums have fixed lanes, so
// that all clones give the same bits. Sanitizers instrument the choice itself too early, so that they get
// the plain function.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define OLRANK_VECTOR_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define OLRANK_VECTOR_CLONES
#endif

// For what such a function calls in its loops: a clone must inline it.
#if defined(__GNUC__)
#define OLRANK_ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define OLRANK_ALWAYS_INLINE inline
#endif
