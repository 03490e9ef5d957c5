#include <Eigen/Dense>
#include <cstring>

#include "cuda/ops/covariance_matrix.h"
#include "cuda/ops/inverse_factor.h"
#include "cuda/runtime/factorisation.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

OLRANK_KERNEL_TEST_SUITE(CovarianceKernelTest);

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double kLambda = 0.2;
std::size_t at(std::int64_t i, std::int64_t j, std::int64_t stride) {
  return static_cast<std::size_t>(i * stride + j);
}

/// L⁻¹ of n random rows, as the device keeps it: whole blocks, then rows of L.
struct MixedRows {
  RowMajor inverse;
  std::vector<double> factor;
  DeviceArray<double> newest;
  device::FactorTail tail;

  explicit MixedRows(std::int64_t n) : inverse(RowMajor::Zero(n, n)), tail(n) {
    RngStream draws(test_key(5), 1);
    RowMajor l = RowMajor::Zero(n, n);
    for (std::int64_t row = 0; row < n; ++row) {
      for (std::int64_t column = 0; column <= row; ++column)
        l(row, column) = column == row ? 1.0 + draws.uniform() : draws.normal() / 16.0;
    }
    inverse = l.triangularView<Eigen::Lower>().solve(RowMajor::Identity(n, n));
    factor.assign(device::factor_numbers(tail.head), std::nan(""));
    for (std::int64_t row = 0; row < tail.head; ++row) {
      for (std::int64_t column = 0; column <= row; ++column)
        factor[device::factor_row(row) + column] = inverse(row, column);
    }
    std::vector<double> rows(tail.numbers(), std::nan(""));
    for (std::int64_t i = 0; i < tail.rows; ++i) {
      for (std::int64_t column = 0; column < n; ++column)
        rows[at(i, column, tail.stride())] = (column < tail.head ? l : inverse)(tail.head + i, column);
    }
    newest = on_device(rows);
    tail.values = newest;
  }
};

TEST_P(CovarianceKernelTest, AppliesTheTransposedFactorToColumns) {
  for (const std::int64_t n : {1, 31, 33, 128, 300, 384, 600}) {
    for (const std::int64_t columns : {1, 7, 9}) {
      const MixedRows rows(n);
      const Given<double> x = random_doubles(n * columns, 13);
      DeviceArray<double> y = unset_on_device<double>(columns * n);
      DeviceArray<double> workspace(device::apply_factor_transposed_workspace(rows.tail.head, columns));
      device::apply_factor_transposed(nullptr, rows.tail, on_device(rows.factor), columns, x, workspace, y);
      const RowMajor expected = Eigen::Map<const RowMajor>(x.data(), n, columns).transpose() * rows.inverse;
      const std::vector<double> numbers(expected.data(), expected.data() + expected.size());
      EXPECT_TRUE(all_near(y.to_host(), numbers, 1e-12, 1e-12)) << n << " " << columns;
    }
  }
}

// The newest rows are rows of L, and L⁻¹ x takes them after the others; the longest factors are cut into
// two and three parts.
TEST_P(CovarianceKernelTest, AppliesTheFactorAndItsTail) {
  for (const std::int64_t n : {0, 1, 31, 64, 65, 127, 128, 129, 256, 300, 450, 600}) {
    for (const std::int64_t columns : {1, 33, 65}) {
      const MixedRows rows(n);
      const std::int64_t stride = columns + 2;
      const Given<double> x = random_doubles(n * stride, 14);
      const RowMajor expected = rows.inverse * Eigen::Map<const RowMajor>(x.data(), n, stride);
      auto s = unset_on_device<double>(n * stride);
      DeviceArray<double> work(device::apply_factor_workspace(rows.tail.head, columns));
      DeviceArray<double> tail_work(device::tail_workspace(rows.tail, columns, false));
      device::apply_factor(nullptr, rows.tail.head, on_device(rows.factor), columns, x, work, s, stride);
      device::apply_tail(nullptr, rows.tail, columns, x, tail_work, s, stride);
      const auto found = s.to_host();
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < columns; ++j)
          ASSERT_NEAR(found[at(i, j, stride)], expected(i, j), 1e-12) << n << " " << i;
      }
    }
  }
}

// A covariance that is none: nothing but the status changes, then or later.
TEST_P(CovarianceKernelTest, ReportsAnIndefiniteCornerAndWritesNothing) {
  DeviceArray<double> factor = unset_on_device<double>(device::FactorTail(4).numbers());
  const auto pairs = on_device(std::vector<PreferencePair>{{0, 1}});
  DeviceArray<double> work(device::append_workspace(0, 1));
  auto status = on_device(std::vector<device::CovarianceStatus>(1));
  const auto before = factor.to_host();
  device::append_pairs(nullptr, 0, nullptr, factor, 2, nullptr, 2,
                       on_device(std::vector<double>{-9.0, 0.0, 0.0, 1.0}), kLambda, pairs, 1, work,
                       status);
  EXPECT_EQ(status.to_host()[0].failed, 1);
  device::append_pairs(nullptr, 0, nullptr, factor, 2, nullptr, 2,
                       on_device(std::vector<double>{1.0, 0.0, 0.0, 1.0}), kLambda, pairs, 1, work, status);
  EXPECT_EQ(status.to_host()[0].failed, 1);
  EXPECT_EQ(status.to_host()[0].log_det, 0.0);
  const auto after = factor.to_host();
  EXPECT_EQ(std::memcmp(before.data(), after.data(), before.size() * sizeof(double)), 0);
}

TEST_P(CovarianceKernelTest, ReportsMatricesThatAreNotPositiveDefinite) {
  std::vector<double> a(40 * 40);
  for (std::size_t k = 0; k < a.size(); k += 41) a[k] = k == 20 * 41 ? -1.0 : 1.0;
  auto there = on_device(a);
  EXPECT_FALSE(device::Factorisation(40).factorise(nullptr, there));
  there = on_device(std::vector<double>{std::nan("")});
  auto status = on_device(std::vector<device::CovarianceStatus>(1));
  device::status_of_factor(nullptr, 1, there, 0.5, status);
  EXPECT_EQ(status.to_host()[0].failed, 1);
  EXPECT_EQ(status.to_host()[0].log_det, 0.0);
}

TEST_P(CovarianceKernelTest, AnIndefiniteCornerLeavesTheInverse) {
  auto inverse = on_device(std::vector<double>{2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0});
  auto tail = on_device(std::vector<double>(3 * device::DelayedInverse::kRows));
  auto status = on_device(std::vector<device::CovarianceStatus>(1));
  device::DelayedInverse delayed{inverse, tail, 0};
  DefaultProducts on;
  DeviceArray<double> work(2);
  const auto before = inverse.to_host();
  device::observe_in_inverse(nullptr, 3, 2, on_device(std::vector<double>(6, 1.0)),
                             on_device(std::vector<double>{-9.0, 0.0, 0.0, 1.0}), 0.125,
                             on_device(std::vector<PreferencePair>{{0, 1}}), 1, work, delayed, status);
  device::close_inverse(on.products, 3, delayed);
  EXPECT_EQ(status.to_host()[0].failed, 1);
  EXPECT_EQ(inverse.to_host(), before);
}

// A block that is filled is multiplied by the rows before it, of which fewer may be cut into more parts.
TEST(AppendWorkspaceTest, HoldsWhatTheFilledBlocksNeed) {
  constexpr std::int64_t kBlock = InverseFactor::kBlock;
  for (std::int64_t n = 0; n < 20'000; n += 7) {
    for (const std::int64_t pairs :
         {std::int64_t{1}, std::int64_t{9}, std::int64_t{127}, std::int64_t{256}}) {
      const std::int64_t found = device::append_workspace(n, pairs) - 2 * pairs * pairs;
      for (std::int64_t head = device::FactorTail(n).head; head + kBlock <= n + pairs; head += kBlock)
        ASSERT_GE(found, device::apply_factor_transposed_workspace(head, kBlock)) << n << " " << pairs;
    }
  }
}

}  // namespace
}  // namespace olrank
