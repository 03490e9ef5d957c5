#include "cuda/ops/persistent_training.h"

#include <algorithm>

#include "cuda/ops/persistent_products.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace persistent {
namespace {

// A part takes so much of a step, in the time of sixteen documents. An H200's part took 9.9 µs and sixteen
// documents 2.8 µs by float32's instructions; an estimate for tensor cores is 1.2 µs.
constexpr std::int64_t kTimeOfAnyPart = 8;
constexpr std::int64_t kMostWidth = 255;  // wider layers are left to products of whole matrices

// A block owns a run of items, (parts, member), and keeps the documents of an item's parts in shared memory
// until it needs those of others: where one item is enough, they are read once for all J steps. A step has
// three phases, with a barrier of the grid after each: scores; gradients by parts; sums over parts and the
// move, where a block owns whole rows. Sums do not depend on who owns what.
__device__ void persistent_training_kernel(const Grid& grid, const Task& task) {
  const std::int64_t at_once = task.parts.at_once(task.members(), grid.extent.x);
  const Room room(task, at_once);
  const PersistentTraining& training = task.training;
  const bool only_gradient = training.gradient != nullptr;
  const std::int64_t items = parts_of(task.parts.parts, at_once) * task.members();
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
      const Item item(task, i, at_once);
      stage_part(item);
      if (item.member != staged) stage_weights(task, item.member, room);
      staged = item.member;
      wait();
      pass_forward(task, item, room);
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
      const Item item(task, i, at_once);
      stage_part(item);
      find_output_deltas(task, item, room);
      __syncthreads();
      spread_deltas(task, item, room);
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

constexpr Kernel<Task> kTrainingKernel = kernel<persistent_training_kernel, kThreads>;

TrainingParts parts_of_size(const NetworkShape& shape, std::int64_t members, std::int64_t docs,
                            int doc_tiles, std::size_t most_shared_bytes) {
  TrainingParts made;
  made.doc_tiles = doc_tiles;
  made.docs = std::int64_t{WarpPlace::kRows} * doc_tiles;
  made.unit_tiles = static_cast<int>(parts_of(shape.width, WarpPlace::kColumns));
  made.columns = static_cast<int>(shape.inputs) + (shape.biases ? 1 : 0);
  made.row_stride = (made.depth() / 8 | 1) * 8;
  made.parts = parts_of(docs, made.docs);
  const auto bytes_for = [&](std::int64_t parts) { return RoomSizes(made, members, parts).all(); };
  if (bytes_for(1) > most_shared_bytes) return made;
  while (made.most_at_once < made.parts && bytes_for(made.most_at_once + 1) <= most_shared_bytes)
    ++made.most_at_once;
  made.shared_bytes = bytes_for(made.most_at_once);
  return made;
}

}  // namespace
}  // namespace persistent

OLRANK_HOST_DEVICE std::int64_t TrainingParts::at_once(std::int64_t members, std::int64_t blocks) const {
  std::int64_t best = 1;
  std::int64_t least_time = 0;
  for (std::int64_t count = 1; count <= most_at_once; ++count) {
    const std::int64_t turns = parts_of(parts_of(parts, count) * members, blocks);
    const std::int64_t time = turns * (persistent::kTimeOfAnyPart + count * doc_tiles);
    if (count > 1 && time >= least_time) continue;
    best = count;
    least_time = time;
  }
  return best;
}

TrainingParts training_parts(const NetworkShape& shape, std::int64_t members, std::int64_t docs,
                             std::size_t most_shared_bytes) {
  TrainingParts best;
  if (shape.depth != 2 || shape.width > persistent::kMostWidth) return best;
  std::int64_t least_time = 0;
  for (int doc_tiles = 1; doc_tiles <= persistent::kMostDocTiles; ++doc_tiles) {
    const TrainingParts made =
        persistent::parts_of_size(shape, members, docs, doc_tiles, most_shared_bytes);
    if (made.shared_bytes == 0) break;
    const std::int64_t waves = parts_of(made.parts * members, kAllBlocks);
    const std::int64_t time = waves * (persistent::kTimeOfAnyPart + doc_tiles);
    if (doc_tiles > 1 && time >= least_time) continue;
    best = made;
    least_time = time;
  }
  return best;
}

bool trains_persistently(const NetworkShape& shape, std::int64_t members) {
  const std::size_t most_bytes = most_shared_bytes();
  const TrainingParts least = training_parts(shape, members, 1, most_bytes);
  if (least.shared_bytes == 0) return false;
  return blocks_at_once(persistent::kTrainingKernel.alone, dim3{persistent::kThreads}, most_bytes) > 0;
}

PersistentSizes persistent_sizes(const NetworkShape& shape, std::int64_t members, std::int64_t docs,
                                 std::int64_t terms) {
  const TrainingParts parts = training_parts(shape, members, docs, most_shared_bytes());
  const std::int64_t items = members * parts.parts;
  return {members * docs, items * (shape.width * parts.depth() + 4),
          items * parts.docs * parts.unit_shares(), members * 2 * terms,
          members * LossBlocks(terms, shape.parameters(), true, true).all};
}

void train_persistently(Stream stream, const PersistentTraining& training) {
  const NetworkStack& stack = training.stack;
  const TrainingParts parts =
      training_parts(stack.shape, stack.all(), training.history.docs, most_shared_bytes());
  const persistent::Task task{
      training, parts, OutputLayer(stack.shape), stack.shape.layer(0),
      LossBlocks(training.history.count, stack.shape.parameters(), training.objective)};
  const dim3 block{persistent::kThreads};
  const std::int64_t useful = std::max(parts.parts * task.members(), task.members() * task.rows());
  const std::int64_t blocks =
      std::min(blocks_at_once(persistent::kTrainingKernel.alone, block, parts.shared_bytes), useful);
  launch_together(persistent::kTrainingKernel, {blocks}, parts.shared_bytes, stream, task);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
