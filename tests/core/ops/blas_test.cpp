#include "core/ops/blas.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>

#include "core/error.h"
#include "core/random/rng_stream.h"
#include "tests/support/message_of.h"

// Eigen is the oracle: another library, other algorithms, column-major by nature.
namespace olrank::blas {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix random_matrix(std::int64_t rows, std::int64_t columns, std::uint32_t place) {
  Matrix matrix(rows, columns);
  RngStream stream(make_key({.seed = 7, .purpose = Purpose::kProbe}), place);
  for (std::int64_t i = 0; i < rows * columns; ++i) matrix.data()[i] = stream.normal();
  return matrix;
}

void expect_close(const Matrix& actual, const Matrix& expected, double tolerance) {
  EXPECT_TRUE(((actual - expected).array().abs() <= tolerance).all());
}

Matrix positive_definite(std::int64_t n) {
  const auto root = random_matrix(n, n, 6);
  return root * root.transpose() + 0.5 * Matrix::Identity(n, n);
}

TEST(BlasTest, FactorisesAndSolves) {
  for (const std::int64_t n : {1, 2, 33, 100}) {
    const Matrix a = positive_definite(n);
    Matrix factor = a;
    const Matrix upper_before = factor.triangularView<Eigen::StrictlyUpper>();
    cholesky(n, factor.data(), n);
    const Matrix upper_after = factor.triangularView<Eigen::StrictlyUpper>();
    expect_close(upper_after, upper_before, 0.0);
    const Matrix l = factor.triangularView<Eigen::Lower>();
    // Backward error of a factorisation: n ε ‖A‖, and ‖A‖ is about 4n here.
    expect_close(l * l.transpose(), a, 1e-15 * static_cast<double>(4 * n * n + 10));

    const auto b = random_matrix(n, 5, 8);
    Matrix x = b;
    solve_lower(Transpose::kNo, n, 5, l.data(), n, x.data(), 5);
    expect_close(l * x, b, 1e-10);
    x = b;
    solve_lower(Transpose::kYes, n, 5, l.data(), n, x.data(), 5);
    expect_close(l.transpose() * x, b, 1e-10);

    inverse_from_cholesky(n, factor.data(), n);
    const Matrix inverse = factor.selfadjointView<Eigen::Lower>();
    // The condition number is at most 8n: λ_min ≥ 0.5 and λ_max about 4n.
    expect_close(inverse * a, Matrix::Identity(n, n), 1e-10);
  }
}

TEST(BlasTest, NamesTheRowOfANonPositivePivot) {
  Matrix a = Matrix::Identity(5, 5);
  a(2, 2) = -1.0;
  EXPECT_EQ(message_of<NumericError>([&] { cholesky(5, a.data(), 5); }),
            "A 5 x 5 matrix is not positive definite: its Cholesky factorisation fails at row 3.");
}

TEST(BlasOfTheLibraryTest, RefusesSizesBeyond32Bits) {
  double number = 0.0;
  EXPECT_THROW(gemm(Transpose::kNo, Transpose::kNo, std::int64_t{1} << 31, 1, 1, 1.0, &number, 1, &number,
                    1, 0.0, &number, 1),
               InvalidArgument);
}

}  // namespace
}  // namespace olrank::blas
