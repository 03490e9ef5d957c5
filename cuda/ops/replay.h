#pragma once

#include <cstdint>

#include "core/ops/pair_training.h"
#include "cuda/runtime/stream.h"

// Kernels for trainings on a sample of the history; its passes are those of cuda/ops/pair_training.h. All
// arrays are on the device.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Weights and labels of a sample's terms, [members × count] each: of the round's own pairs, and of own and
/// drawn ones together.
struct SampleParts {
  double* own_weights = nullptr;
  double* own_labels = nullptr;
  double* weights = nullptr;
  double* labels = nullptr;
};

/// Terms whose number is −1 get zeros. With noise ν > 0, labels are those of noisy_sampled_labels(), with
/// the CPU's draws and bits; keys [members] and the round of the noise are on the device.
void split_sample(Stream stream, const SampledTerm* sources, std::int64_t count, std::int64_t members,
                  const PhiloxKey* keys, const std::uint32_t* noise_round, double noise,
                  const SampleParts& parts);

/// sum [members × p] += gradient, of members whose gradient is finite: a document whose scores overflow
/// stays out, so that later rounds can train.
void add_finite_gradient(Stream stream, std::int64_t members, std::int64_t parameters,
                         const double* gradient, double* sum);

/// gradient = whole − gradient [members × p]: h, which makes a sample's gradient that of the whole history
/// at the reference. 0 for members whose gradient is not finite.
void subtract_from_whole(Stream stream, std::int64_t members, std::int64_t parameters, const double* whole,
                         double* gradient);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
