#include "models/posterior/row_covariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/error.h"
#include "core/learning/covariance_checks.h"
#include "core/ops/blas.h"
#include "core/random/rng_stream.h"

namespace olrank {
namespace {

/// Rounding errors of updates add up. One factorisation per so many pairs costs little next to their
/// updates.
constexpr std::int64_t kPairsBetweenRenewals = 1024;

void mirror_lower(std::int64_t size, double* matrix) {
  for (std::int64_t row = 0; row < size; ++row) {
    for (std::int64_t column = row + 1; column < size; ++column) {
      matrix[row * size + column] = matrix[column * size + row];
    }
  }
}

}  // namespace

RowCovariance::RowCovariance(Covariance structure, std::int64_t features, double lambda)
    : structure_(structure), features_(features), lambda_(lambda), diagonal_(features, lambda) {
  if (!needs_inverse()) return;
  matrix_.resize(features * features);
  inverse_.resize(matrix_.size());
  double* matrix = matrix_.data();
  double* inverse = inverse_.data();
  for (std::int64_t k = 0; k < features; ++k) {
    matrix[k * (features + 1)] = lambda;
    inverse[k * (features + 1)] = 1.0 / lambda;
  }
}

void RowCovariance::width_sq(ExecutionContext& context, std::span<const double> rows, std::int64_t docs,
                             std::span<double> width_sq) const {
  assert(std::ssize(rows) == docs * features_);
  assert(std::ssize(width_sq) == docs * docs);
  if (structure_ == Covariance::kNone) {
    std::fill(width_sq.begin(), width_sq.end(), 0.0);
    return;
  }
  const Scratch::Frame frame(context.scratch());
  const auto product = context.scratch().take<double>(rows.size());  // G A⁻¹
  if (structure_ == Covariance::kFull) {
    blas::gemm(blas::Transpose::kNo, blas::Transpose::kNo, docs, features_, features_, 1.0, rows.data(),
               features_, inverse_.data(), features_, 0.0, product.data(), features_);
  } else {
    double* variance = context.scratch().take<double>(diagonal_.size()).data();
    const double* diagonal = diagonal_.data();
    const double* inverse = inverse_.data();
    for (std::int64_t k = 0; k < features_; ++k) {
      variance[k] =
          structure_ == Covariance::kDiagonalOfInverse ? inverse[k * (features_ + 1)] : 1.0 / diagonal[k];
    }
    for (std::int64_t doc = 0; doc < docs; ++doc) {
      const double* row = rows.data() + doc * features_;
      double* scaled = product.data() + doc * features_;
      for (std::int64_t k = 0; k < features_; ++k) scaled[k] = row[k] * variance[k];
    }
  }
  // M, in place of the widths.
  blas::gemm(blas::Transpose::kNo, blas::Transpose::kYes, docs, docs, features_, 1.0, product.data(),
             features_, rows.data(), features_, 0.0, width_sq.data(), docs);
  double* own = context.scratch().take<double>(docs).data();
  double* matrix = width_sq.data();
  for (std::int64_t doc = 0; doc < docs; ++doc) own[doc] = matrix[doc * (docs + 1)];
  for (std::int64_t i = 0; i < docs; ++i) {
    double* row = matrix + i * docs;
    for (std::int64_t j = 0; j < docs; ++j) {
      const double value = own[i] + own[j] - 2.0 * row[j];
      row[j] = value > 0.0 ? value : 0.0;  // below 0 only by rounding
    }
    row[i] = 0.0;
  }
}

void RowCovariance::observe(ExecutionContext& context, std::span<const double> rows, std::int64_t pairs) {
  assert(std::ssize(rows) == pairs * features_);
  if (pairs == 0 || structure_ == Covariance::kNone) return;
  if (!needs_inverse()) {
    double* diagonal = diagonal_.data();
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      const double* row = rows.data() + pair * features_;
      for (std::int64_t k = 0; k < features_; ++k) diagonal[k] += row[k] * row[k];
    }
    log_det_ = 0.0;
    for (const double entry : diagonal_) log_det_ += std::log(entry / lambda_);
    return;
  }
  blas::gemm(blas::Transpose::kYes, blas::Transpose::kNo, features_, features_, pairs, 1.0, rows.data(),
             features_, rows.data(), features_, 1.0, matrix_.data(), features_);
  updates_ += pairs;
  if (updates_ >= kPairsBetweenRenewals) {
    renew_inverse();
  } else {
    update_inverse(context, rows, pairs);
  }
}

/// A⁻¹ ← A⁻¹ − P (I + ΓP)⁻¹ Pᵀ with P = A⁻¹Γᵀ (Woodbury); det A grows by det(I + ΓP).
void RowCovariance::update_inverse(ExecutionContext& context, std::span<const double> rows,
                                   std::int64_t pairs) {
  const Scratch::Frame frame(context.scratch());
  const auto projected = context.scratch().take<double>(rows.size());  // Pᵀ, [pairs × features]
  double* core = context.scratch().take<double>(pairs * pairs).data();
  blas::gemm(blas::Transpose::kNo, blas::Transpose::kNo, pairs, features_, features_, 1.0, rows.data(),
             features_, inverse_.data(), features_, 0.0, projected.data(), features_);
  blas::gemm(blas::Transpose::kNo, blas::Transpose::kYes, pairs, pairs, features_, 1.0, projected.data(),
             features_, rows.data(), features_, 0.0, core, pairs);
  for (std::int64_t pair = 0; pair < pairs; ++pair) core[pair * (pairs + 1)] += 1.0;
  blas::cholesky(pairs, core, pairs);
  for (std::int64_t pair = 0; pair < pairs; ++pair) log_det_ += 2.0 * std::log(core[pair * (pairs + 1)]);
  blas::solve_lower(blas::Transpose::kNo, pairs, features_, core, pairs, projected.data(), features_);
  blas::gemm(blas::Transpose::kYes, blas::Transpose::kNo, features_, features_, pairs, -1.0,
             projected.data(), features_, projected.data(), features_, 1.0, inverse_.data(), features_);
}

void RowCovariance::renew_inverse() {
  inverse_ = matrix_;
  blas::cholesky(features_, inverse_.data(), features_);
  log_det_ = 0.0;
  const double* factor = inverse_.data();
  for (std::int64_t k = 0; k < features_; ++k)
    log_det_ += 2.0 * std::log(factor[k * (features_ + 1)]) - std::log(lambda_);
  blas::inverse_from_cholesky(features_, inverse_.data(), features_);
  mirror_lower(features_, inverse_.data());
  updates_ = 0;
  if (const double error = drift(); !(error <= CovarianceChecks{}.drift_bound)) {
    throw NumericError(
        fmt::format("The inverse covariance of {} features has lost its precision (residual {:.1e}): use a "
                    "lambda larger than "
                    "{}, or normalised features.",
                    features_, error, lambda_));
  }
}

double RowCovariance::drift() const {
  if (!needs_inverse()) return 0.0;
  const auto size = static_cast<std::size_t>(features_);
  std::vector<double> probe(size);
  std::vector<double> solved(size);
  std::vector<double> back(size);
  RngStream(make_key({.seed = 0, .purpose = Purpose::kProbe}), 0).unit_vector(probe);
  blas::gemv(blas::Transpose::kNo, features_, features_, 1.0, inverse_.data(), features_, probe.data(), 0.0,
             solved.data());
  blas::gemv(blas::Transpose::kNo, features_, features_, 1.0, matrix_.data(), features_, solved.data(), 0.0,
             back.data());
  double sum = 0.0;
  for (std::size_t k = 0; k < size; ++k) sum += (back[k] - probe[k]) * (back[k] - probe[k]);
  return std::sqrt(sum);
}

void RowCovariance::save(StateWriter& state) const {
  state.put("covariance.matrix", matrix_);
  state.put("covariance.inverse", inverse_);
  state.put("covariance.diagonal", diagonal_);
  state.put("covariance.updates", updates_);
  state.put("covariance.log_det", log_det_);
}

void RowCovariance::load(StateReader& state) {
  state.get_into("covariance.matrix", std::span(matrix_));
  state.get_into("covariance.inverse", std::span(inverse_));
  state.get_into("covariance.diagonal", std::span(diagonal_));
  updates_ = state.get_one<std::int64_t>("covariance.updates");
  log_det_ = state.get_one<double>("covariance.log_det");
}

}  // namespace olrank
