#include "recommend/mter/mter_kernels.h"

#include <algorithm>
#include <cstring>

#include "core/runtime/vector_clones.h"
#include "recommend/factors/factor_matrix.h"
#include "recommend/factors/pair_draws.h"

namespace olrank {
namespace {

/// Σ_r x_r · matrix[r], r < count: a row of Width numbers.
template <int Width>
OLRANK_ALWAYS_INLINE void combine_rows(const float* matrix, const float* x, std::int64_t count,
                                       float* sum) {
  float kept[Width] = {};
  for (std::int64_t r = 0; r < count; ++r) {
    for (int i = 0; i < Width; ++i) kept[i] += x[r] * matrix[r * Width + i];
  }
  for (int i = 0; i < Width; ++i) sum[i] = kept[i];
}

/// matrix[r] += scale · x_r · y.
template <int Width>
OLRANK_ALWAYS_INLINE void add_outer(float scale, const float* x, std::int64_t count, const float* y,
                                    float* matrix) {
  for (std::int64_t r = 0; r < count; ++r) {
    const float factor = scale * x[r];
    for (int i = 0; i < Width; ++i) matrix[r * Width + i] += factor * y[i];
  }
}

template <int Width>
OLRANK_ALWAYS_INLINE double tucker_entries_of(const EntryPiece& piece) {
  std::memset(piece.feature_part, 0, sizeof(float) * Width * Width);
  double squares = 0.0;
  for (std::int64_t s = 0; s < piece.count; ++s) {
    const float* const u = piece.rows + std::int64_t{piece.row[s]} * Width;
    const float* const v = piece.columns + std::int64_t{piece.column[s]} * Width;
    float* const u_gradient = piece.row_gradients + s * Width;
    float* const v_gradient = piece.column_gradients + s * Width;
    combine_rows<Width>(piece.transposed, v, piece.column_columns, u_gradient);  // P v
    combine_rows<Width>(piece.contracted, u, piece.row_columns, v_gradient);     // Pᵀ u
    const float error = product_of_rows(u, u_gradient, Width) - piece.value[s];
    squares += double{error} * double{error};
    const float slope = piece.weight * error;
    add_outer<Width>(slope, u, piece.row_columns, v, piece.feature_part);
    for (int i = 0; i < Width; ++i) u_gradient[i] *= slope;
    for (int i = 0; i < Width; ++i) v_gradient[i] *= slope;
  }
  return squares;
}

OLRANK_VECTOR_CLONES double tucker_entries_16(const EntryPiece& piece) {
  return tucker_entries_of<16>(piece);
}
OLRANK_VECTOR_CLONES double tucker_entries_32(const EntryPiece& piece) {
  return tucker_entries_of<32>(piece);
}
OLRANK_VECTOR_CLONES double tucker_entries_48(const EntryPiece& piece) {
  return tucker_entries_of<48>(piece);
}
OLRANK_VECTOR_CLONES double tucker_entries_64(const EntryPiece& piece) {
  return tucker_entries_of<64>(piece);
}

OLRANK_VECTOR_CLONES double canonical_entries_loop(const EntryPiece& piece) {
  const std::int64_t width = piece.width;
  const float* const f = piece.contracted;
  float* const f_gradient = piece.feature_part;
  std::memset(f_gradient, 0, sizeof(float) * width);
  double squares = 0.0;
  for (std::int64_t s = 0; s < piece.count; ++s) {
    const float* const u = piece.rows + std::int64_t{piece.row[s]} * width;
    const float* const v = piece.columns + std::int64_t{piece.column[s]} * width;
    float* const u_gradient = piece.row_gradients + s * width;
    float* const v_gradient = piece.column_gradients + s * width;
    for (std::int64_t i = 0; i < width; ++i) u_gradient[i] = f[i] * v[i];
    const float error = product_of_rows(u, u_gradient, width) - piece.value[s];
    squares += double{error} * double{error};
    const float slope = piece.weight * error;
    for (std::int64_t i = 0; i < width; ++i) u_gradient[i] *= slope;
    for (std::int64_t i = 0; i < width; ++i) v_gradient[i] = slope * f[i] * u[i];
    for (std::int64_t i = 0; i < width; ++i) f_gradient[i] += slope * u[i] * v[i];
  }
  return squares;
}

/// Splits a piece's pairs into runs and sets `run_of` and `run_users`.
std::int64_t find_runs(const PairPiece& piece) {
  std::int64_t runs = 0;
  for (std::int64_t s = 0; s < piece.count; ++s) {
    if (s == 0 || piece.pairs[s].user != piece.pairs[s - 1].user)
      piece.run_users[runs++] = piece.pairs[s].user;
    piece.run_of[s] = static_cast<std::int32_t>(runs - 1);
  }
  return runs;
}

/// Differences of the scores of winners and losers.
OLRANK_VECTOR_CLONES void pair_differences(const PairPiece& piece, float* differences) {
  for (std::int64_t s = 0; s < piece.count; ++s) {
    const float* const direction = piece.directions + piece.run_of[s] * piece.width;
    const float* const winner = piece.items + std::int64_t{piece.pairs[s].winner} * piece.width;
    const float* const loser = piece.items + std::int64_t{piece.pairs[s].loser} * piece.width;
    float lanes[kFactorLanes] = {};
    for (std::int64_t begin = 0; begin < piece.width; begin += kFactorLanes) {
      for (std::int64_t lane = 0; lane < kFactorLanes; ++lane)
        lanes[lane] += direction[begin + lane] * (winner[begin + lane] - loser[begin + lane]);
    }
    for (std::int64_t lane = 0; lane < 8; ++lane) lanes[lane] += lanes[lane + 8];
    for (std::int64_t lane = 0; lane < 4; ++lane) lanes[lane] += lanes[lane + 4];
    differences[s] = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  }
}

/// Σ δ (I_j − I_l) of each run, into what becomes the user's gradient.
OLRANK_VECTOR_CLONES void sum_item_differences(const PairPiece& piece, std::int64_t runs) {
  const std::int64_t width = piece.width;
  std::memset(piece.user_gradients, 0, sizeof(float) * runs * width);
  for (std::int64_t s = 0; s < piece.count; ++s) {
    float* const sum = piece.user_gradients + piece.run_of[s] * width;
    const float* const winner = piece.items + std::int64_t{piece.pairs[s].winner} * width;
    const float* const loser = piece.items + std::int64_t{piece.pairs[s].loser} * width;
    const float slope = piece.slopes[s];
    for (std::int64_t i = 0; i < width; ++i) sum[i] += slope * (winner[i] - loser[i]);
  }
}

double slopes_of_pairs(const PairPiece& piece) {
  float differences[PairDraws::kBlock];
  pair_differences(piece, differences);
  const auto count = static_cast<std::size_t>(piece.count);
  return pair_slopes({differences, count}, piece.weight, {piece.slopes, count});
}

template <int Width>
OLRANK_ALWAYS_INLINE void tucker_directions_of(const PairPiece& piece, std::int64_t runs) {
  for (std::int64_t run = 0; run < runs; ++run) {
    const float* const user = piece.users + std::int64_t{piece.run_users[run]} * Width;
    combine_rows<Width>(piece.contracted, user, piece.user_columns, piece.directions + run * Width);
  }
}
template <int Width>
OLRANK_ALWAYS_INLINE void tucker_user_gradients_of(const PairPiece& piece, std::int64_t runs) {
  std::memset(piece.feature_part, 0, sizeof(float) * Width * Width);
  for (std::int64_t run = 0; run < runs; ++run) {
    const float* const user = piece.users + std::int64_t{piece.run_users[run]} * Width;
    float* const gradient = piece.user_gradients + run * Width;
    add_outer<Width>(1.0F, user, piece.user_columns, gradient, piece.feature_part);
    combine_rows<Width>(piece.transposed, gradient, piece.item_columns, gradient);
  }
}

OLRANK_VECTOR_CLONES void tucker_directions_16(const PairPiece& piece, std::int64_t runs) {
  tucker_directions_of<16>(piece, runs);
}
OLRANK_VECTOR_CLONES void tucker_directions_32(const PairPiece& piece, std::int64_t runs) {
  tucker_directions_of<32>(piece, runs);
}
OLRANK_VECTOR_CLONES void tucker_directions_48(const PairPiece& piece, std::int64_t runs) {
  tucker_directions_of<48>(piece, runs);
}
OLRANK_VECTOR_CLONES void tucker_directions_64(const PairPiece& piece, std::int64_t runs) {
  tucker_directions_of<64>(piece, runs);
}
OLRANK_VECTOR_CLONES void tucker_user_gradients_16(const PairPiece& piece, std::int64_t runs) {
  tucker_user_gradients_of<16>(piece, runs);
}
OLRANK_VECTOR_CLONES void tucker_user_gradients_32(const PairPiece& piece, std::int64_t runs) {
  tucker_user_gradients_of<32>(piece, runs);
}
OLRANK_VECTOR_CLONES void tucker_user_gradients_48(const PairPiece& piece, std::int64_t runs) {
  tucker_user_gradients_of<48>(piece, runs);
}
OLRANK_VECTOR_CLONES void tucker_user_gradients_64(const PairPiece& piece, std::int64_t runs) {
  tucker_user_gradients_of<64>(piece, runs);
}

OLRANK_VECTOR_CLONES void canonical_directions(const PairPiece& piece, std::int64_t runs) {
  for (std::int64_t run = 0; run < runs; ++run) {
    const float* const user = piece.users + std::int64_t{piece.run_users[run]} * piece.width;
    float* const direction = piece.directions + run * piece.width;
    for (std::int64_t i = 0; i < piece.width; ++i) direction[i] = piece.contracted[i] * user[i];
  }
}
OLRANK_VECTOR_CLONES void canonical_user_gradients(const PairPiece& piece, std::int64_t runs) {
  std::memset(piece.feature_part, 0, sizeof(float) * piece.width);
  for (std::int64_t run = 0; run < runs; ++run) {
    const float* const user = piece.users + std::int64_t{piece.run_users[run]} * piece.width;
    float* const gradient = piece.user_gradients + run * piece.width;
    for (std::int64_t i = 0; i < piece.width; ++i) piece.feature_part[i] += user[i] * gradient[i];
    for (std::int64_t i = 0; i < piece.width; ++i) gradient[i] *= piece.contracted[i];
  }
}

OLRANK_VECTOR_CLONES void add_scaled_loop(float factor, const float* part, std::int64_t size, float* sum) {
  for (std::int64_t i = 0; i < size; ++i) sum[i] += factor * part[i];
}

OLRANK_VECTOR_CLONES void add_rows_loop(const float* rows, const std::int32_t* samples, std::size_t count,
                                        std::int64_t width, float* sum) {
  for (std::size_t s = 0; s < count; ++s) {
    const float* const row = rows + samples[s] * width;
    for (std::int64_t i = 0; i < width; ++i) sum[i] += row[i];
  }
}
OLRANK_VECTOR_CLONES void add_directions_loop(float sign, const float* slopes, const std::int32_t* run_of,
                                              const float* directions, const std::int32_t* pairs,
                                              std::size_t count, std::int64_t width, float* sum) {
  for (std::size_t s = 0; s < count; ++s) {
    const float* const direction = directions + run_of[pairs[s]] * width;
    const float factor = sign * slopes[pairs[s]];
    for (std::int64_t i = 0; i < width; ++i) sum[i] += factor * direction[i];
  }
}

}  // namespace

double tucker_entries(const EntryPiece& piece) {
  switch (piece.width) {
    case 16:
      return tucker_entries_16(piece);
    case 32:
      return tucker_entries_32(piece);
    case 48:
      return tucker_entries_48(piece);
    default:
      return tucker_entries_64(piece);
  }
}

double canonical_entries(const EntryPiece& piece) {
  return canonical_entries_loop(piece);
}

PairOutcome tucker_pairs(const PairPiece& piece) {
  PairOutcome outcome{find_runs(piece), 0.0};
  const auto directions = piece.width == 16   ? tucker_directions_16
                          : piece.width == 32 ? tucker_directions_32
                          : piece.width == 48 ? tucker_directions_48
                                              : tucker_directions_64;
  const auto user_gradients = piece.width == 16   ? tucker_user_gradients_16
                              : piece.width == 32 ? tucker_user_gradients_32
                              : piece.width == 48 ? tucker_user_gradients_48
                                                  : tucker_user_gradients_64;
  directions(piece, outcome.runs);
  outcome.loss = slopes_of_pairs(piece);
  sum_item_differences(piece, outcome.runs);
  user_gradients(piece, outcome.runs);
  return outcome;
}

PairOutcome canonical_pairs(const PairPiece& piece) {
  PairOutcome outcome{find_runs(piece), 0.0};
  canonical_directions(piece, outcome.runs);
  outcome.loss = slopes_of_pairs(piece);
  sum_item_differences(piece, outcome.runs);
  canonical_user_gradients(piece, outcome.runs);
  return outcome;
}

void contract_core(const float* core, const float* f, std::int64_t count, std::int64_t width,
                   float* contracted, float* transposed) {
  std::memset(contracted, 0, sizeof(float) * width * width);
  for (std::int64_t v = 0; v < count; ++v)
    add_scaled_loop(f[v], core + v * width * width, width * width, contracted);
  for (std::int64_t r = 0; r < width; ++r) {
    for (std::int64_t t = 0; t < width; ++t) transposed[t * width + r] = contracted[r * width + t];
  }
}

void add_rows(const float* rows, std::span<const std::int32_t> samples, std::int64_t width, float* sum) {
  if (!samples.empty()) add_rows_loop(rows, samples.data(), samples.size(), width, sum);
}

void add_directions(float sign, const float* slopes, const std::int32_t* run_of, const float* directions,
                    std::span<const std::int32_t> pairs, std::int64_t width, float* sum) {
  if (!pairs.empty())
    add_directions_loop(sign, slopes, run_of, directions, pairs.data(), pairs.size(), width, sum);
}

void add_scaled(float factor, const float* part, std::int64_t size, float* sum) {
  add_scaled_loop(factor, part, size, sum);
}

}  // namespace olrank
