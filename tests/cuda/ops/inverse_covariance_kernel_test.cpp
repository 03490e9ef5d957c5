#include "cuda/ops/inverse_covariance.h"

#include <cmath>

#include "cuda/ops/covariance_matrix.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

class InverseCovarianceKernelTest : public KernelTest {};

constexpr double kPrimalLambda = 0.4;
constexpr double kPrimalScale = 0.125;

/// The primal form as the device keeps it, round by round, beside the matrix that it inverts.
struct PrimalRounds {
  TangentShape shape;
  std::int64_t p;
  DeviceArray<double> inverse;
  DeviceArray<std::int32_t> delta;
  DeviceArray<std::int32_t> input;
  DeviceArray<device::CovarianceStatus> status;
  device::ProductPlans plans;
  device::Products products{plans, nullptr};
  Eigen::MatrixXd a;

  explicit PrimalRounds(const TangentShape& of)
      : shape(of),
        p(shape.parameters()),
        inverse(p * p),
        delta(p),
        input(p),
        status(on_device(std::vector<device::CovarianceStatus>(1))),
        a(kPrimalLambda * Eigen::MatrixXd::Identity(p, p)) {
    device::fill_parameter_table(nullptr, shape, {delta.data(), input.data()});
    device::reset_inverse_covariance(nullptr, p, kPrimalLambda, inverse.data());
  }

  void play(const std::vector<float>& factors, const std::vector<PreferencePair>& pairs) {
    auto rows = on_device(factors);
    const auto pairs_there = on_device(pairs);
    const auto docs = std::ssize(factors) / shape.factors();
    const auto count = std::ssize(pairs);
    const device::FactorRows view{rows.data(), docs, shape.factors()};
    DeviceArray<double> work(device::inverse_gram_workspace(shape, docs));
    DeviceArray<double> update_work(device::inverse_update_workspace(p, count));
    DeviceArray<double> w(docs * p);
    DeviceArray<double> m = unset_on_device<double>(docs * docs);
    device::inverse_covariance_gram(products, shape, {delta.data(), input.data()}, view, kPrimalScale,
                                    inverse.data(), work.data(), w.data(), m.data());
    device::update_inverse_covariance(nullptr, p, docs, w.data(), m.data(), kPrimalScale,
                                      pairs_there.data(), count, update_work.data(), inverse.data(),
                                      status.data());
    const Eigen::MatrixXd g = slow_gradients(shape, view_of(shape, factors));
    const Eigen::MatrixXd expected = kPrimalScale * g * a.llt().solve(g.transpose());
    const auto found = m.to_host();
    for (std::int64_t i = 0; i < docs; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        // A⁻¹ is as exact as its largest number, 1/λ: the terms of the sum are up to kPrimalScale/λ
        // |g_i||g_j|.
        const double tolerance = 1e-12 * kPrimalScale / kPrimalLambda * g.row(i).norm() * g.row(j).norm();
        ASSERT_NEAR(found[i * docs + j], expected(i, j), tolerance)
            << p << " " << docs << " " << i << " " << j;
      }
    }
    for (const PreferencePair& pair : pairs) {
      const Eigen::RowVectorXd difference = g.row(pair.winner) - g.row(pair.loser);
      a += kPrimalScale * difference.transpose() * difference;
    }
  }
};

TEST_P(InverseCovarianceKernelTest, MatchesTheWholeHistoryInEachRound) {
  const auto expect_match = [](const auto& shape) {
    PrimalRounds rounds(shape);
    std::uint64_t seed = 30;
    for (const std::int64_t count : {0, 1, 5, 40, 2}) {
      const std::int64_t docs = count == 40 ? 66 : 9;
      std::vector<PreferencePair> pairs;
      for (std::int64_t s = 0; s < count; ++s) {
        pairs.push_back(
            {static_cast<std::int32_t>((5 * s + 1) % docs), static_cast<std::int32_t>(s % docs)});
      }
      rounds.play(random_factors(shape, docs, ++seed), pairs);
    }
    const Eigen::MatrixXd expected = rounds.a.inverse();
    const auto found = rounds.inverse.to_host();
    for (std::int64_t i = 0; i < rounds.p; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        ASSERT_NEAR(found[i * rounds.p + j], expected(i, j), 1e-12 / kPrimalLambda) << i;
        ASSERT_EQ(found[i * rounds.p + j], found[j * rounds.p + i]) << i << " " << j;
      }
    }
    double log_det = 0.0;
    const Eigen::LLT<Eigen::MatrixXd> cholesky(rounds.a / kPrimalLambda);
    for (std::int64_t k = 0; k < rounds.p; ++k) log_det += 2.0 * std::log(cholesky.matrixLLT()(k, k));
    const device::CovarianceStatus status = rounds.status.to_host()[0];
    EXPECT_EQ(status.failed, 0);
    EXPECT_NEAR(status.log_det, log_det, 1e-10 * (1.0 + log_det));
  };
  for (const NetworkShape& shape :
       {ntk_shape(9, 12, 2), ntk_shape(21, 24, 2), standard_shape(4, 7, 3), linear_shape(7)})
    expect_match(shape);
}

TEST_P(InverseCovarianceKernelTest, AppliesTheInverse) {
  for (const std::int64_t p : {1, 31, 33, 200}) {
    const auto numbers = random_numbers(p * p, 14);
    std::vector<double> lower(p * p, std::nan(""));
    std::vector<double> x;
    for (const float value : random_numbers(p, 15)) x.push_back(double{value});
    std::vector<double> expected(p, 0.0);
    for (std::int64_t i = 0; i < p; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        const double value = double{numbers[i * p + j]};
        lower[i * p + j] = value;
        expected[i] += value * x[j];
        if (i != j) expected[j] += value * x[i];
      }
    }
    auto inverse = on_device(lower);
    device::mirror_lower(nullptr, p, inverse.data());
    const auto x_there = on_device(x);
    DeviceArray<double> y(p);
    device::apply_inverse_covariance(nullptr, p, inverse.data(), x_there.data(), y.data());
    EXPECT_TRUE(all_near(y.to_host(), expected, 1e-12, 1e-12)) << p;
  }
}

TEST_P(InverseCovarianceKernelTest, ReportsAnIndefiniteCornerAndChangesNothing) {
  const NetworkShape shape = linear_shape(3);
  PrimalRounds rounds(shape);
  const auto before = rounds.inverse.to_host();
  const auto w = on_device(std::vector<double>(6, 1.0));
  const auto m = on_device(std::vector<double>{-9.0, 0.0, 0.0, 1.0});
  const auto pairs = on_device(std::vector<PreferencePair>{{0, 1}});
  DeviceArray<double> work(device::inverse_update_workspace(3, 1));
  device::update_inverse_covariance(nullptr, 3, 2, w.data(), m.data(), kPrimalScale, pairs.data(), 1,
                                    work.data(), rounds.inverse.data(), rounds.status.data());
  EXPECT_EQ(rounds.status.to_host()[0].failed, 1);
  const auto after = rounds.inverse.to_host();
  EXPECT_EQ(after, before);
}

OLRANK_KERNEL_TESTS(InverseCovarianceKernelTest);

}  // namespace
}  // namespace olrank
