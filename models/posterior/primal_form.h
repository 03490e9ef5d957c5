#pragma once

#include <memory>

#include "core/runtime/aligned_vector.h"
#include "models/posterior/full_form.h"

namespace olrank {

/// By parameters: A⁻¹ itself, p² numbers, updated by all pairs of a round at once. Widths take all of it,
/// or its diagonal alone.
class PrimalForm : public FullForm {
 public:
  PrimalForm(const TangentShape& shape, double lambda, double scale, bool by_diagonal);

  WidthHealth widths(ExecutionContext& context, const ObservedPairs& history, TangentFactors docs,
                     std::span<double> width_sq) const override;
  std::unique_ptr<FullForm> freeze() const override {
    shared_ = true;
    return std::make_unique<PrimalForm>(*this);
  }
  void observe(ExecutionContext& context, const ObservedPairs& history, std::int64_t first,
               TangentFactors docs, std::span<const PreferencePair> pairs) override;
  void rebuild(ExecutionContext& context, const ObservedPairs& history) override;
  void solve(ExecutionContext& context, const ObservedPairs& history, std::span<const double> v,
             std::span<double> solution) const override;

  double log_det() const override { return log_det_; }
  std::int64_t bytes() const override {
    return static_cast<std::int64_t>(inverse_->size() * sizeof(double));
  }
  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  using Matrix = AlignedVector<double>;
  /// A⁻¹ to write to: copied first if a frozen form shares it.
  double* writable();

  bool by_diagonal_;
  std::shared_ptr<Matrix> inverse_;  // [p × p]
  mutable bool shared_ = false;      // with a frozen form
  double log_det_ = 0.0;             // log det(A)/det(λI)
};

}  // namespace olrank
