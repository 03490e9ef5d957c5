#include "core/ops/blas.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/random/rng_stream.h"
#include "tests/support/message_of.h"

// Eigen is the oracle: another library, other algorithms, column-major by nature.
namespace olrank::blas {
namespace {

template <class Number>
using Matrix = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class Number>
Matrix<Number> random_matrix(std::int64_t rows, std::int64_t columns, std::uint32_t place) {
  Matrix<Number> matrix(rows, columns);
  RngStream stream(make_key({.seed = 7, .purpose = Purpose::kProbe}), place);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) matrix(i, j) = static_cast<Number>(stream.normal());
  }
  return matrix;
}

template <class Number>
void expect_close(const Matrix<Number>& actual, const Matrix<Number>& expected, double tolerance) {
  ASSERT_EQ(actual.rows(), expected.rows());
  ASSERT_EQ(actual.cols(), expected.cols());
  for (std::int64_t i = 0; i < actual.rows(); ++i) {
    for (std::int64_t j = 0; j < actual.cols(); ++j) {
      EXPECT_TRUE(std::abs(double{actual(i, j)} - double{expected(i, j)}) <= tolerance) << i << ", " << j;
    }
  }
}

template <class Number>
class GemmTest : public testing::Test {};
using Numbers = testing::Types<float, double>;
TYPED_TEST_SUITE(GemmTest, Numbers);

TYPED_TEST(GemmTest, MultipliesInAllFourForms) {
  using Number = TypeParam;
  std::uint32_t place = 0;
  for (const std::int64_t rows : {1, 3, 33}) {
    for (const std::int64_t columns : {1, 5, 32}) {
      for (const std::int64_t inner : {0, 1, 31}) {
        for (const bool transpose_a : {false, true}) {
          for (const bool transpose_b : {false, true}) {
            const auto a =
                random_matrix<Number>(transpose_a ? inner : rows, transpose_a ? rows : inner, ++place);
            const auto b = random_matrix<Number>(transpose_b ? columns : inner,
                                                 transpose_b ? inner : columns, ++place);
            // Two columns behind each row belong to others.
            auto c = random_matrix<Number>(rows, columns + 2, ++place);
            Matrix<Number> expected = c;
            const Matrix<Number> left = transpose_a ? Matrix<Number>(a.transpose()) : a;
            const Matrix<Number> right = transpose_b ? Matrix<Number>(b.transpose()) : b;
            expected.leftCols(columns) =
                Number{2} * expected.leftCols(columns).eval() + Number{3} * (left * right);
            gemm(transpose_a ? Transpose::kYes : Transpose::kNo,
                 transpose_b ? Transpose::kYes : Transpose::kNo, rows, columns, inner, Number{3}, a.data(),
                 a.cols(), b.data(), b.cols(), Number{2}, c.data(), c.cols());
            EXPECT_EQ(c.rightCols(2).eval(), expected.rightCols(2).eval());
            // 31 products of numbers of size up to 4², times 3: a few hundred roundings at most.
            expect_close<Number>(c, expected, std::is_same_v<Number, float> ? 2e-4 : 5e-13);
          }
        }
      }
    }
  }
}

TEST(BlasTest, MultipliesVectors) {
  for (const std::int64_t rows : {0, 1, 7}) {
    for (const std::int64_t columns : {0, 1, 9}) {
      for (const bool transpose : {false, true}) {
        const auto a = random_matrix<double>(rows, columns, 3);
        const auto x = random_matrix<double>(transpose ? rows : columns, 1, 4);
        auto y = random_matrix<double>(transpose ? columns : rows, 1, 5);
        const Matrix<double> left = transpose ? Matrix<double>(a.transpose()) : a;
        const Matrix<double> expected = 0.5 * y + 2.0 * (left * x);
        gemv(transpose ? Transpose::kYes : Transpose::kNo, rows, columns, 2.0, a.data(), columns, x.data(),
             0.5, y.data());
        expect_close<double>(y, expected, 1e-13);
      }
    }
  }
}

Matrix<double> positive_definite(std::int64_t n) {
  const auto root = random_matrix<double>(n, n, 6);
  return root * root.transpose() + 0.5 * Matrix<double>::Identity(n, n);
}

TEST(BlasTest, FactorisesAndSolves) {
  for (const std::int64_t n : {1, 2, 33, 100}) {
    const Matrix<double> a = positive_definite(n);
    Matrix<double> factor = a;
    const Matrix<double> upper_before = factor.triangularView<Eigen::StrictlyUpper>();
    cholesky(n, factor.data(), n);
    const Matrix<double> upper_after = factor.triangularView<Eigen::StrictlyUpper>();
    expect_close<double>(upper_after, upper_before, 0.0);
    const Matrix<double> l = factor.triangularView<Eigen::Lower>();
    // Backward error of a factorisation: n ε ‖A‖, and ‖A‖ is about 4n here.
    expect_close<double>(l * l.transpose(), a, 1e-15 * static_cast<double>(4 * n * n + 10));

    const auto b = random_matrix<double>(n, 5, 8);
    Matrix<double> x = b;
    solve_lower(Transpose::kNo, n, 5, l.data(), n, x.data(), 5);
    expect_close<double>(l * x, b, 1e-10);
    x = b;
    solve_lower(Transpose::kYes, n, 5, l.data(), n, x.data(), 5);
    expect_close<double>(l.transpose() * x, b, 1e-10);

    inverse_from_cholesky(n, factor.data(), n);
    const Matrix<double> inverse = factor.selfadjointView<Eigen::Lower>();
    // The condition number is at most 8n: λ_min ≥ 0.5 and λ_max about 4n.
    expect_close<double>(inverse * a, Matrix<double>::Identity(n, n), 1e-10);
  }
}

TEST(BlasTest, NamesTheRowOfANonPositivePivot) {
  Matrix<double> a = Matrix<double>::Identity(5, 5);
  a(2, 2) = -1.0;
  EXPECT_EQ(message_of<NumericError>([&] { cholesky(5, a.data(), 5); }),
            "A 5 x 5 matrix is not positive definite: its Cholesky factorisation fails at row 3.");
}

// The bits of a product must not depend on how many threads of ours call it at once.
TEST(BlasTest, GivesTheSameBitsOnEveryThread) {
  const auto a = random_matrix<double>(200, 300, 9);
  const auto b = random_matrix<double>(300, 150, 10);
  const auto product = [&] {
    std::vector<double> c(200 * 150, 0.0);
    gemm(Transpose::kNo, Transpose::kNo, 200, 150, 300, 1.0, a.data(), 300, b.data(), 150, 0.0, c.data(),
         150);
    return c;
  };
  const std::vector<double> here = product();
  std::vector<std::vector<double>> elsewhere(4);
  std::vector<std::thread> threads;
  for (auto& result : elsewhere) threads.emplace_back([&result, &product] { result = product(); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : elsewhere) EXPECT_EQ(result, here);
}

TEST(BlasOfTheLibraryTest, RefusesSizesBeyond32Bits) {
  double number = 0.0;
  EXPECT_THROW(gemm(Transpose::kNo, Transpose::kNo, std::int64_t{1} << 31, 1, 1, 1.0, &number, 1, &number,
                    1, 0.0, &number, 1),
               InvalidArgument);
}

}  // namespace
}  // namespace olrank::blas
