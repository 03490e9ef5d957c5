#include "cuda/ops/replay.h"

#include <cmath>

#include "core/math/normal.h"
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

// offsets [docs + 1] and ends [docs] are 0, 1, 2, …: the only term of document 2i + s is term i, as its
// first or second document. A thread writes one document.
__device__ void fill_batch_incidence_kernel(const Grid& grid, std::int64_t docs,
                                            const PairIncidence& incidence) {
  const std::int64_t doc = std::int64_t{grid.block.x} * blockDim.x + threadIdx.x;
  if (doc <= docs) incidence.offsets[doc] = static_cast<std::int32_t>(doc);
  if (doc < docs) incidence.ends[doc] = static_cast<std::int32_t>(doc);
}

// A block copies the two documents of a pair, and its first thread writes the term, in double;
// grid.block.y is the member.
__device__ void gather_batch_kernel(const Grid& grid, const BatchSource& source, const BatchCursor* cursors,
                                    float* features, PairTerm* terms) {
  const std::int64_t member = grid.block.y;
  const std::int64_t place = member * grid.extent.x + grid.block.x;
  const std::int32_t number = cursors[member].order[grid.block.x];
  const PairObservation seen = source.observations[number];
  const PairTerm& folded = source.terms[seen.term];
  const float* first = source.features + folded.first * source.columns;
  const float* second = source.features + folded.second * source.columns;
  float* out = features + 2 * place * source.columns;
  for (std::int64_t c = threadIdx.x; c < source.columns; c += blockDim.x) {
    out[c] = first[c];
    out[source.columns + c] = second[c];
  }
  if (threadIdx.x != 0) return;
  const double weight =
      source.changes == nullptr ? 1.0 : source.changes[member * source.observation_count + number];
  const double noise = source.labels == nullptr
                           ? 0.0
                           : noise_per_pair(source.labels[member * source.terms_count + seen.term],
                                            folded.labels, folded.weight);
  const auto row = 2 * static_cast<std::int32_t>(grid.block.x);
  terms[place] = {row, row + 1, weight, noisy_pair_labels(weight, seen.first_wins, noise)};
}

// A thread owns a member.
__device__ void begin_batches_kernel(const Grid& grid, std::int64_t members, const std::int32_t* order,
                                     std::int64_t per_member, const StepRates& rates,
                                     BatchCursor* cursors) {
  const std::int64_t member = std::int64_t{grid.block.x} * blockDim.x + threadIdx.x;
  if (member < members) cursors[member] = {order + member * per_member, 1, rates};
}

// A thread owns a member; the stream orders the steps.
__device__ void finish_batch_kernel(const Grid& grid, std::int64_t members, std::int64_t batch,
                                    const double* losses, const StepRates* corrections,
                                    BatchCursor* cursors, const BadLoss& bad) {
  const std::int64_t member = std::int64_t{grid.block.x} * blockDim.x + threadIdx.x;
  if (member >= members) return;
  BatchCursor& cursor = cursors[member];
  if (bad.number[member] == 0.0 && batch_loss_has_exploded(losses[member])) {
    bad.number[member] = static_cast<double>(cursor.number);
    bad.loss[member] = losses[member];
  }
  const StepRates& next = corrections[cursor.number];
  cursor.rates.first_correction = next.first_correction;
  cursor.rates.second_correction = next.second_correction;
  cursor.order += batch;
  ++cursor.number;
}

// A block owns a member; its threads take every kTermThreads-th score.
__device__ void note_bad_scores_kernel(const Grid& grid, const BatchCursor* cursors, std::int64_t docs,
                                       const float* scores, const BadLoss& first) {
  const std::int64_t member = grid.block.x;
  int bad = 0;
  for (std::int64_t doc = threadIdx.x; doc < docs; doc += kTermThreads)
    bad += std::isfinite(scores[member * docs + doc]) ? 0 : 1;
  bad = block_sum(bad, dynamic_shared<int>());
  if (threadIdx.x != 0 || first.number[member] != 0.0 || bad == 0) return;
  first.number[member] = static_cast<double>(cursors[member].number);
  first.loss[member] = std::nan("");
}

constexpr unsigned kStepThreads = 256;

__device__ void begin_training_kernel(const Grid& grid, std::int64_t numbers, const float* theta,
                                      const OptimizerState& state) {
  const std::int64_t k = std::int64_t{grid.block.x} * kStepThreads + threadIdx.x;
  if (k >= numbers) return;
  state.position[k] = double{theta[k]};
  state.first_moment[k] = 0.0;
  if (state.second_moment != nullptr) state.second_moment[k] = 0.0;
}

// A thread owns a parameter, grid.block.y is the member. Numbers are double.
__device__ void step_kernel(const Grid& grid, const Step& kind, std::int64_t parameters,
                            const StepRates* rates, const double* gradient, const double* step,
                            const OptimizerState& state, float* theta) {
  const std::int64_t k = std::int64_t{grid.block.x} * kStepThreads + threadIdx.x;
  if (k >= parameters) return;
  const std::int64_t place = grid.block.y * parameters + k;
  const double size = step[grid.block.y];
  if (kind == Step::kAdam) {
    move_by_adam(place, size, *rates, gradient[place], state, theta);
  } else if (kind == Step::kNesterov) {
    move_by_nesterov(place, size, gradient[place], state, theta);
  } else if (kind == Step::kDescent) {
    move_by_descent(place, size, gradient[place], theta);
  } else {
    const double moved = decayed_element(size, rates->decay, gradient[place], state.position[place]);
    state.position[place] = moved;
    theta[place] = static_cast<float>(moved);
  }
}

}  // namespace

void split_sample(Stream stream, const SampledTerm* sources, std::int64_t count, std::int64_t members,
                  const PhiloxKey* keys, const std::uint32_t* noise_round, double noise,
                  const SampleParts& parts) {
  launch_each(kernel<split_sample_kernel, kTermThreads>, count, members, stream, sources, count, keys,
              noise_round, noise, parts);
}

void add_finite_gradient(Stream stream, std::int64_t members, std::int64_t parameters,
                         const double* gradient, double* sum) {
  launch(kernel<use_finite_gradient_kernel, kGradientThreads>, {members}, kGradientShared, stream,
         parameters, nullptr, const_cast<double*>(gradient), sum);
}

void subtract_from_whole(Stream stream, std::int64_t members, std::int64_t parameters, const double* whole,
                         double* gradient) {
  launch(kernel<use_finite_gradient_kernel, kGradientThreads>, {members}, kGradientShared, stream,
         parameters, whole, gradient, nullptr);
}

void fill_batch_incidence(Stream stream, std::int64_t pairs, const PairIncidence& incidence) {
  const std::int64_t docs = 2 * pairs;
  launch_each(kernel<fill_batch_incidence_kernel, kTermThreads>, docs + 1, 1, stream, docs, incidence);
}

void begin_batches(Stream stream, std::int64_t members, const std::int32_t* order, std::int64_t per_member,
                   const StepRates& rates, BatchCursor* cursors) {
  launch_each(kernel<begin_batches_kernel, kTermThreads>, members, 1, stream, members, order, per_member,
              rates, cursors);
}

void finish_batch(Stream stream, std::int64_t members, std::int64_t count, const double* losses,
                  const StepRates* corrections, BatchCursor* cursors, const BadLoss& bad) {
  launch_each(kernel<finish_batch_kernel, 32>, members, 1, stream, members, count, losses, corrections,
              cursors, bad);
}

void gather_batch(Stream stream, const BatchSource& source, std::int64_t members,
                  const BatchCursor* cursors, std::int64_t count, float* features, PairTerm* terms) {
  launch(kernel<gather_batch_kernel, kTermThreads>, {count, members}, 0, stream, source, cursors, features,
         terms);
}

void note_bad_scores(Stream stream, std::int64_t members, const BatchCursor* cursors, std::int64_t docs,
                     const float* scores, const BadLoss& bad) {
  if (docs == 0) return;
  launch(kernel<note_bad_scores_kernel, kTermThreads>, {members}, kTermThreads / 32 * sizeof(int), stream,
         cursors, docs, scores, bad);
}

void begin_training(Stream stream, std::int64_t numbers, const float* theta, const OptimizerState& state) {
  launch_each(kernel<begin_training_kernel, kStepThreads>, numbers, 1, stream, numbers, theta, state);
}

void optimizer_step(Stream stream, Step kind, std::int64_t members, std::int64_t parameters,
                    const StepRates* rates, const double* gradient, const double* step,
                    const OptimizerState& state, float* theta) {
  launch_each(kernel<step_kernel, kStepThreads>, parameters, members, stream, kind, parameters, rates,
              gradient, step, state, theta);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
