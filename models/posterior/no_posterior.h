#pragma once

#include <algorithm>

#include "models/posterior/posterior.h"

namespace olrank {

/// No covariance: every width is 0.
class NoPosterior : public Posterior {
 public:
  using Posterior::Posterior;

  void width_sq(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq) override {
    widths(context, docs, width_sq);
  }
  WidthHealth widths(ExecutionContext&, TangentFactors, std::span<double> width_sq) const override {
    std::fill(width_sq.begin(), width_sq.end(), 0.0);
    return {};
  }
  std::shared_ptr<const Posterior> freeze() const override {
    auto frozen = std::make_shared<NoPosterior>(spec_);
    frozen->pairs_ = pairs_;
    return frozen;
  }
  void observe(ExecutionContext&, TangentFactors, std::span<const PreferencePair> pairs) override {
    pairs_ += std::ssize(pairs);
  }
  std::int64_t pairs() const override { return pairs_; }
  double log_det() const override { return 0.0; }
  std::int64_t bytes() const override { return 0; }
  void fields(StateFields& state) override { state.numbers("none_pairs", pairs_); }

 private:
  std::int64_t pairs_ = 0;
};

}  // namespace olrank
