#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "core/ops/blas.h"
#include "core/ops/block_covariance.h"
#include "core/ops/pair_width.h"

namespace olrank {
namespace {

using blas::Transpose;

constexpr std::int64_t kTile = 48;
// Partial sums, V × V numbers each: enough for the threads, few enough for memory at V above 1,000.
constexpr std::int64_t kParts = 16;

/// row = factor · g of one unit, [inputs, bias], without the scale of the covariance, minus `other` [size].
void unit_gradient(const UnitBlock& block, const float* factors, const double* other, double factor,
                   double* row) {
  const double delta{factors[block.layer.delta + block.unit]};
  if (delta == 0.0) {
    for (std::int64_t c = 0; c < block.size; ++c) row[c] = -factor * other[c];
    return;
  }
  const float* input = factors + block.layer.input;
  for (std::int64_t c = 0; c < block.layer.columns; ++c)
    row[c] = factor * (delta * double{input[c]} - other[c]);
  const std::int64_t last = block.layer.columns;
  if (block.layer.has_bias()) row[last] = factor * (delta - other[last]);
}

/// The squared distances between a unit's gradients of the documents under its A⁻¹.
class UnitDistances {
 public:
  UnitDistances(Scratch& scratch, const TangentShape& shape, std::int64_t docs)
      : slots_(scratch.take<std::int64_t>(docs)) {
    const std::int64_t widest = shape.most_columns() + 1;
    const std::int64_t rows = docs + 1;
    first_ = scratch.take<double>(widest);
    rows_ = scratch.take<double>(rows * widest);
    half_ = scratch.take<double>(rows * widest);
    distance_sq_ = scratch.take<double>(rows * rows);
  }

  /// Adds them to the lower triangle of sum [docs × docs].
  void add(const UnitBlock& block, const TangentShape& shape, TangentFactors docs, double root_scale,
           const double* root, double* sum) {
    const std::int64_t rows = fill_rows(block, shape, docs, root_scale);
    if (rows == 0) return;
    // Tiles of R's rows end at the diagonal.
    for (std::int64_t first = 0; first < block.size; first += kTile) {
      const std::int64_t end = std::min(first + kTile, block.size);
      blas::gemm(Transpose::kNo, Transpose::kYes, rows, end - first, end, 1.0, rows_.data(), block.size,
                 root + first * block.size, block.size, 0.0, half_.data() + first, block.size);
    }
    row_distance_sq(rows, block.size, half_.data(), distance_sq_.data());
    for (std::int64_t i = 0; i < docs.docs; ++i) {
      const double* of_i = distance_sq_.data() + slots_[i] * rows;
      double* out = sum + i * docs.docs;
      for (std::int64_t j = 0; j < i; ++j) out[j] += of_i[slots_[j]];
    }
  }

 private:
  /// The rows of the active documents and one for all others, relative to the first: what all have in
  /// common would only cancel. Returns their number.
  std::int64_t fill_rows(const UnitBlock& block, const TangentShape& shape, TangentFactors docs,
                         double root_scale) {
    const auto is_active = [&](std::int64_t doc) {
      return docs.row(shape, doc)[block.layer.delta + block.unit] != 0.0F;
    };
    std::int64_t first = 0;
    while (first < docs.docs && !is_active(first)) ++first;
    if (first == docs.docs) return 0;
    std::int64_t rows = 0;
    std::int64_t inactive = -1;
    std::fill_n(first_.data(), block.size, 0.0);
    unit_gradient(block, docs.row(shape, first), first_.data(), 1.0, first_.data());
    const auto take_row = [&](std::int64_t doc) {
      unit_gradient(block, docs.row(shape, doc), first_.data(), root_scale,
                    rows_.data() + rows * block.size);
      return rows++;
    };
    for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
      if (is_active(doc)) {
        slots_[doc] = take_row(doc);
      } else {
        if (inactive < 0) inactive = take_row(doc);
        slots_[doc] = inactive;
      }
    }
    return rows;
  }

  std::span<std::int64_t> slots_;  // of the documents: their rows
  std::span<double> first_;        // g of the first active document
  std::span<double> rows_;         // √scale (g_i − g_first)
  std::span<double> half_;         // the same times Rᵀ
  std::span<double> distance_sq_;  // between the rows
};

/// R [n × n] after one more pair with this gradient; the increase of log det A. By rows from the top: with
/// f = R g and α_i² = 1 + f_1² + … + f_i², row i becomes (α_{i−1}/α_i) R_i − f_i/(α_{i−1} α_i) b_i, where
/// b_i = Σ_{j<i} f_j R_j.
double add_to_root(std::int64_t n, const double* gradient, double* root, double* product, double* below) {
  blas::gemv(Transpose::kNo, n, n, 1.0, root, n, gradient, 0.0, product);
  std::fill_n(below, n, 0.0);
  double alpha = 1.0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double f = product[i];
    if (f == 0.0) continue;
    const double next = std::sqrt(alpha * alpha + f * f);
    const double kept = alpha / next;
    const double taken = f / (alpha * next);
    double* row = root + i * n;
    for (std::int64_t j = 0; j <= i; ++j) {
      const double old = row[j];
      row[j] = kept * old - taken * below[j];
      below[j] += f * old;
    }
    alpha = next;
  }
  return 2.0 * std::log(alpha);
}

}  // namespace

std::int64_t UnitBlocks::count() const {
  std::int64_t units = 0;
  for (const NetworkLayer& layer : layers()) units += layer.rows;
  return units;
}

UnitBlock UnitBlocks::block(std::int64_t index) const {
  UnitBlock block;
  for (const NetworkLayer& layer : layers()) {
    block.layer = layer;
    block.size = block.layer.columns + (block.layer.has_bias() ? 1 : 0);
    block.unit = std::min(index, block.layer.rows);
    block.first += block.unit * block.size;
    block.offset += block.unit * block.size * block.size;
    if (index < block.layer.rows) break;
    index -= block.layer.rows;
  }
  return block;
}

std::int64_t UnitBlocks::parameters() const {
  const UnitBlock last = block(count() - 1);
  return last.first + last.size;
}

std::int64_t UnitBlocks::root_size() const {
  const UnitBlock last = block(count() - 1);
  return last.offset + last.size * last.size;
}

void block_width_sq(ExecutionContext& context, const UnitBlocks& blocks, TangentFactors docs, double scale,
                    const double* roots, double* width_sq) {
  const std::int64_t count = docs.docs;
  if (count == 0) return;
  const double root_scale = std::sqrt(scale);
  const std::int64_t per_part = (blocks.count() + kParts - 1) / kParts;
  const std::int64_t used_parts = (blocks.count() + per_part - 1) / per_part;
  Scratch& shared = context.scratch();
  const Scratch::Frame shared_frame(shared);
  const auto parts = shared.take<double>(used_parts * count * count);
  context.for_blocks(blocks.count(), per_part, [&](std::int64_t begin, std::int64_t end, int worker) {
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    UnitDistances distances(scratch, blocks.shape, count);
    double* part = parts.data() + begin / per_part * count * count;
    std::fill_n(part, count * count, 0.0);
    for (std::int64_t index = begin; index < end; ++index) {
      const UnitBlock block = blocks.block(index);
      distances.add(block, blocks.shape, docs, root_scale, roots + block.offset, part);
    }
  });
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = 0; j < i; ++j) {
      double sum = 0.0;
      for (std::int64_t part = 0; part < used_parts; ++part)
        sum += parts[part * count * count + i * count + j];
      width_sq[i * count + j] = width_sq[j * count + i] = sum;
    }
    width_sq[i * (count + 1)] = 0.0;
  }
}

double update_block_roots(ExecutionContext& context, const UnitBlocks& blocks, TangentFactors pairs,
                          double scale, double* roots) {
  assert(pairs.docs % 2 == 0);
  const double root_scale = std::sqrt(scale);
  std::vector<double> log_dets(blocks.count());
  context.for_blocks(blocks.count(), 1, [&](std::int64_t index, std::int64_t, int worker) {
    const UnitBlock block = blocks.block(index);
    const std::int64_t delta = block.layer.delta + block.unit;
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    double* of_loser = scratch.take<double>(block.size).data();
    double* gradient = scratch.take<double>(block.size).data();
    double* product = scratch.take<double>(block.size).data();
    double* below = scratch.take<double>(block.size).data();
    for (std::int64_t pair = 0; pair < pairs.docs / 2; ++pair) {
      const float* winner = pairs.row(blocks.shape, 2 * pair);
      const float* loser = pairs.row(blocks.shape, 2 * pair + 1);
      if (winner[delta] == 0.0F && loser[delta] == 0.0F) continue;
      std::fill_n(of_loser, block.size, 0.0);
      unit_gradient(block, loser, of_loser, 1.0, of_loser);
      unit_gradient(block, winner, of_loser, root_scale, gradient);
      log_dets[index] += add_to_root(block.size, gradient, roots + block.offset, product, below);
    }
  });
  double log_det = 0.0;
  for (const double one : log_dets) log_det += one;
  return log_det;
}

}  // namespace olrank
