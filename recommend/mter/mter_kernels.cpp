#include "recommend/mter/mter_kernels.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/math/host_device.h"

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

OLRANK_VECTOR_CLONES void tucker_directions(const PairPiece& piece, std::int64_t runs) {
  switch (piece.width) {
    case 16:
      return tucker_directions_of<16>(piece, runs);
    case 32:
      return tucker_directions_of<32>(piece, runs);
    case 48:
      return tucker_directions_of<48>(piece, runs);
    default:
      return tucker_directions_of<64>(piece, runs);
  }
}
OLRANK_VECTOR_CLONES void tucker_user_gradients(const PairPiece& piece, std::int64_t runs) {
  switch (piece.width) {
    case 16:
      return tucker_user_gradients_of<16>(piece, runs);
    case 32:
      return tucker_user_gradients_of<32>(piece, runs);
    case 48:
      return tucker_user_gradients_of<48>(piece, runs);
    default:
      return tucker_user_gradients_of<64>(piece, runs);
  }
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

/// sum += sign · Σ over pairs s of slope s · direction of the pair's run.
OLRANK_VECTOR_CLONES void add_directions(float sign, const float* slopes, const std::int32_t* run_of,
                                         const float* directions, std::span<const std::int32_t> pairs,
                                         std::int64_t width, float* sum) {
  for (const std::int32_t pair : pairs) {
    const float* const direction = directions + run_of[pair] * width;
    const float factor = sign * slopes[pair];
    for (std::int64_t i = 0; i < width; ++i) sum[i] += factor * direction[i];
  }
}

}  // namespace

OLRANK_VECTOR_CLONES double tucker_entries(const EntryPiece& piece) {
  switch (piece.width) {
    case 16:
      return tucker_entries_of<16>(piece);
    case 32:
      return tucker_entries_of<32>(piece);
    case 48:
      return tucker_entries_of<48>(piece);
    default:
      return tucker_entries_of<64>(piece);
  }
}

OLRANK_VECTOR_CLONES double canonical_entries(const EntryPiece& piece) {
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

void contract_core(const float* core, const float* f, std::int64_t count, std::int64_t width,
                   float* contracted, float* transposed) {
  std::memset(contracted, 0, sizeof(float) * width * width);
  for (std::int64_t v = 0; v < count; ++v)
    add_scaled(f[v], core + v * width * width, width * width, contracted);
  for (std::int64_t r = 0; r < width; ++r) {
    for (std::int64_t t = 0; t < width; ++t) transposed[t * width + r] = contracted[r * width + t];
  }
}

OLRANK_VECTOR_CLONES void add_rows(const float* rows, std::span<const std::int32_t> samples,
                                   std::int64_t width, float* sum) {
  for (const std::int32_t sample : samples) {
    const float* const row = rows + sample * width;
    for (std::int64_t i = 0; i < width; ++i) sum[i] += row[i];
  }
}

OLRANK_VECTOR_CLONES void add_scaled(float factor, const float* part, std::int64_t size, float* sum) {
  for (std::int64_t i = 0; i < size; ++i) sum[i] += factor * part[i];
}

PairBatch::PairBatch(const PairDraws& draws, PhiloxKey key, std::int64_t count)
    : draws_(draws),
      key_(key),
      pairs_(count),
      slopes_(count),
      run_of_(count),
      winners_(count),
      losers_(count) {
  const std::int64_t blocks = blocks_of(count, PairDraws::kBlock);
  run_users_.resize(blocks * PairDraws::kBlock);
  losses_.resize(blocks);
}

void PairBatch::resize(std::int64_t width, std::int64_t part) {
  width_ = width;
  part_ = part;
  directions_.resize(run_users_.size() * width);
  user_gradients_.resize(run_users_.size() * width);
  feature_parts_.resize(blocks() * part);
}

void PairBatch::draw(std::uint32_t iteration, std::int64_t block) {
  const std::int64_t begin = block * PairDraws::kBlock;
  const std::int64_t end = std::min(begin + PairDraws::kBlock, count());
  draws_.draw(key_, iteration, begin, count(), {pairs_.data() + begin, pairs_.data() + end});
  for (std::int64_t s = begin; s < end; ++s) {
    winners_[s] = pairs_[s].winner;
    losers_[s] = pairs_[s].loser;
  }
}

void PairBatch::differentiate(std::int64_t block, PairPiece piece) {
  const std::int64_t begin = block * PairDraws::kBlock;
  piece.count = std::min(PairDraws::kBlock, count() - begin);
  piece.pairs = pairs_.data() + begin;
  piece.width = width_;
  piece.slopes = slopes_.data() + begin;
  piece.run_of = run_of_.data() + begin;
  piece.run_users = run_users_.data() + begin;
  piece.directions = directions_.data() + begin * width_;
  piece.user_gradients = user_gradients_.data() + begin * width_;
  piece.feature_part = feature_parts_.data() + block * part_;
  const bool tucker = piece.transposed != nullptr;
  const std::int64_t runs = find_runs(piece);
  (tucker ? tucker_directions : canonical_directions)(piece, runs);
  losses_[block] = slopes_of_pairs(piece);
  sum_item_differences(piece, runs);
  (tucker ? tucker_user_gradients : canonical_user_gradients)(piece, runs);
  for (std::int64_t s = 0; s < piece.count; ++s) piece.run_of[s] += static_cast<std::int32_t>(begin);
  std::fill(run_users_.begin() + begin + runs, run_users_.begin() + begin + PairDraws::kBlock, -1);
}

void PairBatch::add_user_gradient(std::int64_t user, float* sum) const {
  add_rows(user_gradients_.data(), by_user_.samples_of(user), width_, sum);
}

void PairBatch::add_item_gradient(std::int64_t item, float* sum) const {
  add_directions(1.0F, slopes_.data(), run_of_.data(), directions_.data(), by_winner_.samples_of(item),
                 width_, sum);
  add_directions(-1.0F, slopes_.data(), run_of_.data(), directions_.data(), by_loser_.samples_of(item),
                 width_, sum);
}

void PairBatch::add_feature_gradient(float* sum) const {
  for (std::int64_t block = 0; block < blocks(); ++block)
    add_scaled(1.0F, feature_parts_.data() + block * part_, part_, sum);
}

double PairBatch::mean_loss() const {
  if (pairs_.empty()) return 0.0;
  return std::accumulate(losses_.begin(), losses_.end(), 0.0) / static_cast<double>(count());
}

}  // namespace olrank
