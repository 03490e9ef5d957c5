#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/runtime/aligned_vector.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// L⁻¹ of a symmetric positive definite matrix B = L Lᵀ that grows by rows at its end: explicit, so that
/// L⁻¹X is a matrix product, at n² multiplications a column as a triangular solve has. Rows lie in blocks
/// of kBlock, each as wide as its last row, zeros above the diagonal: growing copies nothing. While a block
/// is not full it holds rows of L, which cost nothing to append; a full block is inverted at once, a matrix
/// product where rows one by one would read all of L⁻¹ each. Copies share the rows that both have, for
/// threads that read while one other appends; only one of them may grow.
class InverseFactor {
 public:
  static constexpr std::int64_t kBlock = 128;

  std::int64_t size() const { return size_; }
  /// Rows of L⁻¹; those from here to size() are rows of L.
  std::int64_t inverted() const { return inverted_; }
  /// Rows that fill the block which is not full.
  std::int64_t room() const { return kBlock - size_ % kBlock; }
  std::int64_t blocks() const { return static_cast<std::int64_t>(blocks_.size()); }
  /// Block b's rows, kBlock · (b + 1) numbers apart; the last block's rows end at size().
  const double* block(std::int64_t b) const { return blocks_[static_cast<std::size_t>(b)]->data(); }
  double* block(std::int64_t b) { return blocks_[static_cast<std::size_t>(b)]->data(); }
  static std::int64_t stride(std::int64_t b) { return kBlock * (b + 1); }
  /// Of the rows; what is set aside for more does not count.
  std::int64_t bytes() const;

  void clear();
  /// Makes room for rows up to `size`, which the caller writes, full blocks as L⁻¹; new numbers are zero.
  void grow(std::int64_t size);
  /// Makes room for one more row of L, which the caller writes.
  double* add_row();
  /// Puts rows of L⁻¹ in the place of those of L, which copies may still read.
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

/// Appends `columns` rows to B: `cross` [n × columns] is its part beside the old rows, `corner`
/// [columns × columns] (lower triangle, overwritten) its part among the new ones. Returns by how much
/// log det B grew. Throws NumericError, before anything has changed, where the grown B is not positive
/// definite.
double append(ExecutionContext& context, InverseFactor& factor, std::int64_t columns, const double* cross,
              std::int64_t stride_cross, double* corner, std::int64_t stride_corner);

/// The same for who has u = L⁻¹ cross and has taken uᵀu from the corner.
double append_solved(ExecutionContext& context, InverseFactor& factor, std::int64_t columns,
                     const double* u, std::int64_t stride_u, double* corner, std::int64_t stride_corner);

/// Inverts the rows of L that wait for their block to be full. Nothing can be appended afterwards.
void invert_open_rows(ExecutionContext& context, InverseFactor& factor);

}  // namespace olrank
