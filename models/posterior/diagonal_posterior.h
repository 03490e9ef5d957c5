#pragma once

#include "core/runtime/aligned_vector.h"
#include "models/posterior/posterior.h"

namespace olrank {

/// The diagonal of A: p numbers, no history.
class DiagonalPosterior : public Posterior {
 public:
  explicit DiagonalPosterior(const PosteriorSpec& spec);

  void width_sq(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq) override;
  WidthHealth widths(ExecutionContext& context, TangentFactors docs,
                     std::span<double> width_sq) const override;
  std::shared_ptr<const Posterior> freeze() const override;
  void observe(ExecutionContext& context, TangentFactors docs,
               std::span<const PreferencePair> pairs) override;

  std::int64_t pairs() const override { return pairs_; }
  /// Σ_k log(A_kk/λ).
  double log_det() const override;
  std::int64_t bytes() const override {
    return static_cast<std::int64_t>((diagonal_.size() + inverse_.size()) * sizeof(double));
  }

  void fields(StateFields& state) override;

 private:
  void invert();

  AlignedVector<double> diagonal_;  // A_kk
  AlignedVector<double> inverse_;   // 1/A_kk
  std::int64_t pairs_ = 0;
};

}  // namespace olrank
