#pragma once

#include <cstdint>
#include <span>

#include "core/ops/tangent_factors.h"

// A covariance that is block-diagonal by unit: A_u = λI + scale · Σ_s g_{s,u} g_{s,u}ᵀ of the weights and
// the bias of each unit u. A block is kept as the root R_u of its inverse, A_u⁻¹ = R_uᵀ R_u, lower
// triangular in [size × size] numbers in double, row-major, the bias last. Nothing is squared or subtracted
// from a variance, so that no block can become indefinite.
namespace olrank {

/// The weights and the bias of one unit.
struct UnitBlock {
  NetworkLayer layer;
  std::int64_t unit = 0;    // of the layer
  std::int64_t size = 0;    // parameters
  std::int64_t first = 0;   // parameters of the blocks before it
  std::int64_t offset = 0;  // numbers of the roots before its own
};

/// The blocks of the layers from `first_layer` on: of all units, or of the last layer's alone.
struct UnitBlocks {
  TangentShape shape;
  std::int64_t first_layer = 0;

  /// Units.
  std::int64_t count() const;
  std::span<const NetworkLayer> layers() const { return shape.layers().subspan(first_layer); }
  /// Block `index`, by layer and then by unit.
  UnitBlock block(std::int64_t index) const;
  /// Of all blocks.
  std::int64_t parameters() const;
  /// Numbers of all roots.
  std::int64_t root_size() const;
};

/// width_sq [docs × docs] = scale · Σ_u ‖R_u (g_{i,u} − g_{j,u})‖², exactly symmetric and never negative;
/// NaN or infinite only where factors are. Unit by unit, over the documents for which the unit is active,
/// from differences where the norms cancel.
void block_width_sq(ExecutionContext& context, const UnitBlocks& blocks, TangentFactors docs, double scale,
                    const double* roots, double* width_sq);

/// The roots after these pairs, one at a time in O(size²) for each block in which it is active, by rows
/// (Carlson, "Fast triangular formulation of the square root filter", AIAA Journal 11(9), 1973). Returns
/// the increase of Σ_u log det A_u.
double update_block_roots(ExecutionContext& context, const UnitBlocks& blocks, TangentFactors pairs,
                          double scale, double* roots);

}  // namespace olrank
