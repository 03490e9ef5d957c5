#include "models/linear/history_expansion.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/math/pair_loss.h"
#include "core/ops/blas.h"

namespace olrank {

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
