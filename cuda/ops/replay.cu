#include "cuda/ops/replay.h"

#include <cmath>

#include "core/math/normal.h"
#include "core/math/optimizer_step.h"
#include "cuda/ops/block_sum.cuh"
#include "cuda/runtime/grid.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kTermThreads = 128;
constexpr unsigned kGradientThreads = 1024;

// A thread owns a term of a member, grid.block.y. Double.
__device__ void split_sample_kernel(const Grid& grid, const SampledTerm* sources, std::int64_t count,
                                    const PhiloxKey* keys, const std::uint32_t* noise_round, double noise,
                                    const SampleParts& parts) {
  const std::int64_t t = std::int64_t{grid.block.x} * kTermThreads + threadIdx.x;
  if (t >= count) return;
  const std::int64_t member = grid.block.y;
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

// A block owns a member, in double: sum += gradient if all of it is finite, or with `whole` gradient =
// whole − gradient, and 0 if it is not.
__device__ void use_finite_gradient_kernel(const Grid& grid, std::int64_t parameters, const double* whole,
                                           double* gradient, double* sum) {
  const std::int64_t first = grid.block.x * parameters;
  double bad = 0.0;
  for (std::int64_t k = threadIdx.x; k < parameters; k += kGradientThreads)
    bad += std::isfinite(gradient[first + k]) ? 0.0 : 1.0;
  const bool finite = combined(bad, dynamic_shared<double>(), Larger{}) == 0.0;
  for (std::int64_t k = first + threadIdx.x; k < first + parameters; k += kGradientThreads) {
    if (whole != nullptr) {
      gradient[k] = finite ? whole[k] - gradient[k] : 0.0;
    } else if (finite) {
      sum[k] += gradient[k];
    }
  }
}

constexpr std::size_t kGradientShared = kGradientThreads / 32 * sizeof(double);

}  // namespace

void split_sample(Stream stream, const SampledTerm* sources, std::int64_t count, std::int64_t members,
                  const PhiloxKey* keys, const std::uint32_t* noise_round, double noise,
                  const SampleParts& parts) {
  launch_each<kTermThreads>(kernel<split_sample_kernel, kTermThreads>, count, members, stream, sources,
                            count, keys, noise_round, noise, parts);
}

void add_finite_gradient(Stream stream, std::int64_t members, std::int64_t parameters,
                         const double* gradient, double* sum) {
  if (members == 0) return;
  launch(kernel<use_finite_gradient_kernel, kGradientThreads>, dim3{count_of(members)},
         dim3{kGradientThreads}, kGradientShared, stream, parameters, nullptr,
         const_cast<double*>(gradient), sum);
}

void subtract_from_whole(Stream stream, std::int64_t members, std::int64_t parameters, const double* whole,
                         double* gradient) {
  if (members == 0) return;
  launch(kernel<use_finite_gradient_kernel, kGradientThreads>, dim3{count_of(members)},
         dim3{kGradientThreads}, kGradientShared, stream, parameters, whole, gradient, nullptr);
}

namespace {

constexpr unsigned kThreads = 128;

// offsets [docs + 1] and ends [docs] are 0, 1, 2, …: the only term of document 2i + s is term i, as its
// first or second document. A thread writes one document.
__device__ void fill_batch_incidence_kernel(const Grid& grid, std::int64_t docs,
                                            const PairIncidence& incidence) {
  const std::int64_t doc = std::int64_t{grid.block.x} * blockDim.x + threadIdx.x;
  if (doc <= docs) incidence.offsets[doc] = static_cast<std::int32_t>(doc);
  if (doc < docs) incidence.ends[doc] = static_cast<std::int32_t>(doc);
}

// A block copies the two documents of a pair, and its first thread writes the term, in double.
__device__ void gather_batch_kernel(const Grid& grid, const BatchSource& source, const BatchCursor* cursor,
                                    float* features, PairTerm* terms) {
  const std::int32_t number = cursor->order[grid.block.x];
  const PairObservation seen = source.observations[number];
  const PairTerm& folded = source.terms[seen.term];
  const float* first = source.features + folded.first * source.columns;
  const float* second = source.features + folded.second * source.columns;
  float* out = features + 2 * std::int64_t{grid.block.x} * source.columns;
  for (std::int64_t c = threadIdx.x; c < source.columns; c += blockDim.x) {
    out[c] = first[c];
    out[source.columns + c] = second[c];
  }
  if (threadIdx.x != 0) return;
  const double weight = source.changes == nullptr ? 1.0 : source.changes[number];
  const double noise = source.labels == nullptr
                           ? 0.0
                           : noise_per_pair(source.labels[seen.term], folded.labels, folded.weight);
  const auto row = 2 * static_cast<std::int32_t>(grid.block.x);
  terms[grid.block.x] = {row, row + 1, weight, noisy_pair_labels(weight, seen.first_wins, noise)};
}

// A thread owns a member.
__device__ void begin_batches_kernel(const Grid& grid, std::int64_t members, const std::int32_t* order,
                                     std::int64_t per_member, const StepRates& rates,
                                     BatchCursor* cursors) {
  const std::int64_t member = std::int64_t{grid.block.x} * blockDim.x + threadIdx.x;
  if (member < members) cursors[member] = {order + member * per_member, 1, rates};
}

// One thread; the stream orders the steps.
__device__ void finish_batch_kernel(const Grid& /*grid*/, std::int64_t batch, const double* loss,
                                    const StepRates* corrections, BatchCursor* cursor, const BadLoss& bad) {
  if (threadIdx.x != 0) return;
  if (*bad.number == 0.0 && batch_loss_has_exploded(*loss)) {
    *bad.number = static_cast<double>(cursor->number);
    *bad.loss = *loss;
  }
  const StepRates& next = corrections[cursor->number];
  cursor->rates.first_correction = next.first_correction;
  cursor->rates.second_correction = next.second_correction;
  cursor->order += batch;
  ++cursor->number;
}

// One block, whose threads take every kThreads-th score.
__device__ void note_bad_scores_kernel(const Grid& /*grid*/, const BatchCursor* cursor, std::int64_t docs,
                                       const float* scores, const BadLoss& first) {
  int bad = 0;
  for (std::int64_t doc = threadIdx.x; doc < docs; doc += kThreads)
    bad += std::isfinite(scores[doc]) ? 0 : 1;
  bad = block_sum(bad, dynamic_shared<int>());
  if (threadIdx.x != 0 || *first.number != 0.0 || bad == 0) return;
  *first.number = static_cast<double>(cursor->number);
  *first.loss = std::nan("");
}

}  // namespace

void fill_batch_incidence(Stream stream, std::int64_t pairs, const PairIncidence& incidence) {
  const std::int64_t docs = 2 * pairs;
  launch_each<kThreads>(kernel<fill_batch_incidence_kernel>, docs + 1, 1, stream, docs, incidence);
}

void begin_batches(Stream stream, std::int64_t members, const std::int32_t* order, std::int64_t per_member,
                   const StepRates& rates, BatchCursor* cursors) {
  launch_each<kThreads>(kernel<begin_batches_kernel>, members, 1, stream, members, order, per_member, rates,
                        cursors);
}

void finish_batch(Stream stream, std::int64_t count, const double* loss, const StepRates* corrections,
                  BatchCursor* cursor, const BadLoss& bad) {
  launch(kernel<finish_batch_kernel>, dim3{1}, dim3{32}, 0, stream, count, loss, corrections, cursor, bad);
}

void gather_batch(Stream stream, const BatchSource& source, const BatchCursor* cursor, std::int64_t count,
                  float* features, PairTerm* terms) {
  if (count == 0) return;
  launch(kernel<gather_batch_kernel>, dim3{count_of(count)}, dim3{kThreads}, 0, stream, source, cursor,
         features, terms);
}

void note_bad_scores(Stream stream, const BatchCursor* cursor, std::int64_t docs, const float* scores,
                     const BadLoss& bad) {
  if (docs == 0) return;
  launch(kernel<note_bad_scores_kernel, kThreads>, dim3{1}, dim3{kThreads}, kThreads / 32 * sizeof(int),
         stream, cursor, docs, scores, bad);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
