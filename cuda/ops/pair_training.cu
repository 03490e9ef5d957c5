#include "cuda/ops/pair_training.h"

#include <algorithm>

#include "core/math/normal.h"
#include "core/math/optimizer_step.h"
#include "core/ops/relu_network.h"
#include "cuda/ops/block_sum.cuh"
#include "cuda/ops/output_layer.cuh"
#include "cuda/ops/pair_terms.cuh"
#include "cuda/ops/stable_groups.cuh"
#include "cuda/runtime/grid.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr std::int64_t kLeastDocsPerPart = 32;
constexpr std::int64_t kTrainingBlocks = 132;
constexpr std::int64_t kColumns = 32;  // of a block of column sums
constexpr std::int64_t kDocsStep = 16;

/// How the documents are split for sums of outer products. Depends on sizes only, so that sums have a fixed
/// order.
struct DocParts {
  std::int64_t docs = 0;  // in a part
  std::int64_t parts = 0;
};

std::int64_t wanted_parts(const NetworkShape& shape, std::int64_t members) {
  const NetworkLayer layer = shape.layer(shape.depth > 2 ? 1 : 0);
  const std::int64_t tiles = parts_of(layer.rows, 128) * parts_of(layer.columns, 128);
  return std::max<std::int64_t>(1, parts_of(kTrainingBlocks, tiles * members));
}

DocParts cut_docs(const NetworkShape& shape, std::int64_t members, std::int64_t docs) {
  const std::int64_t of_part = parts_of(docs, wanted_parts(shape, members));
  std::int64_t size = parts_of(of_part, kDocsStep) * kDocsStep;
  size = std::clamp(size, kLeastDocsPerPart, kMostDocsPerFloatSum);
  return {size, parts_of(docs, size)};
}

// A thread owns a term of a member.
__device__ void perturb_labels_kernel(const Grid& grid, const PairTerm* terms, std::int64_t terms_count,
                                      const PhiloxKey* keys, const std::uint32_t* round, double noise,
                                      double* labels) {
  const std::int64_t t = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  if (t >= terms_count) return;
  const std::int64_t member = grid.block.y;
  RngStream coins(keys[member], *round, static_cast<std::uint32_t>(t));
  labels[member * terms_count + t] = noisy_labels(terms[t].labels, terms[t].weight, noise, coins.normal());
}

// δ_L and δ_{L−1} of a document from the derivatives of its terms, summed in double by the warp that owns
// it; grid.block.y is the member. Deterministic: each lane's terms and the lanes are summed in a fixed
// order.
__device__ void output_slopes_kernel(const Grid& grid, const OutputLayer& output,
                                     const PairHistoryView& all, const float* theta, const float* scores,
                                     const FactorRows& rows) {
  const std::int64_t doc = std::int64_t{grid.block.x} * (kThreads / 32) + threadIdx.x / 32;
  if (doc >= all.docs) return;
  const std::int64_t member = grid.block.y;
  const PairHistoryView history = history_of(all, member);
  const std::int32_t stop = history.incidence.offsets[doc + 1];
  double sum = 0.0;
  for (std::int32_t i = history.incidence.offsets[doc] + static_cast<std::int32_t>(threadIdx.x % 32);
       i < stop; i += 32)
    sum += slope_at_end(history, scores + member * history.docs, member, history.incidence.ends[i]);
  const auto slope = static_cast<float>(warp_sum(sum));
  write_output_deltas(output, theta + member * output.parameters, slope,
                      rows.values + (member * rows.docs + doc) * rows.stride);
}

// Computes the rows from derivatives that are known, of one network.
__device__ void known_slopes_kernel(const Grid& grid, const OutputLayer& output, const double* slopes,
                                    const float* theta, const FactorRows& rows) {
  const std::int64_t doc = std::int64_t{grid.block.x} * (kThreads / 32) + threadIdx.x / 32;
  if (doc >= rows.docs) return;
  write_output_deltas(output, theta, static_cast<float>(slopes[doc]), rows.values + doc * rows.stride);
}

/// Numbers from one part's sums to the next's, so that every part begins at a multiple of 16 bytes.
std::int64_t partial_stride(const NetworkShape& shape) {
  return parts_of(shape.parameters(), 4) * 4;
}

/// Sums over one part of the documents go to partial [members × parts × stride].
struct PartialSums {
  float* values;
  std::int64_t parameters;
  std::int64_t stride;
  std::int64_t parts;
  std::int64_t docs_per_part;

  __device__ float* of(std::int64_t member, std::int64_t part) const {
    return values + (member * parts + part) * stride;
  }
};

/// The terms of a column sum: an input of the output layer times its δ, or the δ of a unit with a bias.
struct SummedColumn {
  std::int64_t parameter = -1;  // where the sum goes; −1 for none
  const float* values = nullptr;
  std::int64_t stride = 0;
  bool times_output = false;
};

__device__ SummedColumn summed_column(const LayerTable& layers, std::int64_t number, const float* features,
                                      const float* member_rows, std::int64_t stride) {
  const NetworkLayer& last = layers.layer[layers.depth - 1];
  if (number < last.columns) {
    const bool of_features = layers.depth == 1;
    return {last.weight + number, of_features ? features + number : member_rows + last.input + number,
            of_features ? last.columns : stride, true};
  }
  const std::int64_t unit = number - last.columns;
  if (!last.has_bias() || unit >= layers.units()) return {};
  const NetworkLayer& layer = layers.layer_of(unit);
  const std::int64_t row = layers.row_of(unit);
  return {layer.bias + row, member_rows + layer.delta + row, stride, false};
}

// The output layer's weights and all biases: sums over the documents of a part. Grid: groups of 32 columns,
// parts, members. Each of a block's warps takes its share of the documents in order, and their sums are
// added in order.
__device__ void sum_columns_kernel(const Grid& grid, const LayerTable& layers, const float* features,
                                   std::int64_t features_step, const FactorRows& rows,
                                   const PartialSums& partial) {
  const std::int64_t begin = std::int64_t{grid.block.y} * partial.docs_per_part;
  const std::int64_t end = min(rows.docs, begin + partial.docs_per_part);
  const float* member_rows = rows.values + grid.block.z * rows.docs * rows.stride;
  const SummedColumn column =
      summed_column(layers, grid.block.x * kColumns + threadIdx.x % 32,
                    features + grid.block.z * features_step, member_rows, rows.stride);
  const float* output_delta = member_rows + layers.layer[layers.depth - 1].delta;
  float sum = 0.0F;
  if (column.parameter >= 0) {
#pragma unroll 4
    for (std::int64_t doc = begin + threadIdx.x / 32; doc < end; doc += kThreads / 32) {
      const float factor = column.times_output ? output_delta[doc * rows.stride] : 1.0F;
      sum += factor * column.values[doc * column.stride];
    }
  }
  auto* sums = dynamic_shared<float>();
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x >= 32 || column.parameter < 0) return;
  for (unsigned lane = threadIdx.x + 32; lane < kThreads; lane += 32) sum += sums[lane];
  partial.of(grid.block.z, grid.block.y)[column.parameter] = sum;
}

// gradient [members × p] in double: parts in order, then what depends on parameters alone. A thread owns a
// parameter. Deterministic.
__device__ void finish_gradient_kernel(const Grid& grid, const PartialSums& partial, const float* theta,
                                       const StackedObjective& objective, const GradientUse& use) {
  const std::int64_t k = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  if (k >= partial.parameters) return;
  const std::int64_t member = grid.block.y;
  const std::int64_t place = member * partial.parameters + k;
  const float* numbers = partial.of(member, 0) + k;
  double sum = 0.0;
#pragma unroll 8
  for (std::int64_t part = 0; part < partial.parts; ++part) {
    sum += objective.data_scale * double{numbers[part * partial.stride]};
  }
  const double own{theta[place]};
  sum += slope_of_parameter(objective, place, own);
  if (use.gradient != nullptr) use.gradient[place] = sum;
  if (use.theta != nullptr)
    use.theta[place] = static_cast<float>(gradient_descent_element(use.step[member], sum, own));
}

// A block owns a sum of the loss, grid.block.y is the member.
__device__ void loss_sums_kernel(const Grid& grid, const PairHistoryView& history, const float* scores,
                                 const float* theta, std::int64_t parameters,
                                 const StackedObjective& objective, const LossBlocks& blocks,
                                 double* sums) {
  const std::int64_t member = grid.block.y;
  const double sum = loss_sum(history_of(history, member), scores, theta, parameters, objective, blocks,
                              member, grid.block.x, dynamic_shared<double>());
  if (threadIdx.x == 0) sums[member * blocks.all + grid.block.x] = sum;
}

// A thread owns a member.
__device__ void finish_losses_kernel(const Grid& grid, std::int64_t members, const LossBlocks& blocks,
                                     const double* sums, const StackedObjective& objective,
                                     double* losses) {
  const std::int64_t member = std::int64_t{grid.block.x} * blockDim.x + threadIdx.x;
  if (member < members) losses[member] = loss_of_sums(blocks, sums + member * blocks.all, objective);
}

FactorRows rows_of(const NetworkShape& shape, const PairHistoryView& history,
                   const TrainingWorkspace& workspace) {
  return {workspace.rows, history.docs, training_row_stride(shape)};
}

/// A layer's outer products by the library. The whole parts of one member are a batch, or else a part of
/// all members is; bits are the same in either.
void multiply_outer_products(Products& products, const NetworkStack& stack, std::int64_t l,
                             const float* features, const FactorRows& rows, const PartialSums& partial) {
  const NetworkLayer layer = stack.shape.layer(l);
  const std::int64_t part_docs = partial.docs_per_part;
  const float* inputs = l == 0 ? features : rows.values;
  const std::int64_t input_stride = l == 0 ? stack.shape.inputs : rows.stride;
  ProductShape shape;
  shape.rows = layer.rows;
  shape.columns = layer.columns;
  shape.transposes_a = true;
  shape.a = {layer.delta, rows.stride, part_docs * rows.stride};
  shape.b = {l == 0 ? 0 : layer.input, input_stride, part_docs * input_stride};
  shape.c = {layer.weight, layer.columns, partial.stride};
  const auto multiply = [&](std::int64_t part, std::int64_t docs, std::int64_t batch) {
    shape.inner = docs;
    shape.batch = batch;
    products.multiply(shape, rows.values + part * part_docs * rows.stride,
                      inputs + part * part_docs * input_stride, partial.values + part * partial.stride);
  };
  const std::int64_t whole_parts = rows.docs / part_docs;
  const std::int64_t rest = rows.docs % part_docs;
  if (stack.members == 1) {
    if (whole_parts > 0) multiply(0, part_docs, whole_parts);
  } else {
    shape.a.step = rows.docs * rows.stride;
    shape.b.step = l == 0 ? stack.features_step : rows.docs * rows.stride;
    shape.c.step = partial.parts * partial.stride;
    for (std::int64_t part = 0; part < whole_parts; ++part) multiply(part, part_docs, stack.members);
  }
  if (rest > 0) multiply(whole_parts, rest, stack.members);
}

/// Everything that finish_gradient_kernel adds.
void sum_over_docs(Products& products, const NetworkStack& stack, const float* features,
                   const FactorRows& rows, const PartialSums& partial) {
  const LayerTable layers(stack.shape);
  for (std::int64_t l = 0; l + 1 < stack.shape.depth; ++l)
    multiply_outer_products(products, stack, l, features, rows, partial);
  const std::int64_t columns =
      layers.layer[layers.depth - 1].columns + (stack.shape.biases ? layers.units() : 0);
  launch(kernel<sum_columns_kernel, kThreads>, {parts_of(columns, kColumns), partial.parts, stack.members},
         kThreads * sizeof(float), products.stream(), layers, features, stack.features_step, rows, partial);
}

/// Gradients from δ_L and δ_{L−1} of all documents.
void finish_gradients(Products& products, const NetworkStack& stack, const float* features,
                      const FactorRows& rows, const StackedObjective& objective,
                      const TrainingWorkspace& workspace, const GradientUse& use) {
  const NetworkShape& shape = stack.shape;
  const DocParts cut = cut_docs(shape, stack.all(), rows.docs);
  const PartialSums partial{workspace.partial, shape.parameters(), partial_stride(shape), cut.parts,
                            cut.docs};
  if (rows.docs > 0) {
    backward_hidden(products, stack, rows);
    sum_over_docs(products, stack, features, rows, partial);
  }
  launch_each(kernel<finish_gradient_kernel, kThreads>, shape.parameters(), stack.members,
              products.stream(), partial, stack.theta, objective, use);
}

/// Item 2t is the first document of term t, item 2t + 1 its second.
struct DocOfEnd {
  const PairTerm* terms;

  __device__ std::int32_t operator()(std::int64_t item) const {
    const PairTerm& term = terms[item / 2];
    if (term.first < 0) return -1;
    return item % 2 == 0 ? term.first : term.second;
  }
};

}  // namespace

std::int64_t training_row_stride(const NetworkShape& shape) {
  return parts_of(shape.factors(), 4) * 4;
}

TrainingSizes training_sizes(const NetworkShape& shape, std::int64_t members, std::int64_t docs,
                             std::int64_t terms) {
  return {members * docs * training_row_stride(shape), members * docs,
          members * cut_docs(shape, members, docs).parts * partial_stride(shape),
          members * LossBlocks(terms, shape.parameters(), true, true).all};
}

std::int64_t most_partial_sums(const NetworkShape& shape, std::int64_t members, std::int64_t docs) {
  const std::int64_t of_few = std::min(wanted_parts(shape, members), parts_of(docs, kLeastDocsPerPart));
  return members * std::max(of_few, parts_of(docs, kMostDocsPerFloatSum)) * partial_stride(shape);
}

void perturb_labels(Stream stream, const PairTerm* terms, std::int64_t terms_count, std::int64_t members,
                    const PhiloxKey* keys, const std::uint32_t* round, double noise, double* labels) {
  launch_each(kernel<perturb_labels_kernel, kThreads>, terms_count, members, stream, terms, terms_count,
              keys, round, noise, labels);
}

void forward_history(Products& products, const NetworkStack& stack, const PairHistoryView& history,
                     const TrainingWorkspace& workspace) {
  const FactorRows rows = rows_of(stack.shape, history, workspace);
  NetworkStack of_many = stack;
  of_many.many_docs = true;
  of_many.features_step = history.features_step;
  forward(products, of_many, history.features, rows, {workspace.scores, nullptr});
}

void pair_losses(Stream stream, const NetworkStack& stack, const PairHistoryView& history,
                 const StackedObjective& objective, const TrainingWorkspace& workspace, double* losses) {
  const LossBlocks blocks(history.count, stack.shape.parameters(), objective);
  launch(kernel<loss_sums_kernel, kThreads>, {blocks.all, stack.members}, kThreads / 32 * sizeof(double),
         stream, history, workspace.scores, stack.theta, stack.shape.parameters(), objective, blocks,
         workspace.losses);
  launch_each(kernel<finish_losses_kernel, 32>, stack.members, 1, stream, stack.members, blocks,
              workspace.losses, objective, losses);
}

void pair_gradients(Products& products, const NetworkStack& stack, const PairHistoryView& history,
                    const StackedObjective& objective, const TrainingWorkspace& workspace,
                    const GradientUse& use) {
  if (stack.members == 0) return;
  const FactorRows rows = rows_of(stack.shape, history, workspace);
  launch(kernel<output_slopes_kernel, kThreads>, {parts_of(history.docs, kThreads / 32), stack.members}, 0,
         products.stream(), OutputLayer(stack.shape), history, stack.theta, workspace.scores, rows);
  NetworkStack own = stack;
  own.features_step = history.features_step;
  finish_gradients(products, own, history.features, rows, objective, workspace, use);
}

void score_gradient(Products& products, const NetworkStack& stack, const PairHistoryView& documents,
                    const double* slopes, double scale, const TrainingWorkspace& workspace,
                    double* gradient) {
  const FactorRows rows = rows_of(stack.shape, documents, workspace);
  launch(kernel<known_slopes_kernel, kThreads>, {parts_of(documents.docs, kThreads / 32)}, 0,
         products.stream(), OutputLayer(stack.shape), slopes, stack.theta, rows);
  finish_gradients(products, stack, documents.features, rows, {scale, 0.0, nullptr, nullptr}, workspace,
                   {gradient, nullptr, nullptr});
}

std::int64_t incidence_workspace(std::int64_t docs, std::int64_t terms) {
  return docs + 2 * terms;
}

void find_incidence(Stream stream, const PairTerm* terms, std::int64_t count, std::int64_t docs,
                    std::int32_t* workspace, const PairIncidence& incidence) {
  group_stably(stream, DocOfEnd{terms}, 2 * count, docs, workspace, incidence.offsets, incidence.ends);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
