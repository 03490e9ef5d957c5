#include "cuda/ops/covariance_matrix.h"

#include <cmath>

#include "cuda/ops/inverse_factor.h"
#include "cuda/runtime/factorisation.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

class CovarianceMatrixKernelTest : public KernelTest {};

constexpr double kMatrixLambda = 0.2;
constexpr double kMatrixScale = 0.125;

/// Positive definite, [n × n].
Eigen::MatrixXd definite_matrix(std::int64_t n) {
  Eigen::MatrixXd half(n, n);
  RngStream draws(test_key(31), 2);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) half(i, j) = draws.normal() / std::sqrt(static_cast<double>(n));
  }
  return Eigen::MatrixXd::Identity(n, n) + half * half.transpose();
}

/// Row-major, the lower triangle, with NaN above.
std::vector<double> lower_triangle(const Eigen::MatrixXd& a) {
  std::vector<double> values(a.size(), std::nan(""));
  for (std::int64_t i = 0; i < a.rows(); ++i) {
    for (std::int64_t j = 0; j <= i; ++j) values[i * a.rows() + j] = a(i, j);
  }
  return values;
}

void expect_lower(const std::vector<double>& found, const Eigen::MatrixXd& expected, double tolerance) {
  const std::int64_t n = expected.rows();
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j <= i; ++j)
      ASSERT_NEAR(found[i * n + j], expected(i, j), tolerance) << n << " " << i << " " << j;
  }
}

TEST_P(CovarianceMatrixKernelTest, FormsBothMatrices) {
  const auto expect_match = [](const auto& shape) {
    for (const std::int64_t n : {1, 33, 300}) {
      const std::vector<float> factors = random_factors(shape, 2 * n, 4);
      auto rows = on_device(factors);
      const device::FactorRows pairs{rows.data(), 2 * n, shape.factors()};
      const Eigen::MatrixXd g = slow_pair_gradients(shape, view_of(shape, factors));
      const double largest = kMatrixScale * g.rowwise().squaredNorm().maxCoeff();

      DeviceArray<double> b = unset_on_device<double>(n * n);
      DeviceArray<double> work(device::pair_kernel_workspace(n));
      device::pair_kernel(nullptr, shape, pairs, kMatrixScale, kMatrixLambda, work.data(), b.data());
      // Differences of sums of at most 40 terms in double.
      expect_lower(b.to_host(),
                   kMatrixLambda * Eigen::MatrixXd::Identity(n, n) + kMatrixScale * g * g.transpose(),
                   1e-13 * (1.0 + largest));

      const std::int64_t p = shape.parameters();
      DeviceArray<std::int32_t> delta(p);
      DeviceArray<std::int32_t> input(p);
      const device::ParameterTable table{delta.data(), input.data()};
      device::fill_parameter_table(nullptr, shape, table);
      DeviceArray<double> a = unset_on_device<double>(p * p);
      DeviceArray<double> more_work(device::pair_covariance_workspace(p));
      device::pair_covariance(nullptr, shape, table, pairs, kMatrixScale, kMatrixLambda, more_work.data(),
                              a.data());
      expect_lower(a.to_host(),
                   kMatrixLambda * Eigen::MatrixXd::Identity(p, p) + kMatrixScale * g.transpose() * g,
                   1e-13 * (1.0 + static_cast<double>(n) * largest));
    }
  };
  for (const NetworkShape& shape : {ntk_shape(5, 6, 2), standard_shape(4, 7, 3), linear_shape(7)})
    expect_match(shape);
}

TEST_P(CovarianceMatrixKernelTest, CopiesMatricesAndTriangles) {
  for (const std::int64_t n : {1, 33, 300}) {
    const std::int64_t from_stride = n + 3;
    const std::int64_t stride = n + 7;
    const std::vector<double> a = random_doubles(n * from_stride, 8);
    const std::vector<double> before = random_doubles(n * stride, 9);
    const auto from = on_device(a);
    auto whole = on_device(before);
    auto lower = on_device(before);
    auto within = on_device(a);
    device::copy_matrix(nullptr, n, n - 1, {from.data(), from_stride}, whole.data(), stride);
    device::copy_lower(nullptr, n, {from.data(), from_stride}, 0.5, lower.data(), stride);
    device::copy_lower(nullptr, n, {within.data(), from_stride}, 0.0, within.data(), from_stride);
    std::vector<double> expected_whole = before;
    std::vector<double> expected_lower = before;
    std::vector<double> expected_within = a;
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const double number = a[i * from_stride + j];
        if (j < n - 1) expected_whole[i * stride + j] = number;
        expected_lower[i * stride + j] = j > i ? 0.0 : number + (i == j ? 0.5 : 0.0);
        if (j > i) expected_within[i * from_stride + j] = 0.0;
      }
    }
    EXPECT_EQ(whole.to_host(), expected_whole);
    EXPECT_EQ(lower.to_host(), expected_lower);
    EXPECT_EQ(within.to_host(), expected_within);
  }
}

TEST_P(CovarianceMatrixKernelTest, TheLibraryFactorisesSolvesAndInverts) {
  for (const std::int64_t n : {1, 31, 64, 129, 300}) {
    const Eigen::MatrixXd a = definite_matrix(n);
    const Eigen::MatrixXd l = a.llt().matrixL();
    auto there = on_device(lower_triangle(a));
    device::Factorisation library(n);
    ASSERT_TRUE(library.factorise(nullptr, there.data()));
    expect_lower(there.to_host(), l, 1e-12);

    auto status = on_device(std::vector<device::CovarianceStatus>{{7.0, 1}});
    device::status_of_factor(nullptr, n, there.data(), 0.5, status.data());
    double log_det = 0.0;
    for (std::int64_t k = 0; k < n; ++k) log_det += 2.0 * std::log(l(k, k)) - std::log(0.5);
    EXPECT_EQ(status.to_host()[0].failed, 0);
    EXPECT_NEAR(status.to_host()[0].log_det, log_det, 1e-11 * (1.0 + log_det));

    const std::vector<double> x = random_doubles(n, 6);
    auto x_there = on_device(x);
    library.solve(nullptr, there.data(), x_there.data());
    const Eigen::VectorXd solved = a.llt().solve(Eigen::Map<const Eigen::VectorXd>(x.data(), n));
    EXPECT_TRUE(all_near(x_there.to_host(), std::vector<double>(solved.begin(), solved.end()), 1e-12, 0.0));

    auto second = on_device(there.to_host());
    library.invert_from_factor(nullptr, second.data());
    device::mirror_lower(nullptr, n, second.data());
    const auto inverse = second.to_host();
    expect_lower(inverse, a.inverse(), 1e-12);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = i + 1; j < n; ++j) ASSERT_EQ(inverse[i * n + j], inverse[j * n + i]);
    }

    library.invert_factor(nullptr, there.data());
    const Eigen::MatrixXd of_factor = l.inverse();
    expect_lower(there.to_host(), of_factor, 1e-12);
    DeviceArray<double> packed = unset_on_device<double>(device::factor_numbers(n));
    device::pack_factor(nullptr, n, there.data(), packed.data());
    const auto blocks = packed.to_host();
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < InverseFactor::stride(i / InverseFactor::kBlock); ++j) {
        const double expected = j <= i ? of_factor(i, j) : 0.0;
        ASSERT_NEAR(blocks[device::factor_row(i) + j], expected, 1e-12) << i << " " << j;
      }
    }
  }
}

TEST_P(CovarianceMatrixKernelTest, ReportsMatricesThatAreNotPositiveDefinite) {
  Eigen::MatrixXd a = definite_matrix(40);
  a(20, 20) = -1.0;
  auto there = on_device(lower_triangle(a));
  EXPECT_FALSE(device::Factorisation(40).factorise(nullptr, there.data()));
  there = on_device(std::vector<double>{std::nan("")});
  auto status = on_device(std::vector<device::CovarianceStatus>(1));
  device::status_of_factor(nullptr, 1, there.data(), 0.5, status.data());
  EXPECT_EQ(status.to_host()[0].failed, 1);
  EXPECT_EQ(status.to_host()[0].log_det, 0.0);
}

OLRANK_KERNEL_TESTS(CovarianceMatrixKernelTest);

}  // namespace
}  // namespace olrank
