#pragma once

#include <cstddef>
#include <cstdint>

#include "core/math/host_device.h"
#include "core/ops/optimizer_step.h"
#include "cuda/ops/pair_training.h"
#include "cuda/ops/replay.h"

// Full-batch training of networks with one hidden layer, all J steps in one cooperative kernel. Its results
// are those of forward_history(), pair_losses(), pair_gradients() and the optimizer's steps, to rounding.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// How documents are split into parts, and a part over the threads of a block. Functions of the sizes and
/// of the shared memory that a block can have, so that sums have the same order on all devices with as
/// much. Each part has the size whose largest share of a block takes the least time on kAllBlocks of them.
struct TrainingParts {
  std::int64_t docs = 0;   // in a part: sixteen a tile
  std::int64_t parts = 0;  // of the history
  int doc_tiles = 0;       // 1 to 20
  int unit_tiles = 0;      // of eight hidden units
  int columns = 0;         // d, and one for the biases
  int row_stride = 0;      // of documents and weights in shared memory
  int most_at_once = 1;    // parts that a block can keep
  std::size_t shared_bytes = 0;

  /// How many parts a block keeps at once, so that `blocks` of them need the least time for `members`.
  OLRANK_HOST_DEVICE std::int64_t at_once(std::int64_t members, std::int64_t blocks) const;
  OLRANK_HOST_DEVICE int depth() const { return (columns + 7) / 8 * 8; }  // of a product over the columns
  OLRANK_HOST_DEVICE int quads() const { return depth() / 4; }
  OLRANK_HOST_DEVICE int padded_units() const { return 8 * unit_tiles; }
  OLRANK_HOST_DEVICE int delta_tiles() const { return (unit_tiles + 1) / 2; }  // of sixteen units
  OLRANK_HOST_DEVICE int delta_stride() const { return 8 * (2 * delta_tiles() + 1); }
  /// Four lanes find the active units of a document for each group of up to 32 of them.
  OLRANK_HOST_DEVICE int unit_shares() const { return 4 * ((unit_tiles + 3) / 4); }
  /// Sums of neighbouring documents start in different banks.
  OLRANK_HOST_DEVICE int sum_stride() const { return unit_shares() + 1; }
};

/// The multiprocessors of an H100 or H200, for which parts are made on any card.
inline constexpr std::int64_t kAllBlocks = 132;

/// For `docs` > 0 documents of `members` networks in all stacks together, on a device whose blocks can have
/// so much shared memory. No part fits into it if shared_bytes is 0.
TrainingParts training_parts(const NetworkShape& shape, std::int64_t members, std::int64_t docs,
                             std::size_t most_shared_bytes);

/// Whether networks of this shape can be trained so, on the calling thread's device.
bool trains_persistently(const NetworkShape& shape, std::int64_t members);

/// The workspace, with sizes by persistent_sizes().
struct PersistentWorkspace {
  float* scores = nullptr;
  float* partial = nullptr;       // gradients, summed over parts of the documents
  std::uint8_t* gates = nullptr;  // which hidden units are active
  double* slopes = nullptr;       // at the ends of terms, of parts with very many
  double* losses = nullptr;       // summed over parts of the terms and parameters
};

struct PersistentSizes {
  std::int64_t scores = 0;
  std::int64_t partial = 0;
  std::int64_t gates = 0;
  std::int64_t slopes = 0;
  std::int64_t losses = 0;
};

/// For a stack of all `members`; a stack of some uses the workspace from its beginning.
PersistentSizes persistent_sizes(const NetworkShape& shape, std::int64_t members, std::int64_t docs,
                                 std::int64_t terms);

struct PersistentTraining {
  NetworkStack stack;
  PairHistoryView history;
  StackedObjective objective = {};
  Optimizer optimizer = Optimizer::kGradientDescent;
  std::int64_t steps = 20;
  const double* step = nullptr;      // [members], σ_t
  const StepRates* rates = nullptr;  // [steps], Adam's
  OptimizerState state = {};         // of optimizers with moments, after begin_training()
  double* gradient = nullptr;        // [members × p] at θ, without any step or loss; null: to train
  PersistentWorkspace workspace;
  // Outputs.
  float* theta = nullptr;   // the stack's
  double* began = nullptr;  // [members], losses before and after
  double* ended = nullptr;
};

/// The bits are equal with any number of blocks, and for a member in any stack. The history has documents.
void train_persistently(Stream stream, const PersistentTraining& training);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
