#pragma once

#include <cstdint>

#include "core/online/preference_pair.h"
#include "core/ops/tangent_shape.h"
#include "cuda/ops/layer_table.h"
#include "cuda/ops/pair_corner.h"
#include "cuda/ops/relu_layers.h"

// The device version of core/ops/block_covariance.h: a covariance that is block-diagonal by unit, A_u = λI
// + scale · Σ_s g_{s,u} g_{s,u}ᵀ, kept as roots of the inverses, A_u⁻¹ = S_uᵀ S_u, in double. Roots are
// full, not triangular as on the CPU, so that all pairs of a round enter in one pass without a chain of
// rows. Nothing is squared before it is factorised, so that no block becomes indefinite.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Where the blocks are, as a kernel argument: of the units of the layers from first_layer on.
struct BlockTable {
  LayerTable layers;
  std::int64_t first_unit = 0;
  std::int64_t largest = 0;  // parameters of the largest block
  std::int64_t parameters = 0;
  std::int64_t numbers = 0;  // of all roots
  // Of the first block of each layer:
  std::int64_t first_parameter[kMostDeviceLayers] = {};
  std::int64_t first_number[kMostDeviceLayers] = {};

  BlockTable(const TangentShape& shape, std::int64_t first_layer);

  OLRANK_HOST_DEVICE std::int64_t count() const { return layers.units() - first_unit; }

  struct Block {
    const NetworkLayer* layer;
    std::int64_t unit;    // of the layer
    std::int64_t size;    // parameters: weights, then the bias
    std::int64_t first;   // parameters of the blocks before it
    std::int64_t number;  // numbers of the roots before its own

    /// The place of δ in a document's row of factors.
    OLRANK_HOST_DEVICE std::int64_t delta() const { return layer->delta + unit; }
    /// ∂score/∂θ of a document for the block's k-th parameter, from its row of factors.
    OLRANK_HOST_DEVICE double gradient(const float* factors, std::int64_t k) const {
      const double of_unit{factors[delta()]};
      return k < layer->columns ? of_unit * double{factors[layer->input + k]} : of_unit;
    }
  };
  OLRANK_HOST_DEVICE Block block(std::int64_t index) const {
    const std::int64_t l = layers.layer_number(first_unit + index);
    const std::int64_t unit = layers.row_of(first_unit + index);
    const std::int64_t size = layers.layer[l].unit_parameters();
    return {&layers.layer[l], unit, size, first_parameter[l] + unit * size,
            first_number[l] + unit * size * size};
  }
};

/// Every root = value · I.
void reset_block_roots(Stream stream, const BlockTable& blocks, double value, double* roots);

/// w [docs × size] of each block, one block after another: the rows S_u g_{i,u}, without √scale.
void block_rows(Stream stream, const BlockTable& blocks, const FactorRows& rows, const double* roots,
                double* w);

/// Doubles of workspace of block_gram().
std::int64_t block_gram_workspace(const BlockTable& blocks, std::int64_t docs);

/// m [docs × docs] (lower triangle) = scale · Σ_u w_u w_uᵀ. Units that are inactive for a tile's documents
/// are skipped.
void block_gram(Stream stream, const BlockTable& blocks, const FactorRows& rows, const double* w,
                double scale, double* workspace, double* m);

/// Vectors v along which drift is measured, with a = Av and the energies vᵀAv of each block, which are kept
/// by adding up. Parameters are in the order of the blocks.
struct BlockProbes {
  std::int64_t count = 0;
  const double* directions = nullptr;  // v, [count × parameters]
  double* products = nullptr;          // a, [count × parameters]
  double* energies = nullptr;          // [count × blocks]
};

/// The most pairs of one update_block_roots().
constexpr std::int64_t kMostPairsOfBlocks = 32;

/// Doubles of workspace of update_block_roots().
std::int64_t update_block_roots_workspace(const BlockTable& blocks, std::int64_t pairs);

/// The roots after pairs of documents that w was computed for: with U = S Γᵀ, a difference of w's rows, and
/// I + UᵀU = L Lᵀ, S ← S − U (L + I)⁻ᵀ L⁻¹ Uᵀ S (Andrews, "A square root formulation of the Kalman
/// covariance equations", AIAA Journal 6(6), 1968). Fails, with the roots unchanged, only if numbers are
/// not finite. Blocks whose unit is inactive for all pairs are not touched.
void update_block_roots(Stream stream, const BlockTable& blocks, const FactorRows& rows, const double* w,
                        const PreferencePair* pairs, std::int64_t count, double scale, double* workspace,
                        double* roots, const BlockProbes& probes, CovarianceStatus* status);

/// found [probes × blocks] = ‖S a‖², which is aᵀA⁻¹a = vᵀAv.
void block_energies(Stream stream, const BlockTable& blocks, const double* roots, const BlockProbes& probes,
                    double* found);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
