#include "cuda/ops/replay.h"

#include <cmath>

#include "cuda/ops/block_sum.cuh"
#include "cuda/runtime/launch_each.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kTermThreads = 128;
constexpr unsigned kGradientThreads = 1024;

// A thread owns a term of a member, blockIdx.y. Double.
__global__ void __launch_bounds__(kTermThreads)
    split_sample_kernel(const SampledTerm* sources, std::int64_t count, const PhiloxKey* keys,
                        const std::uint32_t* noise_round, double noise, SampleParts parts) {
  const std::int64_t t = std::int64_t{blockIdx.x} * kTermThreads + threadIdx.x;
  if (t >= count) return;
  const std::int64_t member = blockIdx.y;
  const std::int64_t place = member * count + t;
  SampledTerm source;
  if (sources[t].term >= 0) source = sources[t];
  SampledLabels labels{source.own_labels, source.drawn_labels};
  if (noise > 0.0 && sources[t].term >= 0)
    labels = noisy_sampled_labels(source, keys[member], *noise_round, noise);
  parts.own_weights[place] = source.own_weight;
  parts.own_labels[place] = labels.own;
  parts.weights[place] = source.own_weight + source.drawn_weight;
  parts.labels[place] = labels.own + labels.drawn;
}

/// Whether a member's gradient is finite, for the whole block.
__device__ bool is_finite(std::int64_t parameters, const double* gradient, double* shared) {
  double bad = 0.0;
  for (std::int64_t k = threadIdx.x; k < parameters; k += kGradientThreads)
    bad += std::isfinite(gradient[k]) ? 0.0 : 1.0;
  bad = block_sum(bad, shared);
  __syncthreads();
  if (threadIdx.x == 0) shared[0] = bad;
  __syncthreads();
  return shared[0] == 0.0;
}

// A block owns a member. Double.
__global__ void __launch_bounds__(kGradientThreads)
    add_finite_gradient_kernel(std::int64_t parameters, const double* gradient, double* sum) {
  const std::int64_t first = blockIdx.x * parameters;
  if (!is_finite(parameters, gradient + first, dynamic_shared<double>())) return;
  for (std::int64_t k = threadIdx.x; k < parameters; k += kGradientThreads)
    sum[first + k] += gradient[first + k];
}

// A block owns a member here, too. Double.
__global__ void __launch_bounds__(kGradientThreads)
    subtract_from_whole_kernel(std::int64_t parameters, const double* whole, double* gradient) {
  const std::int64_t first = blockIdx.x * parameters;
  const bool finite = is_finite(parameters, gradient + first, dynamic_shared<double>());
  for (std::int64_t k = threadIdx.x; k < parameters; k += kGradientThreads)
    gradient[first + k] = finite ? whole[first + k] - gradient[first + k] : 0.0;
}

constexpr std::size_t kGradientShared = kGradientThreads / 32 * sizeof(double);

}  // namespace

void split_sample(Stream stream, const SampledTerm* sources, std::int64_t count, std::int64_t members,
                  const PhiloxKey* keys, const std::uint32_t* noise_round, double noise,
                  const SampleParts& parts) {
  launch_each<kTermThreads>(split_sample_kernel, count, members, stream, sources, count, keys, noise_round,
                            noise, parts);
}

void add_finite_gradient(Stream stream, std::int64_t members, std::int64_t parameters,
                         const double* gradient, double* sum) {
  if (members == 0) return;
  launch(add_finite_gradient_kernel, dim3{count_of(members)}, dim3{kGradientThreads}, kGradientShared,
         stream, parameters, gradient, sum);
}

void subtract_from_whole(Stream stream, std::int64_t members, std::int64_t parameters, const double* whole,
                         double* gradient) {
  if (members == 0) return;
  launch(subtract_from_whole_kernel, dim3{count_of(members)}, dim3{kGradientThreads}, kGradientShared,
         stream, parameters, whole, gradient);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
