#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "recommend/mter/mter_kernels.h"
#include "recommend/mter/mter_parameters.h"

namespace olrank {

struct MterLosses {
  std::array<double, kMterTasks> squared_error = {};  // per drawn entry of a tensor
  double pairs = 0.0;                                 // per drawn pair, −ln σ
};

/// Iterations of MTER's training. Each draws a batch from each tensor and pairs, sums gradients in an order
/// that does not depend on threads, and takes one step of AdaGrad with projection on all parameters. Jia,
/// PhD thesis, UVA 2022, §4.1.3.
///
/// Minimised is Σ_t mean over the entries of tensor t of (x̂ − x)² + λ_B · mean over pairs of −ln σ + λ_F Σ
/// over matrices of the mean over rows of ‖row‖² + λ_G Σ_t ‖G_t‖²/rows of F.
/// Deviation: Eq. (4.1.9) prints unsquared norms of whole tensors; its gradient, (4.1.10), belongs to
/// squares, and means make the weights independent of the size of the data. Entry s of a batch is uniform
/// in the s-th of equally many parts of the tensor, which draws every entry as often.
class MterStep {
 public:
  /// Everything outlives this.
  MterStep(const FactorSettings& settings, const MterTensors& tensors, const PairDraws& draws,
           const ReviewCounts& counts, std::uint64_t seed);

  MterLosses gradients(ExecutionContext& context, const MterParameters& parameters,
                       std::uint32_t iteration);
  void update(ExecutionContext& context, MterParameters& parameters);

  // The batch and its gradients, for tests. Penalties are included.
  std::int64_t batch_size(std::size_t task) const { return batches_[task].count; }
  const PairBatch& pairs() const { return pairs_; }
  void shared_gradient(const MterParameters& parameters, MterSide side, std::int64_t row,
                       float* gradient) const;
  void own_gradient(const MterParameters& parameters, std::size_t task, MterSide side, std::int64_t row,
                    float* gradient) const;
  void core_gradient(const MterParameters& parameters, std::size_t task, std::int64_t layer,
                     float* gradient) const;

  static std::int64_t bytes(MterForm form, const FactorSettings& settings, const ReviewCounts& counts);

 private:
  /// A tensor's batch: entries in the order of features, cut into pieces of one feature.
  struct Batch {
    std::int64_t count = 0;
    std::vector<std::int32_t> row, column, feature;
    std::vector<float> value;
    AlignedVector<float> row_gradients, column_gradients;
    RowIndex by_row, by_column;
    std::vector<std::int64_t> piece_ends;         // entries
    std::vector<std::int64_t> feature_ends;       // pieces
    AlignedVector<float> feature_parts;           // by piece
    std::vector<double> squares;                  // by piece
    AlignedVector<float> contracted, transposed;  // by feature
    AlignedVector<float> feature_sums;            // by feature: ∂/∂P, or ∂/∂F
    AlignedVector<float> feature_gradients;       // by feature: ∂/∂F
    AlignedVector<float> core_gradients;
  };

  std::int64_t part_size(const MterParameters& parameters) const;
  void draw(const MterParameters& parameters, ExecutionContext& context, std::uint32_t iteration);
  void draw_entries(std::size_t task, std::uint32_t iteration, std::int64_t block);
  void cut_into_pieces(Batch& batch);
  void entry_piece(const MterParameters& parameters, std::size_t task, std::int64_t piece);
  void pair_piece(const MterParameters& parameters, std::int64_t block);
  void build_index(std::int64_t number, const MterParameters& parameters);
  void sum_features(const MterParameters& parameters, std::size_t task, std::int64_t feature);
  void sum_core(const MterParameters& parameters, std::size_t task, std::int64_t layer);
  void task_gradient(const MterParameters& parameters, std::size_t task, MterSide side, std::int64_t row,
                     float* gradient) const;
  void update_row(MterParameters& parameters, MterSide side, std::int64_t row, float* scratch) const;

  const FactorSettings& settings_;
  const MterTensors& tensors_;
  std::int64_t features_;  // with the overall rating
  std::array<PhiloxKey, kMterTasks> entry_keys_;
  std::array<Batch, kMterTasks> batches_;
  PairBatch pairs_;
};

}  // namespace olrank
