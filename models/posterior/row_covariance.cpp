#include "models/posterior/row_covariance.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/math/any_cpu.h"
#include "core/ops/blas.h"
#include "core/ops/covariance.h"
#include "models/posterior/full_posterior.h"

namespace olrank {
namespace {

using blas::Transpose;

/// Rounding errors of updates add up. One factorisation per so many pairs costs little next to their
/// updates.
constexpr std::int64_t kPairsBetweenRenewals = 1024;

/// product = M x, or Mᵀ x.
void multiply(Transpose transpose, std::span<const double> matrix, std::span<const double> x,
              std::vector<double>& product) {
  const auto size = std::ssize(x);
  blas::gemv(transpose, size, size, 1.0, matrix.data(), size, x.data(), 0.0, product.data());
}

}  // namespace

RowCovariance::RowCovariance(Covariance structure, std::int64_t features, double lambda)
    : structure_(structure), features_(features), lambda_(lambda), diagonal_(features, lambda) {
  if (!needs_inverse()) return;
  matrix_.resize(features * features);
  inverse_.resize(matrix_.size());
  for (std::int64_t k = 0; k < features; ++k) {
    matrix_[k * (features + 1)] = lambda;
    inverse_[k * (features + 1)] = 1.0 / lambda;
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
  if (is_root()) {
    width_sq_by_root(context, rows, docs, width_sq);
    return;
  }
  const Scratch::Frame frame(context.scratch());
  const auto product = context.scratch().take<double>(rows.size());  // G A⁻¹
  if (structure_ == Covariance::kFull) {
    blas::gemm(Transpose::kNo, Transpose::kNo, docs, features_, features_, 1.0, rows.data(), features_,
               inverse_.data(), features_, 0.0, product.data(), features_);
  } else {
    double* variance = context.scratch().take<double>(diagonal_.size()).data();
    const bool by_inverse = structure_ == Covariance::kDiagonalOfInverse;
    for (std::int64_t k = 0; k < features_; ++k)
      variance[k] = by_inverse ? inverse_[k * (features_ + 1)] : 1.0 / diagonal_[k];
    for (std::int64_t doc = 0; doc < docs; ++doc) {
      const double* row = rows.data() + doc * features_;
      double* scaled = product.data() + doc * features_;
      for (std::int64_t k = 0; k < features_; ++k) scaled[k] = row[k] * variance[k];
    }
  }
  // M, in place of the widths.
  blas::gemm(Transpose::kNo, Transpose::kYes, docs, docs, features_, 1.0, product.data(), features_,
             rows.data(), features_, 0.0, width_sq.data(), docs);
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

/// Computes from the documents' rows relative to the first one times L⁻ᵀ.
void RowCovariance::width_sq_by_root(ExecutionContext& context, std::span<const double> rows,
                                     std::int64_t docs, std::span<double> width_sq) const {
  const Scratch::Frame frame(context.scratch());
  const auto relative = context.scratch().take<double>(rows.size());
  const auto half = context.scratch().take<double>(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    relative[i] = rows[i] - rows[i % static_cast<std::size_t>(features_)];
  if (structure_ == Covariance::kFull) {
    blas::gemm(Transpose::kNo, Transpose::kYes, docs, features_, features_, 1.0, relative.data(), features_,
               inverse_.data(), features_, 0.0, half.data(), features_);
  } else {
    std::vector<double> variance(features_);
    for (std::size_t i = 0; i < inverse_.size(); ++i)
      variance[i % variance.size()] += inverse_[i] * inverse_[i];
    for (std::size_t i = 0; i < half.size(); ++i)
      half[i] = relative[i] * std::sqrt(variance[i % variance.size()]);
  }
  row_distance_sq(docs, features_, half.data(), width_sq.data());
}

void RowCovariance::observe(ExecutionContext& context, std::span<const double> rows, std::int64_t pairs) {
  assert(std::ssize(rows) == pairs * features_);
  if (pairs == 0 || structure_ == Covariance::kNone) return;
  double information = 0.0;
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const std::span<const double> row = rows.subspan(pair * features_, features_);
    information += std::inner_product(row.begin(), row.end(), row.begin(), 0.0);
  }
  require_information(lambda_, information);
  if (!needs_inverse()) {
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      const double* row = rows.data() + pair * features_;
      for (std::int64_t k = 0; k < features_; ++k) diagonal_[k] += row[k] * row[k];
    }
    log_det_ = 0.0;
    for (const double entry : diagonal_) log_det_ += log_of(entry / lambda_);
    return;
  }
  if (is_root()) {
    add_to_root(rows, pairs);
    return;
  }
  const std::int64_t every = CovarianceChecks{}.every;
  const bool renews = updates_ + pairs >= kPairsBetweenRenewals;
  // A is rounded to its largest entries: checked whenever they have doubled.
  double trace = 0.0;
  for (std::int64_t k = 0; k < features_; ++k) trace += matrix_[k * (features_ + 1)];
  const bool grows = std::ilogb(trace + information) > std::ilogb(trace);
  if (!renews && !grows && (updates_ + pairs) / every == updates_ / every) {
    try {
      update_inverse(context, rows, pairs);
      add_to_matrix(rows, pairs);
      return;
    } catch (const NumericError&) {
      // Rounding has made A⁻¹ indefinite: A itself decides below.
    }
  }
  RowCovariance next = *this;
  if (!next.take_in(context, rows, pairs, renews)) {
    warning_.give(name(), next.measured_drift());
    next = *this;
    next.become_root();
    next.add_to_root(rows, pairs);
  }
  *this = std::move(next);
}

bool RowCovariance::take_in(ExecutionContext& context, std::span<const double> rows, std::int64_t pairs,
                            bool renews) {
  const double bound = CovarianceChecks{}.drift_bound;
  try {
    if (!renews) {
      update_inverse(context, rows, pairs);
      add_to_matrix(rows, pairs);
      if (measured_drift() <= bound) return true;
    } else {
      add_to_matrix(rows, pairs);
    }
    renew_inverse();
    return measured_drift() <= bound;
  } catch (const NumericError&) {
    return false;
  }
}

void RowCovariance::add_to_matrix(std::span<const double> rows, std::int64_t pairs) {
  blas::gemm(Transpose::kYes, Transpose::kNo, features_, features_, pairs, 1.0, rows.data(), features_,
             rows.data(), features_, 1.0, matrix_.data(), features_);
  updates_ += pairs;
}

/// A⁻¹ ← A⁻¹ − P (I + ΓP)⁻¹ Pᵀ with P = A⁻¹Γᵀ (Woodbury); det A grows by det(I + ΓP).
void RowCovariance::update_inverse(ExecutionContext& context, std::span<const double> rows,
                                   std::int64_t pairs) {
  const Scratch::Frame frame(context.scratch());
  const auto projected = context.scratch().take<double>(rows.size());  // Pᵀ, [pairs × features]
  double* core = context.scratch().take<double>(pairs * pairs).data();
  blas::gemm(Transpose::kNo, Transpose::kNo, pairs, features_, features_, 1.0, rows.data(), features_,
             inverse_.data(), features_, 0.0, projected.data(), features_);
  blas::gemm(Transpose::kNo, Transpose::kYes, pairs, pairs, features_, 1.0, projected.data(), features_,
             rows.data(), features_, 0.0, core, pairs);
  for (std::int64_t pair = 0; pair < pairs; ++pair) core[pair * (pairs + 1)] += 1.0;
  blas::cholesky(pairs, core, pairs);
  double grown = log_det_;
  for (std::int64_t pair = 0; pair < pairs; ++pair) grown += 2.0 * log_of(core[pair * (pairs + 1)]);
  if (!std::isfinite(grown)) throw NumericError("The update of the inverse is not finite.");
  log_det_ = grown;
  blas::solve_lower(Transpose::kNo, pairs, features_, core, pairs, projected.data(), features_);
  blas::gemm(Transpose::kYes, Transpose::kNo, features_, features_, pairs, -1.0, projected.data(),
             features_, projected.data(), features_, 1.0, inverse_.data(), features_);
}

void RowCovariance::renew_inverse() {
  inverse_ = matrix_;
  blas::cholesky(features_, inverse_.data(), features_);
  log_det_ = 0.0;
  const double* factor = inverse_.data();
  for (std::int64_t k = 0; k < features_; ++k)
    log_det_ += 2.0 * log_of(factor[k * (features_ + 1)]) - log_of(lambda_);
  blas::inverse_from_cholesky(features_, inverse_.data(), features_);
  mirror_lower(features_, inverse_.data());
  updates_ = 0;
}

void RowCovariance::become_root() {
  double* root = matrix_.data();
  try {
    blas::cholesky(features_, root, features_);
  } catch (const NumericError&) {
    throw_lost_precision(name(), kIndefinite);
  }
  for (std::int64_t row = 0; row < features_; ++row)
    std::fill(root + row * features_ + row + 1, root + (row + 1) * features_, 0.0);
  updates_ = kRoot;
}

void RowCovariance::add_to_root(std::span<const double> rows, std::int64_t pairs) {
  RootUpdate update;
  const auto features = static_cast<std::size_t>(features_);
  for (std::int64_t pair = 0; pair < pairs; ++pair)
    update.add(rows.subspan(pair * features_, features), matrix_.data(), features_);
  const double* root = matrix_.data();
  double* inverse = inverse_.data();
  std::fill(inverse_.begin(), inverse_.end(), 0.0);
  log_det_ = 0.0;
  for (std::int64_t k = 0; k < features_; ++k) {
    inverse[k * (features_ + 1)] = 1.0;
    log_det_ += 2.0 * log_of(root[k * (features_ + 1)]) - log_of(lambda_);
  }
  blas::solve_lower(Transpose::kNo, features_, features_, root, features_, inverse, features_);
}

double RowCovariance::drift() const {
  const double drift = measured_drift();
  if (!(drift <= CovarianceChecks{}.drift_bound)) warning_.give(name(), drift);
  return drift;
}

double RowCovariance::measured_drift() const {
  if (!needs_inverse()) return 0.0;
  const CovarianceChecks checks;
  const bool by_diagonal = structure_ == Covariance::kDiagonalOfInverse;
  std::vector<double> v(features_);
  // Widths by the diagonal ask for single (A⁻¹)_kk.
  const auto error_at = [&](std::int64_t k) {
    std::fill(v.begin(), v.end(), 0.0);
    v[k] = 1.0;
    return error_along(v);
  };
  // There is no list of observed pairs; a column of A is a sum of them.
  return measure_drift(
      checks, features_, is_root() ? features_ : updates_,
      [&](std::span<const double> vector) {
        if (!by_diagonal) return error_along(vector);
        return error_at(std::max_element(vector.begin(), vector.end()) - vector.begin());
      },
      [&](std::int64_t pair) {
        const std::int64_t k = pair % features_;
        if (by_diagonal) return error_at(k);
        std::vector<double> unit(features_);
        unit[k] = 1.0;
        multiply_matrix(unit, v);
        return error_along(v);
      });
}

void RowCovariance::multiply_matrix(std::span<const double> y, std::vector<double>& product) const {
  if (!is_root()) {
    multiply(Transpose::kNo, matrix_, y, product);
    return;
  }
  std::vector<double> half(features_);
  multiply(Transpose::kYes, matrix_, y, half);
  multiply(Transpose::kNo, matrix_, half, product);
}

double RowCovariance::error_along(std::span<const double> v) const {
  std::vector<double> y(features_);
  std::vector<double> product(features_);
  multiply(Transpose::kNo, inverse_, v, y);
  if (is_root()) {
    product = y;
    multiply(Transpose::kYes, inverse_, product, y);
  }
  multiply_matrix(y, product);
  const double v_y = std::inner_product(v.begin(), v.end(), y.begin(), 0.0);
  const double y_a_y = std::inner_product(y.begin(), y.end(), product.begin(), 0.0);
  double error = width_error(v_y, v_y, y_a_y);
  if (is_root()) return error;
  // A's own entries are rounded: |E_kl| is about ε √(A_kk A_ll), and yᵀEy is missing from w².
  double reach = 0.0;
  for (std::int64_t k = 0; k < features_; ++k)
    reach += std::abs(y[k]) * std::sqrt(matrix_[k * (features_ + 1)]);
  error += std::numeric_limits<double>::epsilon() * reach * reach / v_y;
  return error;
}

void RowCovariance::fields(StateFields& state) {
  state.sized("covariance.matrix", matrix_);
  state.sized("covariance.inverse", inverse_);
  state.sized("covariance.diagonal", diagonal_);
  state.numbers("covariance.updates", updates_);
  state.numbers("covariance.log_det", log_det_);
}

}  // namespace olrank
