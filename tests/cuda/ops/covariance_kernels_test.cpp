#include <cmath>

#include "core/ops/covariance.h"
#include "cuda/ops/covariance_matrix.h"
#include "cuda/ops/inverse_covariance.h"
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
      const Given<float> factors = random_factors(shape, 2 * n, 4);
      const device::FactorRows pairs{factors, 2 * n, shape.factors()};
      const Eigen::MatrixXd g = slow_pair_gradients(shape, view_of(shape, factors));
      const double largest = kMatrixScale * g.rowwise().squaredNorm().maxCoeff();

      DeviceArray<double> b = unset_on_device<double>(n * n);
      DeviceArray<double> work(device::pair_kernel_workspace(n));
      device::pair_kernel(nullptr, shape, pairs, kMatrixScale, kMatrixLambda, work, b);
      // Differences of sums of at most 40 terms in double.
      expect_lower(b.to_host(),
                   kMatrixLambda * Eigen::MatrixXd::Identity(n, n) + kMatrixScale * g * g.transpose(),
                   1e-13 * (1.0 + largest));

      const std::int64_t p = shape.parameters();
      DeviceArray<double> a = unset_on_device<double>(p * p);
      DeviceArray<double> more_work(device::pair_covariance_workspace(p));
      DefaultProducts on;
      device::pair_covariance(on.products, shape, pairs, kMatrixScale, kMatrixLambda, more_work, a);
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
    const Given<double> a = random_doubles(n * from_stride, 8);
    const std::vector<double> before = random_doubles(n * stride, 9);
    auto whole = on_device(before);
    auto lower = on_device(before);
    auto within = on_device(a);
    device::copy_matrix(nullptr, n, n - 1, {a, from_stride}, whole, stride);
    device::copy_lower(nullptr, n, {a, from_stride}, lower, stride);
    device::copy_lower(nullptr, n, {within, from_stride}, within, from_stride);
    std::vector<double> expected_whole = before;
    std::vector<double> expected_lower = before;
    std::vector<double> expected_within = a;
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const double number = a[i * from_stride + j];
        if (j < n - 1) expected_whole[i * stride + j] = number;
        expected_lower[i * stride + j] = j > i ? 0.0 : number;
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
    ASSERT_TRUE(library.factorise(nullptr, there));
    expect_lower(there.to_host(), l, 1e-12);

    auto status = on_device(std::vector<device::CovarianceStatus>{{7.0, 1}});
    device::status_of_factor(nullptr, n, there, 0.5, status);
    double log_det = 0.0;
    for (std::int64_t k = 0; k < n; ++k) log_det += 2.0 * std::log(l(k, k)) - std::log(0.5);
    EXPECT_EQ(status.to_host()[0].failed, 0);
    EXPECT_NEAR(status.to_host()[0].log_det, log_det, 1e-11 * (1.0 + log_det));

    constexpr std::int64_t kRightSides = 7;
    const std::vector<double> x = random_doubles(n * kRightSides, 6);
    auto x_there = on_device(x);
    library.solve(nullptr, there, kRightSides, x_there);
    const Eigen::MatrixXd solved =
        a.llt().solve(Eigen::Map<const Eigen::MatrixXd>(x.data(), n, kRightSides));
    EXPECT_TRUE(all_near(x_there.to_host(),
                         std::vector<double>(solved.data(), solved.data() + solved.size()), 1e-12, 0.0));

    auto second = on_device(there.to_host());
    library.invert_from_factor(nullptr, second);
    device::mirror_lower(nullptr, n, second);
    const auto inverse = second.to_host();
    expect_lower(inverse, a.inverse(), 1e-12);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = i + 1; j < n; ++j) ASSERT_EQ(inverse[i * n + j], inverse[j * n + i]);
    }

    library.invert_factor(nullptr, there);
    const Eigen::MatrixXd of_factor = l.inverse();
    expect_lower(there.to_host(), of_factor, 1e-12);
    DeviceArray<double> packed = unset_on_device<double>(device::factor_numbers(n));
    device::pack_factor(nullptr, n, there, n, packed);
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
  EXPECT_FALSE(device::Factorisation(40).factorise(nullptr, there));
  there = on_device(std::vector<double>{std::nan("")});
  auto status = on_device(std::vector<device::CovarianceStatus>(1));
  device::status_of_factor(nullptr, 1, there, 0.5, status);
  EXPECT_EQ(status.to_host()[0].failed, 1);
  EXPECT_EQ(status.to_host()[0].log_det, 0.0);
}

OLRANK_KERNEL_TESTS(CovarianceMatrixKernelTest);

class DiagonalCovarianceKernelTest : public KernelTest {};

/// Factors with some units dead for all documents and some documents without a live unit.
template <class Shape>
std::vector<float> factors_with_dead_units(const Shape& shape, std::int64_t docs) {
  std::vector<float> factors = random_factors(shape, docs, 17);
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    float* row = factors.data() + doc * shape.factors();
    const TangentShape all(shape);
    for (const NetworkLayer& layer : all.layers().first(all.layers().size() - 1)) {
      for (std::int64_t unit = 0; unit < layer.rows; ++unit) {
        if (unit % 3 == 1 || doc == 2) row[layer.delta + unit] = 0.0F;
      }
    }
  }
  return factors;
}

struct Device {
  DeviceArray<double> diagonal;
  DeviceArray<double> root;
  device::DiagonalState state;

  explicit Device(std::int64_t p) : diagonal(p), root(p), state{diagonal, root} {}
};

TEST_P(DiagonalCovarianceKernelTest, AccumulationMatchesCpu) {
  constexpr double kLambda = 0.3;
  constexpr double kScale = 0.125;
  const auto expect_equal_diagonals = [&](const auto& shape) {
    const Given<float> factors = random_factors(shape, 12, 3);
    const Given<PreferencePair> pairs = {{4, 1}, {0, 11}, {5, 5}, {4, 2}};
    Device device(shape.parameters());
    const device::FactorRows view{factors, 12, shape.factors()};
    device::reset_diagonal(nullptr, shape, kLambda, kScale, device.state);
    device::add_to_diagonal(nullptr, shape, view, pairs, 0, kScale, device.state);
    const std::vector<double> fresh(shape.parameters(), kLambda);
    EXPECT_EQ(device.diagonal.to_host(), fresh);
    device::add_to_diagonal(nullptr, shape, view, pairs, 3, kScale, device.state);
    device::add_to_diagonal(nullptr, shape, view, pairs.there() + 3, 1, kScale, device.state);

    std::vector<float> of_pairs;
    for (const PreferencePair& pair : pairs) {
      for (const std::int32_t doc : {pair.winner, pair.loser}) {
        const auto row = part_of(factors, doc * shape.factors(), shape.factors());
        of_pairs.insert(of_pairs.end(), row.begin(), row.end());
      }
    }
    ExecutionContext context;
    std::vector<double> expected = fresh;
    add_to_diagonal(context, shape, view_of(shape, of_pairs), kScale, expected);
    // The GPU may fuse a multiplication with an addition.
    EXPECT_TRUE(all_near(device.diagonal.to_host(), expected, 0.0, 1e-14));
    std::vector<double> root;
    for (const double value : expected) root.push_back(std::sqrt(kScale / value));
    EXPECT_TRUE(all_near(device.root.to_host(), root, 0.0, 1e-14));
  };
  for (const NetworkShape& shape : test_shapes()) expect_equal_diagonals(shape);
}

template <class Shape>
void expect_equal_grams(const Shape& shape, std::int64_t docs) {
  constexpr double kScale = 0.25;
  ExecutionContext context;
  const std::vector<float> factors = factors_with_dead_units(shape, docs);
  std::vector<double> weights;
  Given<double> root;
  for (const float draw : random_numbers(shape.parameters(), 23)) {
    weights.push_back(1.0 / (0.1 + double{draw} * double{draw}));
    root.push_back(std::sqrt(kScale * weights.back()));
  }
  DeviceArray<double> workspace(device::diagonal_gram_workspace(shape, docs));
  DeviceArray<double> m = unset_on_device<double>(docs * docs);
  device::diagonal_gram(nullptr, shape, {on_device(factors), docs, shape.factors()}, root, workspace, m);
  const std::vector<double> found = m.to_host();
  std::vector<double> expected(found.size());
  diagonal_gram(context, shape, view_of(shape, factors), kScale, weights, expected.data());
  for (std::int64_t i = 0; i < docs; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      const auto at = static_cast<std::size_t>(i * docs + j);
      // Sums of at most 2,000 products in double; the scale of their terms is that of the diagonal.
      const double scale = std::sqrt(expected[i * (docs + 1)] * expected[j * (docs + 1)]);
      ASSERT_TRUE(std::abs(found[at] - expected[at]) <= 1e-13 * scale)
          << docs << " " << i << " " << j << " " << found[at] << " " << expected[at];
    }
  }
}

TEST_P(DiagonalCovarianceKernelTest, GramsMatchCpu) {
  for (const NetworkShape& shape : test_shapes()) expect_equal_grams(shape, 10);
  for (const std::int64_t docs : {0, 1, 31, 32, 33, 64, 65, 130})
    expect_equal_grams(ntk_shape(5, 6, 2), docs);
  expect_equal_grams(ntk_shape(3, 300, 2), 3);
}

OLRANK_KERNEL_TESTS(DiagonalCovarianceKernelTest);

class InverseCovarianceKernelTest : public KernelTest {};

constexpr double kPrimalLambda = 0.4;
constexpr double kPrimalScale = 0.125;

/// The primal form as the device keeps it, round by round, beside the matrix that it inverts.
struct PrimalRounds {
  TangentShape shape;
  std::int64_t p;
  DeviceArray<double> inverse;
  DeviceArray<double> tail;
  device::DelayedInverse delayed;
  DeviceArray<device::CovarianceStatus> status;
  device::ProductPlans plans;
  device::Products products{plans, nullptr};
  Eigen::MatrixXd a;

  explicit PrimalRounds(const TangentShape& of)
      : shape(of),
        p(shape.parameters()),
        inverse(p * p),
        tail(on_device(std::vector<double>(device::DelayedInverse::kRows * p))),
        status(on_device(std::vector<device::CovarianceStatus>(1))),
        a(kPrimalLambda * Eigen::MatrixXd::Identity(p, p)) {
    device::reset_inverse_covariance(nullptr, p, kPrimalLambda, inverse);
    delayed = {inverse, tail, 0};
  }

  void play(const std::vector<float>& factors, const std::vector<PreferencePair>& pairs) {
    auto rows = on_device(factors);
    const auto docs = std::ssize(factors) / shape.factors();
    const auto count = std::ssize(pairs);
    const device::FactorRows view{rows, docs, shape.factors()};
    DeviceArray<double> work(device::inverse_gram_workspace(shape, docs));
    DeviceArray<double> update_work(2 * count * count);
    DeviceArray<double> w(docs * p);
    DeviceArray<double> m = unset_on_device<double>(docs * docs);
    device::inverse_covariance_gram(products, shape, view, kPrimalScale, delayed, work, w, m);
    device::observe_in_inverse(nullptr, p, docs, w, m, kPrimalScale, on_device(pairs), count, update_work,
                               delayed, status);
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
    EXPECT_EQ(rounds.delayed.rows, 48);
    device::close_inverse(rounds.products, rounds.p, rounds.delayed);
    EXPECT_EQ(rounds.delayed.rows, 0);
    EXPECT_EQ(rounds.tail.to_host(), std::vector<double>(rounds.tail.size()));
    rounds.play(random_factors(shape, 9, 77), {});
    const Eigen::MatrixXd expected = rounds.a.inverse();
    const auto found = rounds.inverse.to_host();
    for (std::int64_t i = 0; i < rounds.p; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        ASSERT_NEAR(found[i * rounds.p + j], expected(i, j), 1e-12 / kPrimalLambda) << i;
        ASSERT_NEAR(found[j * rounds.p + i], expected(i, j), 1e-12 / kPrimalLambda) << i << " " << j;
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

TEST_P(InverseCovarianceKernelTest, ReportsAnIndefiniteCornerAndChangesNothing) {
  const NetworkShape shape = linear_shape(3);
  PrimalRounds rounds(shape);
  const auto before = rounds.inverse.to_host();
  DeviceArray<double> work(2);
  device::observe_in_inverse(nullptr, 3, 2, on_device(std::vector<double>(6, 1.0)),
                             on_device(std::vector<double>{-9.0, 0.0, 0.0, 1.0}), kPrimalScale,
                             on_device(std::vector<PreferencePair>{{0, 1}}), 1, work, rounds.delayed,
                             rounds.status);
  device::close_inverse(rounds.products, 3, rounds.delayed);
  EXPECT_EQ(rounds.status.to_host()[0].failed, 1);
  const auto after = rounds.inverse.to_host();
  EXPECT_EQ(after, before);
}

OLRANK_KERNEL_TESTS(InverseCovarianceKernelTest);

}  // namespace
}  // namespace olrank
