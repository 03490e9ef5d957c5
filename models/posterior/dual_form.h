#pragma once

#include <vector>

#include "core/ops/inverse_factor.h"
#include "core/runtime/aligned_vector.h"
#include "models/posterior/full_form.h"

namespace olrank {

/// By pairs: L Lᵀ = s K_nn + λI with K the tangent kernel among pairs, S = s L⁻¹ K_nV, and
/// M = (s K_VV − SᵀS)/λ. No p × p matrix; n²/2 numbers. Pairs of the documents of the latest
/// widths_for_update() are observed by its S and M, without another pass over L⁻¹.
class DualForm : public FullForm {
 public:
  using FullForm::FullForm;

  WidthHealth widths(ExecutionContext& context, const ObservedPairs& history, TangentFactors docs,
                     std::span<double> width_sq) const override;
  WidthHealth widths_for_update(ExecutionContext& context, const ObservedPairs& history,
                                TangentFactors docs, std::span<double> width_sq) override;
  std::unique_ptr<FullForm> freeze() const override;
  void observe(ExecutionContext& context, const ObservedPairs& history, std::int64_t first,
               TangentFactors docs, std::span<const PreferencePair> pairs) override;
  void rebuild(ExecutionContext& context, const ObservedPairs& history) override;
  void solve(ExecutionContext& context, const ObservedPairs& history, std::span<const double> v,
             std::span<double> solution) const override;

  /// The observed pairs: rows of L.
  std::int64_t pairs() const { return factor_.size(); }
  double log_det() const override { return log_det_; }
  std::int64_t bytes() const override { return factor_.bytes(); }
  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  /// The documents of the latest find_latest(), their S and their M.
  struct LatestGram {
    std::int64_t pairs = -1;  // when it was called; -1: no documents
    std::vector<float> factors;
    AlignedVector<double> solved;
    std::vector<double> m;
  };

  /// M [docs × docs] (lower triangle) and S [n × docs].
  void find_gram(ExecutionContext& context, const ObservedPairs& history, TangentFactors docs,
                 double* solved, double* m) const;
  void find_latest(ExecutionContext& context, const ObservedPairs& history, TangentFactors docs);
  bool is_latest(TangentFactors docs) const;
  void append(ExecutionContext& context, const ObservedPairs& history, std::int64_t first);

  InverseFactor factor_;
  Lineage lineage_;       // of its full blocks
  double log_det_ = 0.0;  // 2 Σ log L_ii − n log λ
  LatestGram latest_;
};

}  // namespace olrank
