#include "cuda/ops/persistent_training.h"

#include <algorithm>
#include <iterator>

#include "cuda/ops/persistent_products.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace persistent {
namespace {

// On an H200 a part takes (3 + docs_of_thread) · 3.3 µs of a step.
constexpr std::int64_t kTimeOfAnyPart = 3;
constexpr std::int64_t kMostWidth = 255;  // wider layers are left to products of whole matrices

// A block owns a run of items, (part, member), and keeps the documents of a part in shared memory until it
// needs those of another one: one part is read once for all J steps. A step has three phases, with a
// barrier of the grid after each: scores; gradients by parts; sums over parts and the move, where a block
// owns whole rows. Sums do not depend on who owns what.
template <int kDocs>
__device__ void persistent_training_kernel(const Grid& grid, const Task& task) {
  const Room room(task);
  const PersistentTraining& training = task.training;
  const bool only_gradient = training.gradient != nullptr;
  const std::int64_t items = task.items();
  const std::int64_t begin = items * grid.block.x / grid.extent.x;
  const std::int64_t end = items * (grid.block.x + std::int64_t{1}) / grid.extent.x;
  std::int64_t resident = -1;
  const auto stage_part = [&](const Item& item) {
    if (item.part == resident) return;
    stage_docs(task, item, room.docs);
    resident = item.part;
  };
  const auto wait = [] {
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
  };
  for (std::int64_t member = threadIdx.x; member < task.members(); member += kThreads)
    room.steps[member] = training.step[member];
  __syncthreads();
  for (std::int64_t number = 0;; ++number) {
    std::int64_t staged = -1;
    for (std::int64_t i = begin; i < end; ++i) {
      const Item item(task, i);
      stage_part(item);
      if (item.member != staged) stage_weights(task, item.member, room);
      staged = item.member;
      wait();
      pass_forward<kDocs>(task, item, room);
      __syncthreads();
    }
    grid.barrier();
    const bool last = !only_gradient && number == training.steps;
    if (last || (number == 0 && !only_gradient)) sum_losses(grid, task, room);
    if (last) {
      grid.barrier();
      if (number == 0) finish_losses(grid, task, training.began);
      finish_losses(grid, task, training.ended);
      return;
    }
    // Backwards, as the last documents are still there.
    for (std::int64_t i = end - 1; i >= begin; --i) {
      const Item item(task, i);
      stage_part(item);
      find_output_deltas(task, item, room);
      __syncthreads();
      spread_deltas<kDocs>(task, item, room);
      wait();
      sum_outer_products(task, item, room);
      __syncthreads();
    }
    grid.barrier();
    if (number == 0 && !only_gradient) finish_losses(grid, task, training.began);
    for (std::int64_t i = grid.block.x; i < task.members() * task.rows(); i += grid.extent.x) {
      const std::int64_t member = i / task.rows();
      const int row = static_cast<int>(i % task.rows());
      if (row < task.units()) {
        use_row(task, member, row, number, room);
      } else {
        use_output_bias(task, member, number, room);
      }
    }
    if (only_gradient) return;
    grid.barrier();
  }
}

using PersistentKernel = Kernel<Task>;

PersistentKernel training_kernel(const TrainingParts& parts) {
  static constexpr PersistentKernel kKernels[] = {
      kernel<persistent_training_kernel<1>, kThreads>, kernel<persistent_training_kernel<2>, kThreads>,
      kernel<persistent_training_kernel<3>, kThreads>, kernel<persistent_training_kernel<4>, kThreads>,
      kernel<persistent_training_kernel<5>, kThreads>, kernel<persistent_training_kernel<6>, kThreads>,
      kernel<persistent_training_kernel<7>, kThreads>, kernel<persistent_training_kernel<8>, kThreads>,
      kernel<persistent_training_kernel<9>, kThreads>, kernel<persistent_training_kernel<10>, kThreads>};
  static_assert(std::size(kKernels) == kMostDocsOfThread);
  return kKernels[parts.docs_of_thread - 1];
}

TrainingParts parts_of_size(const NetworkShape& shape, std::int64_t members, std::int64_t docs,
                            int docs_of_thread, std::size_t most_shared_bytes) {
  TrainingParts made;
  made.docs_of_thread = docs_of_thread;
  made.unit_shares = static_cast<int>(parts_of(shape.width, kUnits));
  made.doc_shares = std::min(kMostDocShares, kThreads / made.unit_shares);
  made.columns = static_cast<int>(shape.inputs) + (shape.biases ? 1 : 0);
  // An odd multiple of 4: rows of neighbouring threads start in different banks, in groups of four.
  made.row_stride = static_cast<int>(parts_of(made.columns, 4) | 1) * 4;
  made.docs = std::int64_t{docs_of_thread} * made.doc_shares;
  made.parts = parts_of(docs, made.docs);
  made.shared_bytes = RoomSizes(made, members).all();
  if (made.shared_bytes > most_shared_bytes) made.shared_bytes = 0;
  return made;
}

}  // namespace
}  // namespace persistent

TrainingParts training_parts(const NetworkShape& shape, std::int64_t members, std::int64_t docs,
                             std::size_t most_shared_bytes) {
  TrainingParts best;
  if (shape.depth != 2 || shape.width > persistent::kMostWidth) return best;
  std::int64_t least_time = 0;
  for (int docs_of_thread = 1; docs_of_thread <= persistent::kMostDocsOfThread; ++docs_of_thread) {
    const TrainingParts made =
        persistent::parts_of_size(shape, members, docs, docs_of_thread, most_shared_bytes);
    if (made.shared_bytes == 0) break;
    const std::int64_t waves = parts_of(made.parts * members, kAllBlocks);
    const std::int64_t time = waves * (persistent::kTimeOfAnyPart + docs_of_thread);
    if (docs_of_thread > 1 && time >= least_time) continue;
    best = made;
    least_time = time;
  }
  return best;
}

bool trains_persistently(const NetworkShape& shape, std::int64_t members) {
  const std::size_t most_bytes = most_shared_bytes();
  const TrainingParts least = training_parts(shape, members, 1, most_bytes);
  if (least.shared_bytes == 0) return false;
  // The largest parts that may be chosen need the most.
  const TrainingParts most = training_parts(shape, members, std::int64_t{1} << 40, most_bytes);
  const dim3 block{persistent::kThreads};
  return blocks_at_once(persistent::training_kernel(least).alone, block, least.shared_bytes) > 0 &&
         blocks_at_once(persistent::training_kernel(most).alone, block, most.shared_bytes) > 0;
}

PersistentSizes persistent_sizes(const NetworkShape& shape, std::int64_t members, std::int64_t docs,
                                 std::int64_t terms) {
  const TrainingParts parts = training_parts(shape, members, docs, most_shared_bytes());
  const std::int64_t row = parts_of(parts.columns, 4) * 4;
  const std::int64_t items = members * parts.parts;
  return {members * docs, items * (shape.width * row + 4), items * parts.docs * parts.unit_shares,
          members * 2 * terms, members * LossBlocks(terms, shape.parameters(), true, true).all};
}

void train_persistently(Stream stream, const PersistentTraining& training) {
  const NetworkStack& stack = training.stack;
  const TrainingParts parts =
      training_parts(stack.shape, stack.all(), training.history.docs, most_shared_bytes());
  const persistent::Task task{
      training, parts, OutputLayer(stack.shape), stack.shape.layer(0),
      LossBlocks(training.history.count, stack.shape.parameters(), training.objective)};
  const persistent::PersistentKernel training_kernel = persistent::training_kernel(parts);
  const dim3 block{persistent::kThreads};
  const std::int64_t useful = std::max(task.items(), task.members() * task.rows());
  const std::int64_t blocks =
      std::min(blocks_at_once(training_kernel.alone, block, parts.shared_bytes), useful);
  launch_together(training_kernel, {blocks}, parts.shared_bytes, stream, task);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
