#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/ops/covariance.h"
#include "core/ops/tangent_factors.h"
#include "cuda/ops/inverse_factor.h"
#include "cuda/ops/inverse_covariance.h"
#include "cuda/ops/tangent_factors.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

class DualFormKernelTest : public KernelTest {};

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double kLambda = 0.2;
constexpr double kScale = 0.125;

std::size_t at(std::int64_t i, std::int64_t j, std::int64_t stride) {
  return static_cast<std::size_t>(i * stride + j);
}

template <class Shape>
void expect_equal_kernels(const Shape& shape, std::int64_t docs, std::int64_t pairs) {
  ExecutionContext context;
  const std::int64_t stride = docs + 3;
  const Given<float> factors = random_factors(shape, docs, 3);
  const Given<float> pair_factors = random_factors(shape, 2 * pairs, 4);
  const device::FactorRows view{factors, docs, shape.factors()};
  DeviceArray<double> of_docs = unset_on_device<double>(docs * docs);
  DeviceArray<double> of_pairs = unset_on_device<double>(pairs * stride);
  device::query_kernels(nullptr, shape, view, {pair_factors, 2 * pairs, shape.factors()}, kScale, of_docs,
                        of_pairs, stride);
  std::vector<double> expected(docs * docs);
  doc_kernel(context, shape, view_of(shape, factors), kScale, expected.data());
  std::vector<double> own(4 * pairs * pairs);
  doc_kernel(context, shape, view_of(shape, pair_factors), kScale, own.data());
  const auto length = [&](std::int64_t doc) { return std::sqrt(expected[at(doc, doc, docs)]); };
  const auto found = of_docs.to_host();
  for (std::int64_t i = 0; i < docs; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      // Products of sums of at most 40 terms in double.
      const double tolerance = 1e-14 * length(i) * length(j);
      ASSERT_TRUE(std::abs(found[at(i, j, docs)] - expected[at(i, j, docs)]) <= tolerance) << i << " " << j;
    }
  }
  std::vector<double> expected_pairs(pairs * stride);
  pair_doc_kernel(context, shape, view_of(shape, pair_factors), view_of(shape, factors), kScale,
                  expected_pairs.data(), stride);
  const auto found_pairs = of_pairs.to_host();
  for (std::int64_t s = 0; s < pairs; ++s) {
    const double pair_length =
        std::sqrt(own[at(2 * s, 2 * s, 2 * pairs)]) + std::sqrt(own[at(2 * s + 1, 2 * s + 1, 2 * pairs)]);
    for (std::int64_t j = 0; j < docs; ++j) {
      const double tolerance = 1e-14 * pair_length * length(j);
      ASSERT_TRUE(std::abs(found_pairs[at(s, j, stride)] - expected_pairs[at(s, j, stride)]) <= tolerance)
          << s << " " << j;
    }
  }
}

TEST_P(DualFormKernelTest, QueryKernelsMatchCpu) {
  for (const NetworkShape& shape : test_shapes()) expect_equal_kernels(shape, 9, 7);
  for (const std::int64_t docs : {0, 1, 31, 32, 33, 65}) {
    expect_equal_kernels(ntk_shape(5, 6, 2), docs, docs == 0 ? 3 : 34);
    expect_equal_kernels(ntk_shape(5, 6, 2), 5, docs);
  }
}

/// The dual form of a covariance as the device keeps it, round by round.
struct Rounds {
  NetworkShape shape;
  std::vector<float> history;  // factors of winners and losers
  std::int64_t n = 0;
  DeviceArray<double> factor;
  DeviceArray<double> tail;
  DeviceArray<device::CovarianceStatus> status = on_device(std::vector<device::CovarianceStatus>(1));
  std::vector<double> m;

  /// M for a query, then its pairs are appended.
  void play(const std::vector<float>& factors, const std::vector<PreferencePair>& pairs) {
    auto rows = on_device(factors);
    const auto docs = std::ssize(factors) / shape.factors();
    const auto count = std::ssize(pairs);
    const std::int64_t stride = docs + 1;
    const device::FactorRows view{rows, docs, shape.factors()};
    DeviceArray<double> kernel(n * stride);
    DeviceArray<double> s(n * stride);
    DeviceArray<double> gram = unset_on_device<double>(docs * docs);
    const device::FactorTail newest(n, tail);
    DeviceArray<double> gram_work(device::tail_workspace(newest, docs, true));
    DeviceArray<double> append_work(device::append_workspace(n, count));
    device::query_kernels(nullptr, shape, view, {on_device(history), 2 * n, shape.factors()}, kScale, gram,
                          kernel, stride);
    DeviceArray<double> apply_work(device::apply_factor_workspace(newest.head, docs));
    device::apply_factor(nullptr, newest.head, factor, docs, kernel, apply_work, s, stride);
    device::dual_gram(nullptr, newest, docs, kernel, s, stride, kLambda, gram_work, gram);
    device::append_pairs(nullptr, n, factor, tail, docs, s, stride, gram, kLambda, on_device(pairs), count,
                         append_work, status);
    m = gram.to_host();
    for (const PreferencePair& pair : pairs) {
      for (const std::int32_t doc : {pair.winner, pair.loser}) {
        const auto row = part_of(factors, doc * shape.factors(), shape.factors());
        history.insert(history.end(), row.begin(), row.end());
      }
    }
    n += count;
  }

  /// M and log det from the whole history by its obvious formulas, [docs × docs].
  std::pair<Eigen::MatrixXd, double> slow(const std::vector<float>& factors) const {
    const Eigen::MatrixXd g = slow_pair_gradients(shape, view_of(shape, history));
    const Eigen::MatrixXd of_docs = slow_gradients(shape, view_of(shape, factors));
    const std::int64_t p = shape.parameters();
    const Eigen::MatrixXd a = kLambda * Eigen::MatrixXd::Identity(p, p) + kScale * g.transpose() * g;
    const Eigen::LLT<Eigen::MatrixXd> cholesky(a);
    double log_det = -static_cast<double>(p) * std::log(kLambda);
    for (std::int64_t k = 0; k < p; ++k) log_det += 2.0 * std::log(cholesky.matrixLLT()(k, k));
    return {kScale * of_docs * cholesky.solve(of_docs.transpose()), log_det};
  }
};

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

TEST_P(DualFormKernelTest, AppliesTheTransposedFactorToColumns) {
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

// The newest rows are rows of L, and L⁻¹ x takes them after the others.
TEST_P(DualFormKernelTest, AppliesTheTail) {
  for (const std::int64_t n : {1, 64, 127, 129, 255, 300, 450}) {
    for (const std::int64_t columns : {1, 5, 65}) {
      const MixedRows rows(n);
      const std::int64_t stride = columns + 1;
      const Given<double> x = random_doubles(n * stride, 14);
      const RowMajor expected = rows.inverse * Eigen::Map<const RowMajor>(x.data(), n, stride);
      std::vector<double> s(expected.data(), expected.data() + rows.tail.head * stride);
      s.resize(n * stride, std::nan(""));
      auto s_there = on_device(s);
      DeviceArray<double> work(device::tail_workspace(rows.tail, columns, false));
      device::apply_tail(nullptr, rows.tail, columns, x, work, s_there, stride);
      const auto found = s_there.to_host();
      for (std::int64_t i = rows.tail.head; i < n; ++i) {
        for (std::int64_t j = 0; j < columns; ++j)
          ASSERT_NEAR(found[at(i, j, stride)], expected(i, j), 1e-12) << n << " " << i;
      }
    }
  }
}

TEST_P(DualFormKernelTest, MatchesTheWholeHistoryInEachRound) {
  const NetworkShape shape = ntk_shape(5, 8, 2);
  Rounds rounds{shape,
                {},
                0,
                unset_on_device<double>(device::factor_numbers(384)),
                unset_on_device<double>(device::FactorTail(384).numbers()),
                {},
                {}};
  rounds.status = on_device(std::vector<device::CovarianceStatus>(1));
  std::uint64_t seed = 70;
  // Appends of one, up to the edge of a row block, over it, and over a whole block.
  for (const std::int64_t count : {0, 1, 3, 9, 31, 64, 20, 2, 90, 150}) {
    const std::int64_t docs = count >= 90 ? 70 : 12 + count;
    const std::vector<float> factors = random_factors(shape, docs, ++seed);
    std::vector<PreferencePair> pairs;
    for (std::int64_t s = 0; s < count; ++s) {
      pairs.push_back({static_cast<std::int32_t>((5 * s + 1) % docs), static_cast<std::int32_t>(s % docs)});
    }
    const auto expected = rounds.slow(factors).first;
    rounds.play(factors, pairs);
    for (std::int64_t i = 0; i < docs; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        // M comes from differences of K/λ: a few hundred roundings of numbers of that size.
        const double scale = kScale / kLambda * shape.output_scale * shape.output_scale * 100.0;
        ASSERT_NEAR(rounds.m[at(i, j, docs)], expected(i, j), 1e-12 * scale) << rounds.n << " " << i;
      }
    }
    const device::CovarianceStatus status = rounds.status.to_host()[0];
    EXPECT_EQ(status.failed, 0);
    EXPECT_NEAR(status.log_det, rounds.slow(factors).second, 1e-9 * (1.0 + status.log_det)) << rounds.n;
  }
  EXPECT_EQ(rounds.n, 370);
}

TEST_P(DualFormKernelTest, AppliesTheFactor) {
  // The longest are cut into two and three parts.
  for (const std::int64_t n : {0, 1, 31, 64, 65, 128, 129, 256, 300, 600}) {
    for (const std::int64_t columns : {1, 33, 65}) {
      RowMajor factor = RowMajor::Zero(n, n);
      std::vector<double> packed(device::factor_numbers(n), std::nan(""));
      RngStream draws(test_key(5), 1);
      for (std::int64_t row = 0; row < n; ++row) {
        for (std::int64_t column = 0; column <= row; ++column) {
          const double value = draws.normal();
          factor(row, column) = value;
          packed[device::factor_row(row) + column] = value;
        }
      }
      const std::int64_t stride = columns + 2;
      Given<double> x(n * stride);
      for (double& value : x) value = draws.normal();
      auto y = unset_on_device<double>(n * stride);
      DeviceArray<double> work(device::apply_factor_workspace(n, columns));
      device::apply_factor(nullptr, n, on_device(packed), columns, x, work, y, stride);
      const RowMajor expected = factor * Eigen::Map<const RowMajor>(x.data(), n, stride);
      const auto found = y.to_host();
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          // Sums of up to 600 products of normal numbers in double.
          ASSERT_NEAR(found[at(i, j, stride)], expected(i, j), 1e-12) << n << " " << i;
        }
      }
    }
  }
}

// A covariance that is none: nothing but the status changes, then or later.
TEST_P(DualFormKernelTest, ReportsAnIndefiniteCornerAndWritesNothing) {
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

OLRANK_KERNEL_TESTS(DualFormKernelTest);

class PairCornerKernelTest : public KernelTest {};

/// M = B Bᵀ of random documents.
Eigen::MatrixXd random_gram(std::int64_t docs, std::uint64_t seed) {
  const std::vector<double> numbers = random_doubles(docs * (docs + 2), seed);
  const Eigen::Map<const Eigen::MatrixXd> b(numbers.data(), docs, docs + 2);
  return b * b.transpose();
}

/// Row-major, NaN above the diagonal, which the kernel must not read.
std::vector<double> nan_above_diagonal(const Eigen::MatrixXd& m) {
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
  const auto m_there = on_device(nan_above_diagonal(m));
  RngStream draws(test_key(54), 0);
  for (const std::int64_t count : {1, 2, 31, 33, 60}) {
    Given<PreferencePair> pairs;
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
    DeviceArray<double> factor(count * count);
    DeviceArray<double> inverse(count * count);
    auto status = on_device(std::vector<device::CovarianceStatus>{{0.5, 0}});
    device::factor_pair_corner(nullptr, kDocs, m_there, pairs, count, factor, inverse, status);
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

OLRANK_KERNEL_TESTS(PairCornerKernelTest);

}  // namespace
}  // namespace olrank
