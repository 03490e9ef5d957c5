#include "models/posterior/primal_form.h"

#include <vector>

#include "core/ops/blas.h"
#include "core/ops/diagonal_covariance.h"
#include "core/ops/inverse_covariance.h"

namespace olrank {

PrimalForm::PrimalForm(const TangentShape& shape, double lambda, double scale, bool by_diagonal)
    : FullForm(shape, lambda, scale),
      by_diagonal_(by_diagonal),
      inverse_(std::make_shared<Matrix>(shape.parameters() * shape.parameters())) {
  set_inverse_covariance(shape.parameters(), lambda, inverse_->data());
}

double* PrimalForm::writable() {
  if (shared_) inverse_ = std::make_shared<Matrix>(*inverse_);
  shared_ = false;
  return inverse_->data();
}

WidthHealth PrimalForm::widths(ExecutionContext& context, const ObservedPairs&, TangentFactors docs,
                               std::span<double> width_sq) const {
  if (by_diagonal_) {
    std::vector<double> diagonal(shape_.parameters());
    for (std::size_t k = 0; k < diagonal.size(); ++k) diagonal[k] = (*inverse_)[k * (diagonal.size() + 1)];
    diagonal_gram(context, shape_, docs, scale_, diagonal, width_sq.data());
  } else {
    inverse_covariance_gram(context, shape_, docs, scale_, inverse_->data(), width_sq.data());
  }
  return pair_width_sq(context, docs.docs, width_sq.data(), width_sq.data());
}

void PrimalForm::observe(ExecutionContext& context, const ObservedPairs& history, std::int64_t first,
                         TangentFactors /*docs*/, std::span<const PreferencePair> /*pairs*/) {
  log_det_ += update_inverse_covariance(context, shape_, history.range(first, history.pairs() - first),
                                        scale_, writable());
}

void PrimalForm::rebuild(ExecutionContext& context, const ObservedPairs& history) {
  if (shared_) inverse_ = std::make_shared<Matrix>(inverse_->size());
  shared_ = false;
  log_det_ = inverse_covariance_of(context, shape_, history.all(), lambda_, scale_, inverse_->data());
}

void PrimalForm::solve(ExecutionContext& context, const ObservedPairs&, std::span<const double> v,
                       std::span<double> solution) const {
  const std::int64_t p = shape_.parameters();
  context.for_blocks(p, 256, [&](std::int64_t begin, std::int64_t end, int) {
    blas::gemv(blas::Transpose::kNo, end - begin, p, 1.0, inverse_->data() + begin * p, p, v.data(), 0.0,
               solution.data() + begin);
  });
}

void PrimalForm::save(StateWriter& state) const {
  state.put("primal_log_det", log_det_);
  state.put("primal_inverse", std::span<const double>(*inverse_));
}

void PrimalForm::load(StateReader& state) {
  log_det_ = state.get_one<double>("primal_log_det");
  state.get_into("primal_inverse", std::span<double>(writable(), inverse_->size()));
}

}  // namespace olrank
