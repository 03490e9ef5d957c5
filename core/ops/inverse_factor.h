#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/runtime/execution_context.h"

namespace olrank {

/// L⁻¹ of a symmetric positive definite matrix B = L Lᵀ that grows by rows at its end. L⁻¹ is explicit, so
/// that L⁻¹X is a matrix product at a triangular solve's cost of n² multiplications per column. Rows are
/// stored in blocks of kBlock, each as wide as its last row, with zeros above the diagonal, so that growing
/// copies nothing. A block that is not full holds rows of L, which cost nothing to append. A full block is
/// inverted as a whole, by a matrix product; inverting row by row would read all of L⁻¹ each time. Copies
/// share their common rows, so that threads can read one while another thread appends to the original. Only
/// one of the copies may grow.
class InverseFactor {
 public:
  static constexpr std::int64_t kBlock = 128;

  std::int64_t size() const { return size_; }
  /// Number of rows of L⁻¹; the rows from here to size() are rows of L.
  std::int64_t inverted() const { return inverted_; }
  /// Number of rows until the last block is full.
  std::int64_t room() const { return kBlock - size_ % kBlock; }
  std::int64_t blocks() const { return std::ssize(blocks_); }
  /// Block b's rows, kBlock · (b + 1) numbers apart; the last block's rows end at size().
  const double* block(std::int64_t b) const { return blocks_[b]->data(); }
  double* block(std::int64_t b) { return blocks_[b]->data(); }
  static std::int64_t stride(std::int64_t b) { return kBlock * (b + 1); }
  /// Counts the bytes of the rows, without unused capacity.
  std::int64_t bytes() const;

  void clear();
  /// Makes room for rows up to `size`, which the caller writes, full blocks as L⁻¹; new numbers are zero.
  void grow(std::int64_t size);
  /// Makes room for one more row of L, which the caller writes.
  double* add_row();
  /// Replaces the rows of L with rows of L⁻¹. Copies may still read the old block.
  void set_inverted(std::shared_ptr<AlignedVector<double>> last_block);

 private:
  std::int64_t size_ = 0;
  std::int64_t inverted_ = 0;
  std::vector<std::shared_ptr<AlignedVector<double>>> blocks_;
};

/// y [n × columns] = L⁻¹ x, rows `stride` numbers apart in both; x and y must not overlap.
void apply(ExecutionContext& context, const InverseFactor& factor, std::int64_t columns, const double* x,
           double* y, std::int64_t stride);

/// y [rows × n] = x L⁻¹, likewise.
void apply_from_right(ExecutionContext& context, const InverseFactor& factor, std::int64_t rows,
                      const double* x, double* y, std::int64_t stride);

/// c [columns × columns] ← c − xᵀx, lower triangle, with x [rows × columns].
void subtract_gram(ExecutionContext& context, std::int64_t rows, std::int64_t columns, const double* x,
                   std::int64_t stride_x, double* c, std::int64_t stride_c);

/// Appends `columns` rows to B: `cross` [n × columns] is B's entries between old and new rows, `corner`
/// [columns × columns] (lower triangle, overwritten) those among the new ones. Returns the increase of
/// log det B. Throws NumericError, before anything has changed, if the grown B is not positive definite or
/// not finite.
double append(ExecutionContext& context, InverseFactor& factor, std::int64_t columns, const double* cross,
              std::int64_t stride_cross, double* corner, std::int64_t stride_corner);

/// Appends for callers that have u = L⁻¹ cross and have subtracted uᵀu from the corner.
double append_solved(ExecutionContext& context, InverseFactor& factor, std::int64_t columns,
                     const double* u, std::int64_t stride_u, double* corner, std::int64_t stride_corner);

/// Inverts the rows of L in the last block. Nothing can be appended afterwards.
void invert_open_rows(ExecutionContext& context, InverseFactor& factor);

}  // namespace olrank
