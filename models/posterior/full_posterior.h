#pragma once

#include <memory>

#include "models/posterior/full_form.h"
#include "models/posterior/posterior.h"
#include "models/posterior/primal_form.h"

namespace olrank {

/// The full covariance in the form that pays, or the diagonal of its inverse. `auto` begins by pairs and
/// goes over to A⁻¹ once the operations lost by not having done so reach what the change costs: never more
/// than twice the work of the best moment, if each observed query was ranked once. What was really ranked
/// does not count, so that who only learns goes over in the same round.
class FullPosterior : public Posterior {
 public:
  explicit FullPosterior(const PosteriorSpec& spec);

  void width_sq(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq) override;
  WidthHealth widths(ExecutionContext& context, TangentFactors docs,
                     std::span<double> width_sq) const override;
  std::shared_ptr<const Posterior> freeze() const override;
  void observe(ExecutionContext& context, TangentFactors docs,
               std::span<const PreferencePair> pairs) override;

  std::int64_t pairs() const override { return history_.pairs(); }
  double log_det() const override { return form_->log_det(); }
  double drift(ExecutionContext& context) const override;
  std::int64_t negative_widths() const override { return negative_widths_; }
  std::string_view form() const override;
  std::int64_t bytes() const override { return history_.bytes() + form_->bytes(); }
  /// How often the numbers had to be made anew.
  std::int64_t rebuilds() const { return rebuilds_; }

  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  FullPosterior(const FullPosterior& other);
  WidthHealth widths_of_diagonal(ExecutionContext& context, TangentFactors docs,
                                 std::span<double> width_sq) const;
  /// widths(), after which pairs of these documents are taken in at less cost.
  WidthHealth look_at(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq);
  void rebuild(ExecutionContext& context, std::string_view why);
  void check_drift(ExecutionContext& context);
  void go_primal(ExecutionContext& context);
  bool primal_fits() const;
  [[noreturn]] void fail(std::string_view what) const;

  PosteriorSpec spec_;
  std::int64_t memory_;
  ObservedPairs history_;
  std::unique_ptr<FullForm> form_;
  bool by_pairs_;               // form_ is a DualForm
  double excess_ = 0.0;         // operations of the rounds so far beyond what the primal form takes
  std::int64_t unchecked_ = 0;  // pairs since the last check
  std::int64_t negative_widths_ = 0;
  std::int64_t rebuilds_ = 0;
};

}  // namespace olrank
