#pragma once

#include <cstdint>
#include <span>

#include "recommend/factors/pair_draws.h"

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
  const float* transposed = nullptr;
  double weight = 0.0;  // λ_B / pairs of the batch
  // Out:
  float* slopes = nullptr;         // δ by pair
  std::int32_t* run_of = nullptr;  // by pair, from 0 in each piece
  std::int32_t* run_users = nullptr;
  float* directions = nullptr;      // by run: ∂x̂_i/∂I, so that ∂/∂I_j += δ · direction
  float* user_gradients = nullptr;  // by run
  float* feature_part = nullptr;    // as for entries
};
struct PairOutcome {
  std::int64_t runs = 0;
  double loss = 0.0;  // Σ −ln σ
};
PairOutcome tucker_pairs(const PairPiece& piece);
PairOutcome canonical_pairs(const PairPiece& piece);

/// Σ_v f_v · core[v], v < count, and its transpose; both width × width.
void contract_core(const float* core, const float* f, std::int64_t count, std::int64_t width,
                   float* contracted, float* transposed);
/// sum += Σ over samples s of row s.
void add_rows(const float* rows, std::span<const std::int32_t> samples, std::int64_t width, float* sum);
/// sum += sign · Σ over pairs s of slope s · direction of the pair's run.
void add_directions(float sign, const float* slopes, const std::int32_t* run_of, const float* directions,
                    std::span<const std::int32_t> pairs, std::int64_t width, float* sum);
/// sum += factor · part.
void add_scaled(float factor, const float* part, std::int64_t size, float* sum);

}  // namespace olrank
