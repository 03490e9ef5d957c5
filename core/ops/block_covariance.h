#pragma once

#include <cstdint>
#include <span>

#include "core/ops/tangent_factors.h"

// A covariance that is block-diagonal by unit: A_u = λI + scale · Σ_s g_{s,u} g_{s,u}ᵀ of the weights and
// the bias of each unit u. A block is kept as a square root S_u of its inverse, A_u⁻¹ = S_uᵀ S_u, [size ×
// size] row-major in double, the bias last. Nothing is squared, so that no block can become indefinite.
namespace olrank {

/// The weights and the bias of one unit.
struct UnitBlock {
  NetworkLayer layer;
  std::int64_t unit = 0;    // of the layer
  std::int64_t size = 0;    // parameters
  std::int64_t first = 0;   // parameters of the blocks before it
  std::int64_t offset = 0;  // numbers of the roots before its own
};

/// The blocks of the layers from `first_layer` on: 0 for all units, depth − 1 for the output layer alone.
struct UnitBlocks {
  NetworkShape shape;
  std::int64_t first_layer = 0;

  /// Units.
  std::int64_t count() const { return (shape.depth - 1 - first_layer) * shape.width + 1; }
  /// Block `index`, by layer and then by unit.
  UnitBlock block(std::int64_t index) const;
  /// Of all blocks.
  std::int64_t parameters() const;
  /// Numbers of all roots.
  std::int64_t root_size() const;
};

/// width_sq [docs × docs] = scale · Σ_u ‖S_u (g_{i,u} − g_{j,u})‖², exactly symmetric and never negative;
/// NaN or infinite only where factors are. Unit by unit, over the documents for which the unit is active,
/// from differences where the norms cancel.
void block_width_sq(ExecutionContext& context, const UnitBlocks& blocks, TangentFactors docs, double scale,
                    const double* roots, double* width_sq);

/// The roots after these pairs, all at once: with U = S Γᵀ, the rows of Γ √scale g_s, and I + UᵀU = L Lᵀ,
/// S ← S − U (L + I)⁻ᵀ L⁻¹ Uᵀ S (Andrews, "A square root formulation of the Kalman covariance equations",
/// AIAA Journal 6(6), 1968); pairs of very much information one at a time. O(k · size²) for a block in
/// which k pairs are active. Returns the increase of Σ_u log det A_u.
double update_block_roots(ExecutionContext& context, const UnitBlocks& blocks, TangentFactors pairs,
                          double scale, double* roots);

}  // namespace olrank
