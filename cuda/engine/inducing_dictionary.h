#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/covariance/dictionary_policy.h"
#include "core/io/state_archive.h"
#include "core/ops/tangent_shape.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/growing_matrix.h"
#include "cuda/engine/resident_pairs.h"
#include "cuda/ops/relu_layers.h"
#include "cuda/runtime/products.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// New pairs next to a dictionary: what add() has to know to take them in.
struct ProjectedPairs {
  FactorRows rows;                 // winner then loser
  std::int64_t count = 0;          // of pairs
  std::int64_t members = 0;        // of the dictionary before them
  const double* kernel = nullptr;  // κ [padded members × count]
  double* coordinates = nullptr;   // z = C⁻¹κ, likewise, with room for the members that they bring
  const double* solved = nullptr;  // C⁻ᵀz, transposed: [count × padded members]
};

/// What add() found, on the host.
struct AddedPairs {
  std::vector<double> residual;    // before any of them entered, [count × count]
  std::vector<double> magnitudes;  // of DictionaryPolicy::admit()
  Admission admission;
  /// G Gᵀ = the residual among the pairs that entered, and G⁻¹: [entered × entered].
  std::vector<double> factor;
  std::vector<double> inverse;
};

/// The dictionary Z of the inducing covariance on the device: observed pairs with their factors, and C⁻¹
/// with C Cᵀ = s K_ZZ. The host decides which pairs enter. All sides are padded as GrowingMatrix pads them,
/// with zeros. Works in the stream of `products`.
class InducingDictionary {
 public:
  InducingDictionary(const TangentShape& shape, double scale, std::int64_t budget, Products& products);

  std::int64_t members() const { return pairs_.pairs(); }
  std::int64_t padded_members() const { return GrowingMatrix::padded(members()); }
  ResidentPairs& pairs() { return pairs_; }
  std::int64_t bytes() const;

  /// kernel [padded members × docs] = s k_Z, and of_docs [docs × docs], lower triangle, = s g·g' unless it
  /// is null.
  void find_kernel(const FactorRows& docs, double* of_docs, double* kernel);
  /// x [padded members × pairs] = z of each pair, winner then loser, rows `stride` numbers apart.
  void find_coordinates(const FactorRows& pairs, double* x, std::int64_t stride);
  /// Starts what add() waits for, for at most kMostPairsPerBatch pairs; what it returns is valid until the
  /// next call.
  ProjectedPairs project_pairs(const FactorRows& pairs);
  /// Decides by `policy` which of the latest pairs enter, and lets them: completes their coordinates and
  /// appends to C⁻¹. Waits.
  AddedPairs add(const DictionaryPolicy& policy, const ProjectedPairs& pairs);
  /// zᵀz of the latest pairs, [count × count], after add().
  std::span<const double> gram() const { return gram_; }
  /// C⁻¹.
  GrowingMatrix& inverse() { return inverse_; }

  /// Forgets all members and keeps their memory.
  void clear();
  void save(StateWriter& state) const;
  void load(StateReader& state);

 private:
  /// kernel [padded members × pairs] of at most kMostPairsPerBatch pairs, which lie in kernel_ then.
  void find_pair_kernel(const FactorRows& pairs, double* of_docs);
  void append(const ProjectedPairs& pairs, const AddedPairs& added);
  Stream stream() const { return products_->stream(); }

  TangentShape shape_;
  double scale_;
  std::int64_t budget_;
  Products* products_;
  ResidentPairs pairs_;              // Z
  GrowingMatrix inverse_;            // C⁻¹
  DeviceArray<double> differences_;  // [2 · kMostPairsPerBatch × kMostPairsPerBatch]: winners less losers
  GrowingArray<double> of_docs_;
  GrowingArray<double> both_;
  GrowingArray<double> kernel_;
  GrowingArray<double> coordinates_;
  GrowingArray<double> solved_;
  GrowingArray<double> product_;
  GrowingArray<double> weights_;
  GrowingArray<PreferencePair> entered_;
  std::vector<double> gram_;
};

/// c [rows × columns] ← alpha · op(a) op(b) + beta · c.
struct PlacedOperand {
  const double* values;
  std::int64_t stride;
  bool transposed = false;
};
void multiply_placed(Products& products, std::int64_t rows, std::int64_t columns, std::int64_t inner,
                     const PlacedOperand& a, const PlacedOperand& b, double* c, std::int64_t stride,
                     ProductScales scales = {});

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
