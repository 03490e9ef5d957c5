#pragma once

// A function marked OLRANK_VECTOR_CLONES is compiled for several widths of vector registers, and the widest
// that the CPU has is taken when the program starts. Contraction is off and sums run in stated lanes, so
// the clones give the same bits. Sanitizers instrument the choice itself too early, so they get the plain
// one.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define OLRANK_VECTOR_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define OLRANK_VECTOR_CLONES
#endif

// What such a function calls in its loops has to become part of it.
#if defined(__GNUC__)
#define OLRANK_ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define OLRANK_ALWAYS_INLINE inline
#endif
