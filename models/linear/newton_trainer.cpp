#include "models/linear/newton_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/math/norm.h"
#include "core/ops/blas.h"

namespace olrank {
namespace {

/// A step with the kept inverse is good when it leaves at most this share of the gradient: two such steps
/// cost less than a new inverse.
constexpr double kGoodShrinkage = 0.3;
constexpr int kMostHalvings = 40;

}  // namespace

NewtonTrainer::NewtonTrainer(std::int64_t stride, const Options& options)
    : stride_(stride),
      options_(options),
      theta_(stride),
      gradient_(theta_.size()),
      trial_theta_(theta_.size()),
      trial_gradient_(theta_.size()),
      step_(theta_.size()) {}

void NewtonTrainer::gradient_at(ExecutionContext& context, const FoldedPairs& pairs, double ridge,
                                std::span<const double> theta, std::span<double> gradient) {
  folded_pair_gradient(context, pairs, theta, gradient, {});
  for (std::size_t k = 0; k < gradient.size(); ++k) gradient[k] += ridge * theta[k];
}

/// H = Σ_s count_s σ(1 − σ) row_s row_sᵀ + c I. Only the direction of steps depends on it.
void NewtonTrainer::renew_inverse_hessian(ExecutionContext& context, const FoldedPairs& pairs,
                                          double ridge) {
  constexpr std::int64_t kRows = 256;
  const Scratch::Frame frame(context.scratch());
  const auto curvature = context.scratch().take<double>(pairs.pairs);
  folded_pair_gradient(context, pairs, theta_, gradient_, curvature);
  inverse_hessian_.assign(stride_ * stride_, 0.0);
  const auto scaled = context.scratch().take<double>(kRows * stride_);
  for (std::int64_t begin = 0; begin < pairs.pairs; begin += kRows) {
    const std::int64_t rows = std::min(kRows, pairs.pairs - begin);
    for (std::int64_t i = 0; i < rows; ++i) {
      const double factor = std::sqrt(curvature[begin + i]);
      const double* row = pairs.rows + (begin + i) * stride_;
      for (std::int64_t k = 0; k < stride_; ++k) scaled[i * stride_ + k] = factor * row[k];
    }
    blas::gemm(blas::Transpose::kYes, blas::Transpose::kNo, stride_, stride_, rows, 1.0, scaled.data(),
               stride_, scaled.data(), stride_, 1.0, inverse_hessian_.data(), stride_);
  }
  for (std::int64_t k = 0; k < stride_; ++k) inverse_hessian_[k * (stride_ + 1)] += ridge;
  factor_hessian();
  blas::inverse_from_cholesky(stride_, inverse_hessian_.data(), stride_);
  for (std::int64_t row = 0; row < stride_; ++row) {
    for (std::int64_t column = row + 1; column < stride_; ++column) {
      inverse_hessian_[row * stride_ + column] = inverse_hessian_[column * stride_ + row];
    }
  }
}

/// Rounding makes H indefinite where its largest entry exceeds the ridge by more than 15 digits. A larger
/// ridge then gives a shorter step in a direction that is still one of descent.
void NewtonTrainer::factor_hessian() {
  std::vector<double> hessian = inverse_hessian_;
  double largest = 0.0;
  for (std::int64_t k = 0; k < stride_; ++k) largest = std::max(largest, hessian[k * (stride_ + 1)]);
  for (double share = 1e-15;; share *= 100.0) {
    try {
      blas::cholesky(stride_, inverse_hessian_.data(), stride_);
      return;
    } catch (const NumericError&) {
      if (share > 1e-3) throw;
    }
    inverse_hessian_ = hessian;
    for (std::int64_t k = 0; k < stride_; ++k) inverse_hessian_[k * (stride_ + 1)] += share * largest;
  }
}

NewtonReport NewtonTrainer::train(ExecutionContext& context, const FoldedPairs& pairs,
                                  std::int64_t observed, double ridge) {
  const std::vector<double> before = theta_;
  try {
    return descend(context, pairs, observed, ridge);
  } catch (const NumericError&) {
    restore(before);
    throw;
  }
}

void NewtonTrainer::restore(std::span<const double> theta) {
  theta_.assign(theta.begin(), theta.end());
  inverse_hessian_.clear();
}

NewtonReport NewtonTrainer::descend(ExecutionContext& context, const FoldedPairs& pairs,
                                    std::int64_t observed, double ridge) {
  assert(pairs.stride == stride_ && ridge > 0.0);
  const auto require_finite = [observed](double size) {
    if (std::isfinite(size)) return;
    throw NumericError(
        fmt::format("The gradient of the linear ranker is {} after {} pairs: use a larger lambda or "
                    "normalised features.",
                    size, observed));
  };
  const double target = options_.tolerance * static_cast<double>(std::max<std::int64_t>(1, observed));
  NewtonReport report;
  gradient_at(context, pairs, ridge, theta_, gradient_);
  double size = norm(gradient_);
  require_finite(size);
  bool inverse_is_new = false;
  if (inverse_hessian_.empty()) {
    renew_inverse_hessian(context, pairs, ridge);
    gradient_at(context, pairs, ridge, theta_, gradient_);
    inverse_is_new = true;
  }
  while (size > target && report.steps < options_.max_steps) {
    blas::gemv(blas::Transpose::kNo, stride_, stride_, 1.0, inverse_hessian_.data(), stride_,
               gradient_.data(), 0.0, step_.data());
    double scale = 1.0;
    double trial_size = 0.0;
    bool shrinks = false;
    for (int halvings = 0;; ++halvings) {
      for (std::size_t k = 0; k < theta_.size(); ++k) trial_theta_[k] = theta_[k] - scale * step_[k];
      gradient_at(context, pairs, ridge, trial_theta_, trial_gradient_);
      trial_size = norm(trial_gradient_);
      shrinks = trial_size < (1.0 - 0.1 * scale) * size;
      // With an old inverse a bad step is inconclusive; with a new one, ‖∇F‖ falls if the step is short
      // enough.
      if (shrinks || !inverse_is_new || halvings == kMostHalvings) break;
      scale *= 0.5;
    }
    if (inverse_is_new) require_finite(trial_size);
    const bool good = trial_size <= kGoodShrinkage * size;
    if (shrinks) {
      std::swap(theta_, trial_theta_);
      std::swap(gradient_, trial_gradient_);
      size = trial_size;
      ++report.steps;
    } else if (inverse_is_new) {
      break;  // no progress beyond rounding
    }
    inverse_is_new = false;
    if (!good && size > target) {
      renew_inverse_hessian(context, pairs, ridge);
      gradient_at(context, pairs, ridge, theta_, gradient_);
      inverse_is_new = true;
    }
  }
  report.gradient_norm = size;
  report.optimality_gap = size * size / (2.0 * ridge);
  return report;
}

void NewtonTrainer::save(StateWriter& state) const {
  state.put("newton.theta", theta_);
  state.put("newton.inverse_hessian", inverse_hessian_);
}

void NewtonTrainer::load(StateReader& state) {
  state.get_into("newton.theta", std::span(theta_));
  inverse_hessian_ = state.get<double>("newton.inverse_hessian");
  if (!inverse_hessian_.empty() && inverse_hessian_.size() != theta_.size() * theta_.size()) {
    state.fail("The saved inverse Hessian has another number of features.");
  }
}

}  // namespace olrank
