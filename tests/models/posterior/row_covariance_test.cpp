#include "models/posterior/row_covariance.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/random/rng_stream.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr Covariance kStructures[] = {Covariance::kFull, Covariance::kDiagonal,
                                      Covariance::kDiagonalOfInverse, Covariance::kNone};

RngStream test_coins(std::uint32_t number) {
  return RngStream(make_key({.seed = 37, .purpose = Purpose::kProbe}), number);
}

std::vector<double> random_rows(RngStream& coins, std::int64_t rows, std::int64_t features) {
  std::vector<double> values(rows * features);
  for (double& value : values) value = coins.uniform() - coins.uniform();
  return values;
}

/// A from scratch, to compare the posterior under test with.
struct Fresh {
  double lambda;
  Matrix a;

  Fresh(std::int64_t features, double ridge)
      : lambda(ridge), a(ridge * Matrix::Identity(features, features)) {}

  void observe(const std::vector<double>& rows, std::int64_t pairs) {
    const Eigen::Map<const Matrix> gamma(rows.data(), pairs, a.cols());
    a += gamma.transpose() * gamma;
  }
  /// Returns the matrix that the widths of a structure are a quadratic form of.
  Matrix precision(Covariance structure) const {
    const Matrix inverse = a.ldlt().solve(Matrix::Identity(a.rows(), a.cols()));
    if (structure == Covariance::kFull) return inverse;
    if (structure == Covariance::kDiagonalOfInverse) return inverse.diagonal().asDiagonal();
    if (structure == Covariance::kDiagonal) return a.diagonal().cwiseInverse().asDiagonal();
    return Matrix::Zero(a.rows(), a.cols());
  }
  double log_det(Covariance structure) const {
    if (structure == Covariance::kNone) return 0.0;
    const Matrix of = structure == Covariance::kDiagonal ? Matrix(a.diagonal().asDiagonal()) : a;
    const Eigen::SelfAdjointEigenSolver<Matrix> solver(of);
    return (solver.eigenvalues().array() / lambda).log().sum();
  }
};

/// Compares log det, and each width by the difference of two rows, within 10⁻⁹ of the largest quadratic
/// form, since M_ii + M_jj − 2 M_ij cancels down from it. With λ ≥ 0.01 and differences within [−1, 1] the
/// condition number stays below 10⁶, which Cholesky and Woodbury turn into 10⁶·2⁻⁵³ ~ 10⁻¹⁰.
void expect_matches(const RowCovariance& posterior, const Fresh& fresh, RngStream& coins,
                    ExecutionContext& context, int step) {
  const double log_det = fresh.log_det(posterior.structure());
  ASSERT_TRUE(std::fabs(posterior.log_det() - log_det) <= 1e-9 * (1.0 + std::fabs(log_det)))
      << posterior.log_det() << " instead of " << log_det;
  const std::int64_t docs = 12;
  const std::int64_t features = fresh.a.rows();
  std::vector<double> rows = random_rows(coins, docs, features);
  std::copy_n(rows.begin(), features, rows.end() - features);  // two equal documents
  std::vector<double> width_sq(docs * docs, std::nan(""));
  posterior.width_sq(context, rows, docs, width_sq);
  posterior.width_sq(context, {}, 0, {});
  const Matrix precision = fresh.precision(posterior.structure());
  const Eigen::Map<const Matrix> g(rows.data(), docs, features);
  double largest = 0.0;
  for (std::int64_t i = 0; i < docs; ++i) largest = std::max(largest, g.row(i).dot(g.row(i) * precision));
  for (std::int64_t i = 0; i < docs; ++i) {
    for (std::int64_t j = 0; j < docs; ++j) {
      const Eigen::RowVectorXd difference = g.row(i) - g.row(j);
      const double expected = (difference * precision).dot(difference);
      const double actual = width_sq[i * docs + j];
      ASSERT_TRUE(actual >= 0.0);
      ASSERT_TRUE(std::fabs(actual - expected) <= 1e-9 * (largest + expected))
          << "step " << step << ": " << i << ", " << j << ": " << actual << " instead of " << expected;
      if (i == j) {
        ASSERT_EQ(actual, 0.0);
      }
    }
  }
}

TEST(RowCovarianceTest, MatchesAFreshInverseAtEveryStep) {
  ExecutionContext context;
  std::uint32_t number = 0;
  for (const double lambda : {0.01, 0.1, 10.0}) {
    for (const std::int64_t features : {1, 5, 23}) {
      for (const Covariance structure : kStructures) {
        RngStream coins = test_coins(++number);
        RowCovariance posterior(structure, features, lambda);
        Fresh fresh(features, lambda);
        for (int step = 0; step < 120; ++step) {
          if (step > 0) {
            const std::int64_t pairs = coins.index(6);
            std::vector<double> rows = random_rows(coins, pairs, features);
            // Histories repeat themselves: often the very row of before, and small ones.
            for (double& value : rows) value *= step % 5 == 0 ? 1e-3 : 1.0;
            if (pairs > 1) std::copy_n(rows.begin(), features, rows.begin() + features);
            posterior.observe(context, rows, pairs);
            fresh.observe(rows, pairs);
          }
          expect_matches(posterior, fresh, coins, context, step);
          ASSERT_TRUE(posterior.drift() <= 1e-10) << posterior.drift();
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

/// Pairs since the inverse was last computed from A.
std::int64_t updates_of(const RowCovariance& posterior) {
  StateReader reader(state_of(posterior), "test");
  reader.skip_to("covariance.updates");
  return reader.get_one<std::int64_t>("covariance.updates");
}

TEST(RowCovarianceTest, StaysAccurateAcrossRenewals) {
  // 1,024 pairs renew the inverse: before, at and after that, and a second time.
  ExecutionContext context;
  for (const Covariance structure : {Covariance::kFull, Covariance::kDiagonalOfInverse}) {
    RngStream coins = test_coins(100);
    RowCovariance posterior(structure, 9, 0.01);
    Fresh fresh(9, 0.01);
    std::int64_t observed = 0;
    bool renewed = false;
    std::int64_t updates = 0;
    while (observed < 2200) {
      const std::int64_t pairs = 1 + coins.index(5);
      const std::vector<double> rows = random_rows(coins, pairs, 9);
      posterior.observe(context, rows, pairs);
      fresh.observe(rows, pairs);
      observed += pairs;
      expect_matches(posterior, fresh, coins, context, static_cast<int>(observed));
      if (testing::Test::HasFatalFailure()) return;
      ASSERT_TRUE(posterior.drift() <= 1e-10) << posterior.drift();
      const std::int64_t before = std::exchange(updates, updates_of(posterior));
      renewed = renewed || updates < before;
    }
    EXPECT_TRUE(renewed);
  }
}

TEST(RowCovarianceTest, RoundsLargerThanARenewalFactoriseOnce) {
  ExecutionContext context;
  RngStream coins = test_coins(101);
  for (const std::int64_t pairs : {1023, 1024, 3000}) {
    RowCovariance posterior(Covariance::kFull, 7, 0.1);
    Fresh fresh(7, 0.1);
    const std::vector<double> rows = random_rows(coins, pairs, 7);
    posterior.observe(context, rows, pairs);
    fresh.observe(rows, pairs);
    expect_matches(posterior, fresh, coins, context, static_cast<int>(pairs));
  }
}

}  // namespace
}  // namespace olrank
