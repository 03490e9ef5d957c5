#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "core/ops/blas.h"
#include "core/ops/block_covariance.h"
#include "core/ops/pair_width.h"
#include "core/ops/root_update.h"

namespace olrank {
namespace {

using blas::Transpose;

constexpr std::int64_t kPairsAtOnce = 32;
// The largest ‖S g‖² of pairs that are taken in together. Of several with more, which may be nearly equal,
// rounding would lose that many times its size; one at a time they lose the root of it.
constexpr double kLargestTogether = 1e4;
// Partial sums, V × V numbers each: enough for the threads, few enough for memory at V above 1,000.
constexpr std::int64_t kParts = 16;

/// row += factor · g of one unit, [inputs, bias], without the scale of the covariance.
void add_unit_gradient(const UnitBlock& block, const float* factors, double factor, double* row) {
  const double delta = factor * double{factors[block.layer.delta + block.unit]};
  if (delta == 0.0) return;
  const float* input = factors + block.layer.input;
  for (std::int64_t c = 0; c < block.layer.columns; ++c) row[c] += delta * double{input[c]};
  if (block.layer.has_bias()) row[block.layer.columns] += delta;
}

/// The squared distances between a unit's gradients of the documents under its A⁻¹.
class UnitDistances {
 public:
  UnitDistances(Scratch& scratch, const NetworkShape& shape, std::int64_t docs)
      : slots_(scratch.take<std::int64_t>(docs)) {
    const std::int64_t widest = std::max(shape.inputs, shape.width) + 1;
    const std::int64_t rows = docs + 1;
    rows_ = scratch.take<double>(rows * widest);
    half_ = scratch.take<double>(rows * widest);
    distance_sq_ = scratch.take<double>(rows * rows);
  }

  /// Adds them to the lower triangle of sum [docs × docs].
  void add(const UnitBlock& block, const NetworkShape& shape, TangentFactors docs, double root_scale,
           const double* root, double* sum) {
    const std::int64_t rows = fill_rows(block, shape, docs, root_scale);
    if (rows == 0) return;
    blas::gemm(Transpose::kNo, Transpose::kYes, rows, block.size, block.size, 1.0, rows_.data(), block.size,
               root, block.size, 0.0, half_.data(), block.size);
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
  std::int64_t fill_rows(const UnitBlock& block, const NetworkShape& shape, TangentFactors docs,
                         double root_scale) {
    const auto is_active = [&](std::int64_t doc) {
      return docs.row(shape, doc)[block.layer.delta + block.unit] != 0.0F;
    };
    std::int64_t first = 0;
    while (first < docs.docs && !is_active(first)) ++first;
    if (first == docs.docs) return 0;
    std::int64_t rows = 0;
    std::int64_t inactive = -1;
    const auto take_row = [&](const float* factors) {
      double* row = rows_.data() + rows * block.size;
      std::fill_n(row, block.size, 0.0);
      if (factors != nullptr) add_unit_gradient(block, factors, 1.0, row);
      add_unit_gradient(block, docs.row(shape, first), -1.0, row);
      for (std::int64_t c = 0; c < block.size; ++c) row[c] *= root_scale;
      return rows++;
    };
    for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
      if (is_active(doc)) {
        slots_[doc] = take_row(docs.row(shape, doc));
      } else {
        if (inactive < 0) inactive = take_row(nullptr);
        slots_[doc] = inactive;
      }
    }
    return rows;
  }

  std::span<std::int64_t> slots_;  // of the documents: their rows
  std::span<double> rows_;         // √scale (g_i − g_first)
  std::span<double> half_;         // the same times Sᵀ
  std::span<double> distance_sq_;  // between the rows
};

/// The gradients of the pairs in which a unit is active, √scale g: rows [pairs × size]. Returns their
/// number.
std::int64_t fill_pairs(const UnitBlock& block, const NetworkShape& shape, TangentFactors pairs,
                        double root_scale, double* gradients) {
  const std::int64_t delta = block.layer.delta + block.unit;
  std::int64_t active = 0;
  for (std::int64_t pair = 0; pair < pairs.docs / 2; ++pair) {
    const float* winner = pairs.row(shape, 2 * pair);
    const float* loser = pairs.row(shape, 2 * pair + 1);
    if (winner[delta] == 0.0F && loser[delta] == 0.0F) continue;
    double* row = gradients + active++ * block.size;
    std::fill_n(row, block.size, 0.0);
    add_unit_gradient(block, winner, 1.0, row);
    add_unit_gradient(block, loser, -1.0, row);
    for (std::int64_t c = 0; c < block.size; ++c) row[c] *= root_scale;
  }
  return active;
}

/// Whether pairs with U [n × k] can be taken in at once. I + UᵀU then loses next to no digits.
bool are_weak(std::int64_t n, std::int64_t k, const double* product) {
  for (std::int64_t pair = 0; pair < k; ++pair) {
    double norm_sq = 0.0;
    for (std::int64_t i = 0; i < n; ++i) norm_sq += product[i * k + pair] * product[i * k + pair];
    if (!(norm_sq <= kLargestTogether)) return false;
  }
  return true;
}

/// One block's root [n × n] after k pairs with these gradients; the increase of log det A.
double update_root(Scratch& scratch, std::int64_t n, std::int64_t k, const double* gradients,
                   double* root) {
  if (k == 0) return 0.0;
  const Scratch::Frame frame(scratch);
  const auto product = scratch.take<double>(n * k);  // U = S Γᵀ
  blas::gemm(Transpose::kNo, Transpose::kYes, n, k, n, 1.0, root, n, gradients, n, 0.0, product.data(), k);
  double log_det = 0.0;
  if (k > 1 && !are_weak(n, k, product.data())) {
    for (std::int64_t pair = 0; pair < k; ++pair)
      log_det += update_root(scratch, n, 1, gradients + pair * n, root);
    return log_det;
  }
  const auto factor = scratch.take<double>(k * k);  // L
  std::fill(factor.begin(), factor.end(), 0.0);
  for (std::int64_t i = 0; i < k; ++i) factor[i * (k + 1)] = 1.0;
  RootUpdate rotations;
  for (std::int64_t i = 0; i < n; ++i) rotations.add(product.subspan(i * k, k), factor.data(), k);
  for (std::int64_t i = 0; i < k; ++i) log_det += 2.0 * std::log(factor[i * (k + 1)]);
  const auto correction = scratch.take<double>(k * n);
  blas::gemm(Transpose::kYes, Transpose::kNo, k, n, n, 1.0, product.data(), k, root, n, 0.0,
             correction.data(), n);
  blas::solve_lower(Transpose::kNo, k, n, factor.data(), k, correction.data(), n);
  for (std::int64_t i = 0; i < k; ++i) factor[i * (k + 1)] += 1.0;
  blas::solve_lower(Transpose::kYes, k, n, factor.data(), k, correction.data(), n);
  blas::gemm(Transpose::kNo, Transpose::kNo, n, n, k, -1.0, product.data(), k, correction.data(), n, 1.0,
             root, n);
  return log_det;
}

}  // namespace

UnitBlock UnitBlocks::block(std::int64_t index) const {
  UnitBlock block;
  for (std::int64_t l = first_layer; l < shape.depth; ++l) {
    block.layer = shape.layer(l);
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
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    const auto gradients = scratch.take<double>(kPairsAtOnce * block.size);
    for (std::int64_t first = 0; first < pairs.docs; first += 2 * kPairsAtOnce) {
      const TangentFactors some{pairs.row(blocks.shape, first),
                                std::min(2 * kPairsAtOnce, pairs.docs - first)};
      const std::int64_t active = fill_pairs(block, blocks.shape, some, root_scale, gradients.data());
      log_dets[index] += update_root(scratch, block.size, active, gradients.data(), roots + block.offset);
    }
  });
  double log_det = 0.0;
  for (const double one : log_dets) log_det += one;
  return log_det;
}

}  // namespace olrank
