#include "models/posterior/diagonal_posterior.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/error.h"
#include "core/online/numeric_errors.h"
#include "core/ops/diagonal_covariance.h"
#include "models/posterior/observed_pairs.h"

namespace olrank {

DiagonalPosterior::DiagonalPosterior(const PosteriorSpec& spec)
    : Posterior(spec), diagonal_(spec.shape.parameters(), spec.lambda), inverse_(diagonal_.size()) {
  invert();
}

void DiagonalPosterior::invert() {
  for (std::size_t k = 0; k < diagonal_.size(); ++k) inverse_[k] = 1.0 / diagonal_[k];
}

std::shared_ptr<const Posterior> DiagonalPosterior::freeze() const {
  return std::make_shared<DiagonalPosterior>(*this);
}

WidthHealth DiagonalPosterior::widths(ExecutionContext& context, TangentFactors docs,
                                      std::span<double> width_sq) const {
  assert(std::ssize(width_sq) == docs.docs * docs.docs);
  diagonal_gram(context, spec_.shape, docs, spec_.scale, inverse_, width_sq.data());
  return pair_width_sq(context, docs.docs, width_sq.data(), width_sq.data());
}

void DiagonalPosterior::width_sq(ExecutionContext& context, TangentFactors docs,
                                 std::span<double> width_sq) {
  const WidthHealth health = widths(context, docs, width_sq);
  if (health.lost > 0) throw_lost_widths(spec_.name());
  negative_widths_ += health.negative;
}

void DiagonalPosterior::observe(ExecutionContext& context, TangentFactors docs,
                                std::span<const PreferencePair> pairs) {
  if (pairs.empty()) return;
  ObservedPairs added(spec_.shape);
  added.append(docs, pairs);
  const AlignedVector<double> before = diagonal_;
  add_to_diagonal(context, spec_.shape, added.all(), spec_.scale, diagonal_);
  if (!std::all_of(diagonal_.begin(), diagonal_.end(), [](double value) { return std::isfinite(value); })) {
    diagonal_ = before;
    throw NumericError("The gradients of the pairs to observe are not finite.");
  }
  invert();
  pairs_ += added.pairs();
}

double DiagonalPosterior::log_det() const {
  double sum = 0.0;
  for (const double value : diagonal_) sum += std::log(value / spec_.lambda);
  return sum;
}

void DiagonalPosterior::fields(StateFields& state) {
  state.numbers("diagonal_pairs", pairs_);
  state.numbers("diagonal_negative_widths", negative_widths_);
  state.sized("diagonal", diagonal_);
  if (state.reads()) invert();
}

}  // namespace olrank
