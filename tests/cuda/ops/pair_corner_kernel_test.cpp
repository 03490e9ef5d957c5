#include "cuda/ops/pair_corner.h"

#include <Eigen/Dense>
#include <cmath>
#include <limits>

#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

class PairCornerKernelTest : public KernelTest {};

/// M = B Bᵀ of random documents.
Eigen::MatrixXd random_gram(std::int64_t docs, std::uint64_t seed) {
  const std::vector<double> numbers = random_doubles(docs * (docs + 2), seed);
  const Eigen::Map<const Eigen::MatrixXd> b(numbers.data(), docs, docs + 2);
  return b * b.transpose();
}

/// Row-major, NaN above the diagonal, which the kernel must not read.
std::vector<double> lower_triangle(const Eigen::MatrixXd& m) {
  std::vector<double> values;
  for (Eigen::Index i = 0; i < m.rows(); ++i) {
    for (Eigen::Index j = 0; j < m.cols(); ++j)
      values.push_back(j <= i ? m(i, j) : std::numeric_limits<double>::quiet_NaN());
  }
  return values;
}

TEST_P(PairCornerKernelTest, InvertsTheCholeskyFactor) {
  constexpr std::int64_t kDocs = 20;
  const Eigen::MatrixXd m = random_gram(kDocs, 53);
  const auto m_there = on_device(lower_triangle(m));
  RngStream draws(test_key(54), 0);
  for (const std::int64_t count : {1, 2, 31, 33, 60}) {
    std::vector<PreferencePair> pairs;
    Eigen::MatrixXd delta = Eigen::MatrixXd::Zero(count, kDocs);
    for (std::int64_t s = 0; s < count; ++s) {
      const auto winner = static_cast<std::int32_t>(draws.index(kDocs));
      const auto loser = static_cast<std::int32_t>(
          (static_cast<std::uint32_t>(winner) + 1 + draws.index(kDocs - 1)) % kDocs);
      pairs.push_back({winner, loser});
      delta(s, winner) += 1.0;
      delta(s, loser) -= 1.0;
    }
    const Eigen::MatrixXd corner = Eigen::MatrixXd::Identity(count, count) + delta * m * delta.transpose();
    const auto pairs_there = on_device(pairs);
    DeviceArray<double> factor(count * count);
    DeviceArray<double> inverse(count * count);
    auto status = on_device(std::vector<device::CovarianceStatus>{{0.5, 0}});
    device::factor_pair_corner(nullptr, kDocs, m_there.data(), pairs_there.data(), count, factor.data(),
                               inverse.data(), status.data());
    const std::vector<double> found = inverse.to_host();
    const Eigen::MatrixXd inverse_factor =
        Eigen::Map<const Eigen::MatrixXd>(found.data(), count, count).transpose();
    // D⁻¹ B D⁻ᵀ = I. The corner's condition is below 1e4, so that its factor keeps twelve digits.
    const Eigen::MatrixXd identity = inverse_factor * corner * inverse_factor.transpose();
    EXPECT_LE((identity - Eigen::MatrixXd::Identity(count, count)).cwiseAbs().maxCoeff(), 1e-10) << count;
    EXPECT_TRUE(inverse_factor.isLowerTriangular(0.0)) << count;
    const device::CovarianceStatus after = status.to_host()[0];
    EXPECT_EQ(after.failed, 0);
    EXPECT_NEAR(after.log_det, 0.5 + std::log(corner.fullPivLu().determinant()),
                1e-9 * (1.0 + after.log_det));
  }
}

TEST_P(PairCornerKernelTest, ReportsAnIndefiniteCornerAndKeepsTheLogDeterminant) {
  Eigen::MatrixXd m = Eigen::MatrixXd::Zero(2, 2);
  m(0, 0) = -5.0;
  const auto m_there = on_device(lower_triangle(m));
  const auto pairs = on_device(std::vector<PreferencePair>{{0, 1}});
  DeviceArray<double> factor(1);
  DeviceArray<double> inverse(1);
  auto status = on_device(std::vector<device::CovarianceStatus>{{0.5, 0}});
  device::factor_pair_corner(nullptr, 2, m_there.data(), pairs.data(), 1, factor.data(), inverse.data(),
                             status.data());
  EXPECT_EQ(status.to_host()[0].failed, 1);
  EXPECT_EQ(status.to_host()[0].log_det, 0.5);
}

OLRANK_KERNEL_TESTS(PairCornerKernelTest);

}  // namespace
}  // namespace olrank
