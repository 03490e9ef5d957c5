#include "core/ops/inverse_factor.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "tests/core/ops/network_fixture.h"

namespace olrank {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

RowMajor positive_definite(std::int64_t n) {
  const std::vector<float> numbers = random_numbers(n * n, 71);
  const RowMajor root =
      Eigen::Map<const Eigen::Matrix<float, -1, -1, Eigen::RowMajor>>(numbers.data(), n, n).cast<double>();
  return root * root.transpose() / static_cast<double>(n) + 0.5 * RowMajor::Identity(n, n);
}

/// Grows the factor to `b`'s size in steps of at most `step` rows; returns log det.
double grow(ExecutionContext& context, InverseFactor& factor, const RowMajor& b, std::int64_t step) {
  double log_det = 0.0;
  while (factor.size() < b.rows()) {
    const std::int64_t n = factor.size();
    const std::int64_t columns = std::min(step, b.rows() - n);
    const RowMajor cross = b.block(0, n, n, columns);
    RowMajor corner = b.block(n, n, columns, columns);
    log_det += append(context, factor, columns, cross.data(), columns, corner.data(), columns);
  }
  return log_det;
}

/// L⁻¹ written out.
RowMajor dense(ExecutionContext& context, InverseFactor factor) {
  invert_open_rows(context, factor);
  RowMajor result = RowMajor::Zero(factor.size(), factor.size());
  for (std::int64_t i = 0; i < factor.size(); ++i) {
    const std::int64_t b = i / InverseFactor::kBlock;
    for (std::int64_t j = 0; j < factor.size() && j < InverseFactor::stride(b); ++j) {
      result(i, j) = factor.block(b)[i % InverseFactor::kBlock * InverseFactor::stride(b) + j];
    }
  }
  return result;
}

TEST(InverseFactorTest, MatchesEigenAtEveryStepOfItsGrowth) {
  for (const std::int64_t n : {0, 1, 31, 32, 33, 128, 129, 300}) {
    const RowMajor b = positive_definite(n);
    const RowMajor l = b.llt().matrixL();
    for (const std::int64_t step : {1, 5, 128, 200}) {
      ExecutionContext context(2);
      InverseFactor factor;
      const double log_det = grow(context, factor, b, step);
      const RowMajor inverse = dense(context, factor);
      // Eigenvalues lie between 0.5 and 5, so 300 rows lose no more than 300 · 10 · 1e-16.
      EXPECT_LE((inverse * l - RowMajor::Identity(n, n)).cwiseAbs().sum(), 1e-12 * static_cast<double>(n));
      EXPECT_NEAR(log_det, 2.0 * l.diagonal().array().log().sum(), 1e-11);
      EXPECT_EQ(inverse.triangularView<Eigen::StrictlyUpper>().toDenseMatrix().cwiseAbs().sum(), 0.0);

      const std::vector<float> numbers = random_numbers(n * 7, 72);
      const std::vector<double> x(numbers.begin(), numbers.end());
      const auto wide = Eigen::Map<const RowMajor>(x.data(), n, 7);
      std::vector<double> y(x.size());
      apply(context, factor, 7, x.data(), y.data(), 7);
      const auto result = Eigen::Map<const RowMajor>(y.data(), n, 7);
      EXPECT_LE((result - inverse * wide).cwiseAbs().sum(), 1e-13 * static_cast<double>(n * 7));
      apply_from_right(context, factor, 7, x.data(), y.data(), n);
      EXPECT_LE((Eigen::Map<const RowMajor>(y.data(), 7, n) -
                 Eigen::Map<const RowMajor>(x.data(), 7, n) * inverse)
                    .cwiseAbs()
                    .sum(),
                1e-13 * static_cast<double>(n * 7));
    }
  }
}

// What a thread reads must not change when another appends, not even where rows of L give way to rows of
// L⁻¹.
TEST(InverseFactorTest, CopiesDoNotChangeWhenTheOriginalGrows) {
  const RowMajor b = positive_definite(300);
  ExecutionContext context;
  InverseFactor factor;
  std::vector<InverseFactor> copies;
  for (const std::int64_t n : {100, 127, 128, 200, 256}) {
    grow(context, factor, b.topLeftCorner(n, n), 7);
    copies.push_back(factor);
  }
  const auto apply_to_ones = [&](const InverseFactor& one) {
    const std::vector<double> x(one.size(), 1.0);
    std::vector<double> y(x.size());
    apply(context, one, 1, x.data(), y.data(), 1);
    return y;
  };
  std::vector<std::vector<double>> before;
  for (const InverseFactor& copy : copies) before.push_back(apply_to_ones(copy));
  grow(context, factor, b, 7);
  for (std::size_t i = 0; i < copies.size(); ++i) EXPECT_EQ(apply_to_ones(copies[i]), before[i]);
}

TEST(InverseFactorTest, SubtractsGrams) {
  for (const std::int64_t rows : {0, 1, 40}) {
    for (const std::int64_t columns : {0, 1, 31, 32, 33, 70}) {
      ExecutionContext context(2);
      const std::vector<float> numbers = random_numbers(rows * (columns + 1), 73);
      const std::vector<double> x(numbers.begin(), numbers.end());
      RowMajor c = RowMajor::Constant(columns, columns, 2.0);
      subtract_gram(context, rows, columns, x.data(), columns + 1, c.data(), columns);
      const RowMajor wide = Eigen::Map<const RowMajor>(x.data(), rows, columns + 1).leftCols(columns);
      const RowMajor expected = RowMajor::Constant(columns, columns, 2.0) - wide.transpose() * wide;
      for (std::int64_t i = 0; i < columns; ++i) {
        for (std::int64_t j = 0; j <= i; ++j) EXPECT_TRUE(std::abs(c(i, j) - expected(i, j)) <= 1e-12);
      }
    }
  }
}

TEST(InverseFactorTest, IsUnchangedWhenAppendingFails) {
  ExecutionContext context;
  InverseFactor factor;
  grow(context, factor, positive_definite(10), 10);
  const RowMajor before = dense(context, factor);
  const std::vector<double> cross(10, 100.0);
  double corner = 1.0;
  EXPECT_THROW(append(context, factor, 1, cross.data(), 1, &corner, 1), NumericError);
  EXPECT_EQ(factor.size(), 10);
  EXPECT_EQ(dense(context, factor), before);
}

}  // namespace
}  // namespace olrank
