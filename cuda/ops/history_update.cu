#include "cuda/ops/history_update.h"

#include "cuda/runtime/launch_each.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kThreads = 128;

// A block copies a document.
__global__ void gather_docs_kernel(const float* from, std::int64_t features, const std::int64_t* numbers,
                                   float* to) {
  const float* row = from + numbers[blockIdx.x] * features;
  for (std::int64_t c = threadIdx.x; c < features; c += blockDim.x) to[blockIdx.x * features + c] = row[c];
}

__global__ void write_terms_kernel(const DeviceUpdate::Term* changed, std::int64_t count, PairTerm* terms) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) terms[changed[i].index] = changed[i].term;
}

}  // namespace

void gather_docs(Stream stream, const float* from, std::int64_t features, const std::int64_t* numbers,
                 std::int64_t count, float* to) {
  if (count == 0) return;
  launch(gather_docs_kernel, dim3{count_of(count)}, dim3{kThreads}, 0, stream, from, features, numbers, to);
}

void write_terms(Stream stream, const DeviceUpdate::Term* changed, std::int64_t count, PairTerm* terms) {
  launch_each<kThreads>(write_terms_kernel, count, 1, stream, changed, count, terms);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
