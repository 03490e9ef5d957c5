#include "models/posterior/inducing_covariance.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/math/any_cpu.h"

namespace olrank {
namespace {

using blas::Transpose;

constexpr std::int64_t kRowsPerProduct = 128;
/// Documents of a product with the appended rows on one thread.
constexpr std::int64_t kDocsPerProduct = 128;

/// A copy of I/λ − B⁻¹ in reverse order of rows and columns, lower triangle, with B⁻¹ in that of `inverse`.
LowerTriangle reversed_information(const LowerTriangle& inverse, double diagonal) {
  const std::int64_t n = inverse.size();
  LowerTriangle reversed(n);
  for (std::int64_t i = 0; i < n; ++i) {
    double* row = reversed.row(i);
    for (std::int64_t j = 0; j <= i; ++j) row[j] = -inverse.row(n - 1 - j)[n - 1 - i];
    row[i] += diagonal;
  }
  return reversed;
}

/// G with G Gᵀ = the reverse of I/λ − B⁻¹.
LowerTriangle reversed_root(const LowerTriangle& inverse, double lambda) {
  for (double shift = 0.0;; shift = DictionaryPolicy::next_shift(shift)) {
    LowerTriangle root = reversed_information(inverse, (1.0 + shift) / lambda);
    try {
      blas::cholesky(root.size(), root.data(), root.stride());
      return root;
    } catch (const NumericError&) {
      if (shift >= DictionaryPolicy::kMostShift) throw;
    }
  }
}

/// R with R C = F, where F is G reversed and transposed.
InverseFactor divided(ExecutionContext& context, const InducingDictionary& dictionary,
                      const LowerTriangle& reversed) {
  constexpr std::int64_t kBlock = InverseFactor::kBlock;
  const std::int64_t n = reversed.size();
  InverseFactor triangle;
  triangle.grow(n);
  if (n == 0) return triangle;
  const std::int64_t last = triangle.blocks() - 1;
  auto last_block = std::make_shared<AlignedVector<double>>(
      static_cast<std::size_t>(kBlock * InverseFactor::stride(last)), 0.0);
  // Longest rows first, so that no thread starts the largest solve last.
  context.for_blocks(last + 1, 1, [&](std::int64_t task, std::int64_t, int worker) {
    const std::int64_t b = last - task;
    const std::int64_t begin = b * kBlock;
    const std::int64_t end = std::min(n, begin + kBlock);
    const std::int64_t columns = end - begin;
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    const auto f = scratch.take<double>(end * columns);
    for (std::int64_t i = 0; i < end; ++i) {
      for (std::int64_t r = begin; r < end; ++r)
        f[i * columns + r - begin] = i <= r ? reversed.row(n - 1 - i)[n - 1 - r] : 0.0;
    }
    dictionary.divide(end, columns, f.data());
    double* block = b == last ? last_block->data() : triangle.block(b);
    for (std::int64_t r = begin; r < end; ++r) {
      double* row = block + (r - begin) * InverseFactor::stride(b);
      for (std::int64_t i = 0; i <= r; ++i) row[i] = f[i * columns + r - begin];
    }
  });
  triangle.set_inverted(std::move(last_block));
  return triangle;
}

}  // namespace

void add_outer_products(ExecutionContext& context, std::int64_t columns, const double* x,
                        std::int64_t stride_x, LowerTriangle& t) {
  context.for_blocks(t.size(), kRowsPerProduct, [&](std::int64_t begin, std::int64_t end, int) {
    blas::gemm(Transpose::kNo, Transpose::kYes, end - begin, end, columns, 1.0, x + begin * stride_x,
               stride_x, x, stride_x, 1.0, t.row(begin), t.stride());
  });
}

void InducingCovariance::make_room() {
  appended_ = 0;
  stride_ = t_.size() + DictionaryPolicy::kRows;
  const auto numbers = static_cast<std::size_t>(DictionaryPolicy::kRows * stride_);
  rows_ = std::make_shared<AlignedVector<double>>(numbers, 0.0);
  coordinates_ = std::make_shared<AlignedVector<double>>(numbers, 0.0);
}

void InducingCovariance::clear() {
  t_ = {};
  triangle_.clear();
  appended_ = 0;
}

std::int64_t InducingCovariance::bytes() const {
  return t_.bytes() + triangle_.bytes() +
         2 * DictionaryPolicy::kRows * stride_ * static_cast<std::int64_t>(sizeof(double));
}

void InducingCovariance::apply(ExecutionContext& context, std::int64_t members, std::int64_t columns,
                               const double* kappa, double* y) const {
  olrank::apply(context, triangle_, columns, kappa, y, columns);
  if (appended_ == 0) return;
  double* out = y + triangle_.size() * columns;
  context.for_blocks(columns, kDocsPerProduct, [&](std::int64_t begin, std::int64_t end, int) {
    blas::gemm(Transpose::kNo, Transpose::kNo, appended_, end - begin, members, 1.0, rows_->data(), stride_,
               kappa + begin, columns, 0.0, out + begin, columns);
  });
}

void InducingCovariance::apply_from_right(ExecutionContext& context, std::int64_t members,
                                          std::int64_t count, const double* y, double* x) const {
  const std::int64_t settled = triangle_.size();
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto of_triangle = scratch.take<double>(2 * count * settled);
  double* left = of_triangle.data();
  double* product = left + count * settled;
  for (std::int64_t i = 0; i < count; ++i) std::copy_n(y + i * rows(), settled, left + i * settled);
  olrank::apply_from_right(context, triangle_, count, left, product, settled);
  for (std::int64_t i = 0; i < count; ++i) {
    std::copy_n(product + i * settled, settled, x + i * members);
    std::fill(x + i * members + settled, x + (i + 1) * members, 0.0);
  }
  if (appended_ == 0) return;
  blas::gemm(Transpose::kNo, Transpose::kNo, count, members, appended_, 1.0, y + settled, rows(),
             rows_->data(), stride_, 1.0, x, members);
}

double InducingCovariance::quadratic_form(std::span<const double> z) const {
  double sum = 0.0;
  for (std::int64_t i = 0; i < t_.size(); ++i) {
    const double* row = t_.row(i);
    double product = 0.0;
    for (std::int64_t j = 0; j < i; ++j) product += row[j] * z[j];
    sum += z[i] * (2.0 * product + row[i] * z[i]);
  }
  for (std::int64_t pair = 0; pair < appended_; ++pair) {
    const double* row = coordinates_->data() + pair * stride_;
    double product = 0.0;
    for (std::size_t j = 0; j < z.size(); ++j) product += row[j] * z[j];
    sum += product * product;
  }
  return sum;
}

void InducingCovariance::append(std::int64_t members, std::int64_t count, const double* rows,
                                const double* coordinates, double log_det) {
  const auto append_to = [&](AlignedVector<double>& matrix, const double* from) {
    double* to = matrix.data() + appended_ * stride_;
    // Zeros for members to come, also where an observation that failed has left numbers.
    for (std::int64_t i = 0; i < count; ++i, to += stride_)
      std::fill_n(std::copy_n(from + i * members, members, to), stride_ - members, 0.0);
  };
  append_to(*rows_, rows);
  append_to(*coordinates_, coordinates);
  appended_ += count;
  log_det_ += log_det;
}

void InducingCovariance::factorise(ExecutionContext& context, const InducingDictionary& dictionary) {
  LowerTriangle t = t_.extended(dictionary.members());
  // T += Σ z zᵀ.
  context.for_blocks(t.size(), kRowsPerProduct, [&](std::int64_t begin, std::int64_t end, int) {
    blas::gemm(Transpose::kYes, Transpose::kNo, end - begin, end, appended_, 1.0,
               coordinates_->data() + begin, stride_, coordinates_->data(), stride_, 1.0, t.row(begin),
               t.stride());
  });
  factorise(context, dictionary, std::move(t));
}

void InducingCovariance::factorise(ExecutionContext& context, const InducingDictionary& dictionary,
                                   LowerTriangle t) {
  clear();
  const std::int64_t n = t.size();
  LowerTriangle b = t.extended(n);
  for (std::int64_t i = 0; i < n; ++i) b.row(i)[i] += lambda_;
  blas::cholesky(n, b.data(), b.stride());
  double log_det = 0.0;
  for (std::int64_t i = 0; i < n; ++i) log_det += 2.0 * log_of(b.row(i)[i]) - log_of(lambda_);
  if (!std::isfinite(log_det)) throw NumericError("A matrix to factorise has entries that are not finite.");
  blas::inverse_from_cholesky(n, b.data(), b.stride());
  const LowerTriangle root = reversed_root(b, lambda_);
  b = {};
  triangle_ = divided(context, dictionary, root);
  t_ = std::move(t);
  log_det_ = log_det;
  make_room();
}

void InducingCovariance::save(StateWriter& state) const {
  state.put("inducing_members", t_.size());
  state.put("inducing_appended", appended_);
  state.put("inducing_log_det", log_det_);
  t_.save(state, "inducing_information");
  for (std::int64_t b = 0; b < triangle_.blocks(); ++b) {
    const std::int64_t rows = std::min(InverseFactor::kBlock, triangle_.size() - b * InverseFactor::kBlock);
    state.put("inducing_triangle",
              std::span<const double>(triangle_.block(b), rows * InverseFactor::stride(b)));
  }
  const auto numbers = static_cast<std::size_t>(appended_ * stride_);
  state.put("inducing_rows", std::span<const double>(rows_->data(), numbers));
  state.put("inducing_coordinates", std::span<const double>(coordinates_->data(), numbers));
}

void InducingCovariance::load(StateReader& state, std::int64_t members) {
  const auto settled = state.get_one<std::int64_t>("inducing_members");
  const auto appended = state.get_one<std::int64_t>("inducing_appended");
  if (!DictionaryPolicy::rows_fit(members, settled, appended))
    state.fail("The rows of the covariance do not fit its dictionary.");
  log_det_ = state.get_one<double>("inducing_log_det");
  t_.load(state, "inducing_information", settled);
  triangle_.clear();
  triangle_.grow(settled);
  for (std::int64_t b = 0; b < triangle_.blocks(); ++b) {
    const std::int64_t rows = std::min(InverseFactor::kBlock, settled - b * InverseFactor::kBlock);
    auto block = std::make_shared<AlignedVector<double>>(
        static_cast<std::size_t>(InverseFactor::kBlock * InverseFactor::stride(b)), 0.0);
    state.get_into("inducing_triangle", std::span<double>(block->data(), rows * InverseFactor::stride(b)));
    if (b + 1 == triangle_.blocks()) {
      triangle_.set_inverted(std::move(block));
    } else {
      std::copy(block->begin(), block->end(), triangle_.block(b));
    }
  }
  make_room();
  appended_ = appended;
  const auto numbers = static_cast<std::size_t>(appended_ * stride_);
  state.get_into("inducing_rows", std::span<double>(rows_->data(), numbers));
  state.get_into("inducing_coordinates", std::span<double>(coordinates_->data(), numbers));
}

}  // namespace olrank
