#include <cuda_runtime.h>

#include "core/random/rng_stream.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/device_array.h"
#include "tests/cuda/random_draws.h"

namespace olrank {
namespace {

using cuda::DeviceArray;

// One thread a place. bits, indices [count] of 32 bits; uniforms, normals [count] in double; deterministic.
__global__ void random_draws_kernel(PhiloxKey key, std::int64_t count, std::uint32_t bound,
                                    std::uint32_t* bits, double* uniforms, std::uint32_t* indices,
                                    double* normals) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  RngStream stream(key, static_cast<std::uint32_t>(i), 1, 2);
  bits[i] = stream.next_bits();
  uniforms[i] = stream.uniform();
  indices[i] = stream.index(bound);
  normals[i] = stream.normal();
}

}  // namespace

DrawnOnDevice draw_on_device(PhiloxKey key, std::int64_t count, std::uint32_t bound) {
  if (count == 0) return {};
  DeviceArray<std::uint32_t> bits(count);
  DeviceArray<double> uniforms(count);
  DeviceArray<std::uint32_t> indices(count);
  DeviceArray<double> normals(count);
  constexpr int kThreads = 128;
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  random_draws_kernel<<<blocks, kThreads>>>(key, count, bound, bits.data(), uniforms.data(), indices.data(),
                                            normals.data());
  OLRANK_CUDA_CHECK(cudaGetLastError());
  OLRANK_CUDA_CHECK(cudaDeviceSynchronize());
  return {bits.to_host(), uniforms.to_host(), indices.to_host(), normals.to_host()};
}

}  // namespace olrank
