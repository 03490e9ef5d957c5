#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/io/state_archive.h"
#include "core/ops/inverse_factor.h"
#include "core/ops/pair_width.h"
#include "core/runtime/execution_context.h"
#include "models/posterior/observed_pairs.h"

namespace olrank {

/// One of the exact representations of A⁻¹ of the full covariance. FullPosterior owns the history and
/// checks the numbers.
class FullForm {
 public:
  FullForm(const TangentShape& shape, double lambda, double scale)
      : shape_(shape), lambda_(lambda), scale_(scale) {}
  virtual ~FullForm() = default;
  FullForm& operator=(const FullForm&) = delete;

  /// width_sq [docs × docs] = s ‖g_i − g_j‖²_{A⁻¹}.
  virtual WidthHealth widths(ExecutionContext& context, const ObservedPairs& history, TangentFactors docs,
                             std::span<double> width_sq) const = 0;
  /// Finds the widths, and keeps what makes observing pairs of these documents cheaper.
  virtual WidthHealth widths_for_update(ExecutionContext& context, const ObservedPairs& history,
                                        TangentFactors docs, std::span<double> width_sq) {
    return widths(context, history, docs, width_sq);
  }
  /// A copy of this form that no later pair changes.
  virtual std::unique_ptr<FullForm> freeze() const = 0;
  /// Observes the history's pairs from number `first` on, which are `pairs` of these documents. Throws
  /// NumericError where rounding or numbers that are not finite prevent that, and then has observed none if
  /// there are at most kObservedAtOnce.
  virtual void observe(ExecutionContext& context, const ObservedPairs& history, std::int64_t first,
                       TangentFactors docs, std::span<const PreferencePair> pairs) = 0;
  static constexpr std::int64_t kObservedAtOnce = 128;
  /// Recomputes everything from the history. After a NumericError the form is invalid.
  virtual void rebuild(ExecutionContext& context, const ObservedPairs& history) = 0;
  /// solution = A⁻¹ v, both [p].
  virtual void solve(ExecutionContext& context, const ObservedPairs& history, std::span<const double> v,
                     std::span<double> solution) const = 0;

  virtual double log_det() const = 0;
  virtual std::int64_t bytes() const = 0;
  virtual void save(StateWriter& state) const = 0;
  virtual void load(StateReader& state) = 0;

 protected:
  FullForm(const FullForm&) = default;

  TangentShape shape_;
  double lambda_;
  double scale_;
};

/// It goes by parameters: A⁻¹ itself, p² numbers, updated by all pairs of a round at once. Widths take all
/// of it, or its diagonal alone.
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

/// It goes by pairs: L Lᵀ = s K_nn + λI with K the tangent kernel among pairs, S = s L⁻¹ K_nV, and M = (s
/// K_VV − SᵀS)/λ. No p × p matrix; n²/2 numbers. Pairs of the documents of the latest widths_for_update()
/// are observed by its S and M, without another pass over L⁻¹.
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
