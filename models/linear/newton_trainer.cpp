#include "models/linear/linear_belief.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "core/math/pair_loss.h"
#include "core/math/portable_exp.h"
#include "core/ops/blas.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

/// A step with the kept inverse is good when it leaves at most this share of the gradient: two such steps
/// cost less than a new inverse.
constexpr double kGoodShrinkage = 0.3;
constexpr int kMostHalvings = 40;
/// A pair taken out of the kept inverse has to leave this share of det H: less is lost in rounding.
constexpr double kLeastGrowth = 0.1;
/// The kept inverse is renewed once the prior's weight, which the mean form multiplies by n, grew so much.
constexpr double kMostRidgeGrowth = 1.1;

void require_finite_gradient(double size, std::int64_t observed) {
  if (std::isfinite(size)) return;
  throw_error<NumericError>(
      "The gradient of the linear ranker is {} after {} pairs: use a larger lambda or normalised features.",
      size, observed);
}

}  // namespace

NewtonTrainer::NewtonTrainer(std::int64_t stride, const Options& options)
    : stride_(stride),
      options_(options),
      theta_(stride),
      expansion_(stride),
      gradient_(theta_.size()),
      tried_theta_(theta_.size()),
      tried_gradient_(theta_.size()),
      step_(theta_.size()) {}

/// H = Σ_s count_s σ(1 − σ) row_s row_sᵀ + c I. Only the direction of steps depends on it.
void NewtonTrainer::renew_inverse_hessian(ExecutionContext& context, const FoldedPairs& pairs,
                                          double ridge) {
  inverse_hessian_.resize(stride_ * stride_);
  pair_hessian(context, pairs, theta_, gradient_, inverse_hessian_);
  invert_hessian(ridge);
}

/// Inverts the data's Hessian in inverse_hessian_.
void NewtonTrainer::invert_hessian(double ridge) {
  for (std::int64_t k = 0; k < stride_; ++k) inverse_hessian_[k * (stride_ + 1)] += ridge;
  factor_hessian();
  blas::inverse_from_cholesky(stride_, inverse_hessian_.data(), stride_);
  mirror_lower(stride_, inverse_hessian_.data());
}

void NewtonTrainer::invert_expansion(double ridge) {
  const auto hessian = expansion_.hessian();
  inverse_hessian_.assign(hessian.begin(), hessian.end());
  invert_hessian(ridge);
  inverse_ridge_ = ridge;
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
  return or_restore([&] {
    const NewtonReport report = descend(context, pairs, observed, ridge);
    if (options_.replays) {
      expansion_.set(context, pairs, theta_);
      invert_expansion(ridge);
    }
    return report;
  });
}

template <class Step>
NewtonReport NewtonTrainer::or_restore(const Step& step) {
  const std::vector<double> before = theta_;
  try {
    return step();
  } catch (const NumericError&) {
    restore(before);
    throw;
  }
}

void NewtonTrainer::restore(std::span<const double> theta) {
  theta_.assign(theta.begin(), theta.end());
  inverse_hessian_.clear();
  expansion_.clear();
}

NewtonTrainer::StepResult NewtonTrainer::try_step(const Gradient& gradient, double size, int halvings) {
  blas::gemv(blas::Transpose::kNo, stride_, stride_, 1.0, inverse_hessian_.data(), stride_,
             gradient_.data(), 0.0, step_.data());
  double scale = 1.0;
  for (;; --halvings, scale *= 0.5) {
    for (std::size_t k = 0; k < theta_.size(); ++k) tried_theta_[k] = theta_[k] - scale * step_[k];
    gradient(tried_theta_, tried_gradient_);
    const double tried_size = norm(tried_gradient_);
    const bool shrinks = tried_size < (1.0 - 0.1 * scale) * size;
    if (shrinks || halvings == 0) return {tried_size, shrinks};
  }
}

void NewtonTrainer::accept_step() {
  std::swap(theta_, tried_theta_);
  std::swap(gradient_, tried_gradient_);
}

NewtonReport NewtonTrainer::descend(ExecutionContext& context, const FoldedPairs& pairs,
                                    std::int64_t observed, double ridge) {
  assert(pairs.stride == stride_ && ridge > 0.0);
  const Gradient gradient = [&](std::span<const double> theta, std::span<double> at) {
    folded_pair_gradient(context, pairs, theta, at, {});
    for (std::size_t k = 0; k < at.size(); ++k) at[k] += ridge * theta[k];
  };
  const double target = options_.tolerance * static_cast<double>(std::max<std::int64_t>(1, observed));
  NewtonReport report;
  gradient(theta_, gradient_);
  double size = norm(gradient_);
  require_finite_gradient(size, observed);
  bool inverse_is_new = false;
  if (inverse_hessian_.empty()) {
    renew_inverse_hessian(context, pairs, ridge);
    gradient(theta_, gradient_);
    inverse_is_new = true;
  }
  while (size > target && report.steps < options_.max_steps) {
    // With an old inverse a bad step is inconclusive; with a new one, ‖∇F‖ falls if the step is short
    // enough.
    const StepResult tried = try_step(gradient, size, inverse_is_new ? kMostHalvings : 0);
    if (inverse_is_new) require_finite_gradient(tried.size, observed);
    const bool good = tried.size <= kGoodShrinkage * size;
    if (tried.shrinks) {
      accept_step();
      size = tried.size;
      ++report.steps;
    } else if (inverse_is_new) {
      break;  // no progress beyond rounding
    }
    inverse_is_new = false;
    if (!good && size > target) {
      renew_inverse_hessian(context, pairs, ridge);
      gradient(theta_, gradient_);
      inverse_is_new = true;
    }
  }
  report.gradient_norm = size;
  report.optimality_gap = size * size / (2.0 * ridge);
  return report;
}

void NewtonTrainer::take_in(const double* row, double count, double first_wins) {
  const double curvature = expansion_.add(row, count, first_wins);
  blas::gemv(blas::Transpose::kNo, stride_, stride_, 1.0, inverse_hessian_.data(), stride_, row, 0.0,
             step_.data());
  double form = 0.0;
  for (std::int64_t k = 0; k < stride_; ++k) form += row[k] * step_[k];
  const double growth = 1.0 + curvature * form;  // of det H
  if (growth < kLeastGrowth) return;             // what steps go by may lag, and must stay positive
  for (std::int64_t i = 0; i < stride_; ++i) {
    const double factor = curvature / growth * step_[i];
    double* line = inverse_hessian_.data() + i * stride_;
    for (std::int64_t j = 0; j < stride_; ++j) line[j] -= factor * step_[j];
  }
}

NewtonReport NewtonTrainer::replay(ExecutionContext& context, const FoldedPairs& sample, std::int64_t steps,
                                   std::int64_t observed, double ridge) {
  assert(can_replay() && sample.stride == stride_ && ridge > 0.0);
  return or_restore([&] {
    const Scratch::Frame frame(context.scratch());
    const SampledGradient of_sample(context, expansion_, sample, ridge);
    const Gradient gradient = std::cref(of_sample);
    if (ridge > kMostRidgeGrowth * inverse_ridge_) invert_expansion(ridge);
    const double target = options_.tolerance * static_cast<double>(observed);
    NewtonReport report;
    gradient(theta_, gradient_);
    double size = norm(gradient_);
    require_finite_gradient(size, observed);
    while (size > target && report.steps < steps) {
      const StepResult tried = try_step(gradient, size, kMostHalvings);
      if (!tried.shrinks) break;
      accept_step();
      size = tried.size;
      ++report.steps;
    }
    report.gradient_norm = size;
    report.optimality_gap = size * size / (2.0 * ridge);
    return report;
  });
}

void NewtonTrainer::fields(StateFields& state) {
  state.sized("newton.theta", theta_);
  state.any("newton.inverse_hessian", inverse_hessian_);
  state.require(inverse_hessian_.empty() || inverse_hessian_.size() == theta_.size() * theta_.size(),
                "The saved inverse Hessian has another number of features.");
  if (!options_.replays) return;
  state.numbers("newton.inverse_ridge", inverse_ridge_);
  expansion_.fields(state);
}

void pair_hessian(ExecutionContext& context, const FoldedPairs& pairs, std::span<const double> theta,
                  std::span<double> gradient, std::span<double> hessian) {
  constexpr std::int64_t kRows = 256;
  const std::int64_t stride = pairs.stride;
  assert(std::ssize(hessian) == stride * stride);
  const Scratch::Frame frame(context.scratch());
  const auto curvature = context.scratch().take<double>(pairs.pairs);
  folded_pair_gradient(context, pairs, theta, gradient, curvature);
  std::fill(hessian.begin(), hessian.end(), 0.0);
  const auto scaled = context.scratch().take<double>(kRows * stride);
  for (std::int64_t begin = 0; begin < pairs.pairs; begin += kRows) {
    const std::int64_t rows = std::min(kRows, pairs.pairs - begin);
    for (std::int64_t i = 0; i < rows; ++i) {
      const double factor = std::sqrt(curvature[begin + i]);
      const double* row = pairs.rows + (begin + i) * stride;
      for (std::int64_t k = 0; k < stride; ++k) scaled[i * stride + k] = factor * row[k];
    }
    blas::gemm(blas::Transpose::kYes, blas::Transpose::kNo, stride, stride, rows, 1.0, scaled.data(),
               stride, scaled.data(), stride, 1.0, hessian.data(), stride);
  }
}

void HistoryExpansion::clear() {
  centre_.clear();
  gradient_.clear();
  hessian_.clear();
}

void HistoryExpansion::set(ExecutionContext& context, const FoldedPairs& pairs,
                           std::span<const double> theta) {
  centre_.assign(theta.begin(), theta.end());
  gradient_.resize(centre_.size());
  hessian_.resize(stride_ * stride_);
  pair_hessian(context, pairs, centre_, gradient_, hessian_);
}

double HistoryExpansion::add(const double* row, double count, double first_wins) {
  assert(!empty());
  double z = 0.0;
  for (std::int64_t k = 0; k < stride_; ++k) z += row[k] * centre_[k];
  const double p = sigmoid(z);
  const double slope = pair_term_slope(p, count, first_wins);
  const double curvature = pair_term_curvature(p, count);
  for (std::int64_t k = 0; k < stride_; ++k) gradient_[k] += slope * row[k];
  for (std::int64_t i = 0; i < stride_; ++i) {
    const double factor = curvature * row[i];
    double* line = hessian_.data() + i * stride_;
    for (std::int64_t j = 0; j < stride_; ++j) line[j] += factor * row[j];
  }
  return curvature;
}

void HistoryExpansion::add_gradient(std::span<const double> theta, std::span<double> gradient) const {
  assert(!empty() && theta.size() == centre_.size());
  std::vector<double> moved(theta.begin(), theta.end());
  for (std::size_t k = 0; k < moved.size(); ++k) moved[k] -= centre_[k];
  blas::gemv(blas::Transpose::kNo, stride_, stride_, 1.0, hessian_.data(), stride_, moved.data(), 1.0,
             gradient.data());
  for (std::size_t k = 0; k < moved.size(); ++k) gradient[k] += gradient_[k];
}

void HistoryExpansion::fields(StateFields& state) {
  state.any("expansion.centre", centre_);
  state.require(centre_.empty() || std::ssize(centre_) == stride_,
                "The saved expansion has another number of features.");
  if (state.reads()) {
    gradient_.resize(centre_.size());
    hessian_.resize(centre_.size() * centre_.size());
  }
  state.sized("expansion.gradient", gradient_);
  state.sized("expansion.hessian", hessian_);
}

SampledGradient::SampledGradient(ExecutionContext& context, const HistoryExpansion& expansion,
                                 const FoldedPairs& sample, double ridge)
    : context_(context),
      expansion_(expansion),
      sample_(sample),
      ridge_(ridge),
      slope_(context.scratch().take<double>(sample.pairs)),
      curvature_(context.scratch().take<double>(sample.pairs)),
      labels_(context.scratch().take<double>(sample.pairs)) {
  sample_.first_wins = labels_.data();
  score(expansion.centre(), slope_);
  for (std::int64_t s = 0; s < sample.pairs; ++s) {
    const double z = slope_[s];
    const double p = sigmoid(z);
    curvature_[s] = pair_term_curvature(p, sample.count[s]);
    slope_[s] = sample.count[s] * p - curvature_[s] * z;
  }
}

void SampledGradient::score(std::span<const double> theta, std::span<double> z) const {
  blas::gemv(blas::Transpose::kNo, sample_.pairs, sample_.stride, 1.0, sample_.rows, sample_.stride,
             theta.data(), 0.0, z.data());
}

void SampledGradient::operator()(std::span<const double> theta, std::span<double> gradient) const {
  score(theta, labels_);
  for (std::int64_t s = 0; s < sample_.pairs; ++s) labels_[s] = slope_[s] + curvature_[s] * labels_[s];
  folded_pair_gradient(context_, sample_, theta, gradient, {});
  expansion_.add_gradient(theta, gradient);
  for (std::size_t k = 0; k < gradient.size(); ++k) gradient[k] += ridge_ * theta[k];
}

}  // namespace olrank
