#pragma once

#include <memory>
#include <vector>

#include "core/ops/block_covariance.h"
#include "core/runtime/aligned_vector.h"
#include "models/posterior/posterior.h"

namespace olrank {

/// A without its entries between parameters of different units; or of the output layer alone, where all
/// other parameters count as known. Time and memory do not depend on the observed pairs, which are not
/// kept.
///
/// Drift is measured along a few vectors (core/covariance/block_probes.h). Beyond the bound it warns;
/// nothing is rebuilt, as nothing keeps more digits than roots.
class BlockPosterior : public Posterior {
 public:
  explicit BlockPosterior(const PosteriorSpec& spec);

  void width_sq(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq) override;
  WidthHealth widths(ExecutionContext& context, TangentFactors docs,
                     std::span<double> width_sq) const override;
  std::shared_ptr<const Posterior> freeze() const override;
  void observe(ExecutionContext& context, TangentFactors docs,
               std::span<const PreferencePair> pairs) override;

  std::int64_t pairs() const override { return pairs_; }
  /// Σ_u log det(A_u)/det(λI).
  double log_det() const override { return log_det_; }
  std::int64_t bytes() const override;

  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  using Matrix = AlignedVector<double>;
  /// The roots to write to: copied first if a copy shares them.
  double* writable();
  void add_to_probes(TangentFactors added);
  double measured_drift(ExecutionContext& context) const override;

  UnitBlocks blocks_;
  std::shared_ptr<const std::vector<double>> directions_;
  std::shared_ptr<Matrix> roots_;
  mutable bool shared_ = false;   // with a copy
  std::vector<double> products_;  // Av, a vector for each probe
  std::vector<double> energies_;  // vᵀAv of each block, for each probe
  std::int64_t pairs_ = 0;
  double log_det_ = 0.0;
};

}  // namespace olrank
