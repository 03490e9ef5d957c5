#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "recommend/factors/factor_matrix.h"

namespace olrank {

// The arithmetic of MTER's batches on padded rows. All entries of a piece are of one feature k, so that the
// core's contraction with F_k, a matrix P of row × column dimensions, is shared: an entry costs three
// passes over P instead of one over the core. With the canonical decompositions P is diagonal and held as a
// vector.

/// Entries of one tensor and one feature.
struct EntryPiece {
  std::int64_t count = 0;
  const std::int32_t* row = nullptr;
  const std::int32_t* column = nullptr;
  const float* value = nullptr;
  const float* rows = nullptr;     // matrix of padded rows
  const float* columns = nullptr;  // matrix of padded rows
  std::int64_t width = 0;
  std::int64_t row_columns = 0;       // without padding
  std::int64_t column_columns = 0;    // without padding
  const float* contracted = nullptr;  // P, or F_k
  const float* transposed = nullptr;  // Pᵀ
  float weight = 0.0F;                // 2 / entries of the batch
  // Out:
  float* row_gradients = nullptr;     // by entry
  float* column_gradients = nullptr;  // by entry
  float* feature_part = nullptr;      // ∂/∂P, or ∂/∂F_k
};

/// Gradients of the mean of (x̂ − x)²; returns the sum of (x̂ − x)². Jia, PhD thesis, UVA 2022, Eq. (4.1.10),
/// with its indices corrected.
double tucker_entries(const EntryPiece& piece);
double canonical_entries(const EntryPiece& piece);

/// At most PairDraws::kBlock pairs; those of a user are neighbours and form a run.
struct PairPiece {
  std::int64_t count = 0;
  const ItemPair* pairs = nullptr;
  const float* users = nullptr;
  const float* items = nullptr;
  std::int64_t width = 0;
  std::int64_t user_columns = 0;
  std::int64_t item_columns = 0;
  const float* contracted = nullptr;  // P of the overall rating, or its F
  const float* transposed = nullptr;  // null for the canonical decompositions
  double weight = 0.0;                // λ_B / pairs of the batch
  // Out:
  float* slopes = nullptr;         // δ by pair
  std::int32_t* run_of = nullptr;  // by pair, from 0 in each piece
  std::int32_t* run_users = nullptr;
  float* directions = nullptr;      // by run: ∂x̂_i/∂I, so that ∂/∂I_j += δ · direction
  float* user_gradients = nullptr;  // by run
  float* feature_part = nullptr;    // as for entries
};

/// Σ_v f_v · core[v], v < count, and its transpose; both width × width.
void contract_core(const float* core, const float* f, std::int64_t count, std::int64_t width,
                   float* contracted, float* transposed);
/// sum += Σ over samples s of row s.
void add_rows(const float* rows, std::span<const std::int32_t> samples, std::int64_t width, float* sum);
/// sum += factor · part.
void add_scaled(float factor, const float* part, std::int64_t size, float* sum);

/// The pairs of an iteration with their gradients. Blocks are independent of each other; sums over them go
/// in the order of the pairs, so that they are the same on any number of threads.
class PairBatch {
 public:
  /// `draws` outlive this.
  PairBatch(const PairDraws& draws, PhiloxKey key, std::int64_t count);

  std::int64_t count() const { return std::ssize(pairs_); }
  std::int64_t blocks() const { return std::ssize(losses_); }
  std::span<const ItemPair> pairs() const { return pairs_; }

  /// Makes room for gradients of `width` numbers, and for blocks' parts of the feature's gradient.
  void resize(std::int64_t width, std::int64_t part);
  void draw(std::uint32_t iteration, std::int64_t block);
  /// Completes `piece`, which says what users and items are and what a pair weighs.
  void differentiate(std::int64_t block, PairPiece piece);
  void index_users(std::int64_t users) { by_user_.build(run_users_, users); }
  void index_winners(std::int64_t items) { by_winner_.build(winners_, items); }
  void index_losers(std::int64_t items) { by_loser_.build(losers_, items); }

  void add_user_gradient(std::int64_t user, float* sum) const;
  void add_item_gradient(std::int64_t item, float* sum) const;
  void add_feature_gradient(float* sum) const;
  /// Mean of −ln σ; 0 without pairs.
  double mean_loss() const;

 private:
  const PairDraws& draws_;
  PhiloxKey key_;
  std::int64_t width_ = 0;
  std::int64_t part_ = 0;
  std::vector<ItemPair> pairs_;
  std::vector<float> slopes_;
  std::vector<std::int32_t> run_of_;     // in all runs' arrays, by pair
  std::vector<std::int32_t> run_users_;  // −1: no run
  AlignedVector<float> directions_, user_gradients_, feature_parts_;
  std::vector<double> losses_;  // by block
  std::vector<std::int32_t> winners_, losers_;
  RowIndex by_user_, by_winner_, by_loser_;
};

}  // namespace olrank
