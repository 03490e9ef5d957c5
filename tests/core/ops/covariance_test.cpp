#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/error.h"
#include "core/ops/blas.h"
#include "core/ops/covariance.h"
#include "core/ops/gradient_products.h"
#include "core/ops/inverse_factor.h"
#include "core/ops/tangent_factors.h"
#include "tests/core/ops/network_fixture.h"
#include "tests/support/message_of.h"
#include "tests/support/special_numbers.h"

namespace olrank {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

TEST(DiagonalCovarianceTest, MatchesWrittenOutGradients) {
  std::vector<NetworkShape> shapes = test_shapes();
  shapes.push_back(standard_shape(70, 90, 2));  // more parameters than one block has
  for (const NetworkShape& shape : shapes) {
    const std::int64_t p = shape.parameters();
    const std::vector<float> pairs = random_factors(shape, 12, 76);
    const Eigen::MatrixXd g = slow_pair_gradients(shape, view_of(shape, pairs));
    ExecutionContext context(2);
    std::vector<double> diagonal(p, 0.5);
    add_to_diagonal(context, shape, view_of(shape, pairs), 0.25, diagonal);
    const Eigen::VectorXd expected = 0.25 * g.colwise().squaredNorm().transpose();
    for (std::int64_t k = 0; k < p; ++k)
      EXPECT_NEAR(diagonal[k], 0.5 + expected[k], 1e-14 * (1.0 + expected[k]));
    for (const std::int64_t count : {0, 1, 31, 32, 33, 100}) {
      std::vector<float> factors = random_factors(shape, count, 77);
      // A unit that is dead for all documents, and one that is alive for all.
      const NetworkLayer layer = shape.layer(0);
      for (std::int64_t doc = 0; doc < count; ++doc) {
        factors[doc * shape.factors() + layer.delta] = 0.0F;
        if (layer.rows > 1) factors[doc * shape.factors() + layer.delta + 1] = 1.5F;
      }
      const Eigen::MatrixXd docs = slow_gradients(shape, view_of(shape, factors));
      RowMajor m = RowMajor::Constant(count, count, -1.0);
      diagonal_gram(context, shape, view_of(shape, factors), 0.25, diagonal, m.data());
      const RowMajor slow = 0.25 * docs *
                            Eigen::Map<const Eigen::VectorXd>(diagonal.data(), p).asDiagonal() *
                            docs.transpose();
      if (count == 0) continue;
      // Sums of up to 6,500 terms whose absolute values add up to no more than the diagonal's.
      const RowMajor off = (m - slow).triangularView<Eigen::Lower>();
      EXPECT_TRUE((off.array().abs() <= 1e-13 * slow.diagonal().maxCoeff()).all());
    }
  }
}

TEST(GradientProductsTest, MatchesWrittenOutGradients) {
  for (const NetworkShape& shape : test_shapes()) {
    for (const std::int64_t docs : {1, 33, 300}) {
      const std::vector<float> factors = random_factors(shape, docs, 14);
      const Eigen::MatrixXd gradients = slow_gradients(shape, view_of(shape, factors));
      const std::vector<float> numbers = random_numbers(shape.parameters() + docs, 15);
      const std::vector<double> v(numbers.begin(), numbers.begin() + shape.parameters());
      const std::vector<double> weights(numbers.begin() + shape.parameters(), numbers.end());
      const Eigen::VectorXd expected_products =
          gradients * Eigen::Map<const Eigen::VectorXd>(v.data(), shape.parameters());
      const Eigen::VectorXd expected_sum =
          gradients.transpose() * Eigen::Map<const Eigen::VectorXd>(weights.data(), docs);
      for (const int threads : {1, 3}) {
        ExecutionContext context(threads);
        std::vector<double> products(weights.size());
        gradient_products(context, shape, view_of(shape, factors), v, products);
        std::vector<double> sum(v.size());
        gradient_sum(context, shape, view_of(shape, factors), weights, sum);
        // Sums of up to 1,500 double products: 1,500 · 1e-16 of the absolute terms, generously.
        for (std::int64_t i = 0; i < docs; ++i) {
          const double scale = gradients.row(i).norm() * std::sqrt(static_cast<double>(v.size()));
          EXPECT_TRUE(std::abs(products[i] - expected_products[i]) <= 1e-12 * scale);
        }
        for (std::int64_t k = 0; k < shape.parameters(); ++k) {
          const double scale = 1e-6 + gradients.col(k).norm() * std::sqrt(static_cast<double>(docs));
          EXPECT_TRUE(std::abs(sum[k] - expected_sum[k]) <= 1e-12 * scale);
        }
      }
    }
  }
}

// Sizes on both sides of a tile of 256 parameters and of a block of 128 pairs.
TEST(InverseCovarianceTest, MatchesEigenWhenUpdatedAndWhenRebuilt) {
  for (const NetworkShape& shape : {linear_shape(7), ntk_shape(5, 6, 3), ntk_shape(13, 34, 2),
                                    standard_shape(16, 18, 2), ntk_shape(7, 32, 2)}) {
    const std::int64_t p = shape.parameters();
    for (const std::int64_t pairs : {0, 1, 5, 140}) {
      const std::vector<float> factors = random_factors(shape, 2 * pairs, 74);
      const TangentFactors history = view_of(shape, factors);
      const Eigen::MatrixXd g = slow_pair_gradients(shape, history);
      const double scale = 0.05;
      const RowMajor a = 2.0 * RowMajor::Identity(p, p) + scale * g.transpose() * g;
      const Eigen::LLT<Eigen::MatrixXd> factor(a);
      const RowMajor expected = factor.solve(Eigen::MatrixXd::Identity(p, p));
      const double log_det = 2.0 * Eigen::MatrixXd(factor.matrixL()).diagonal().array().log().sum() -
                             static_cast<double>(p) * std::log(2.0);
      ExecutionContext context(2);
      RowMajor updated(p, p);
      set_inverse_covariance(p, 2.0, updated.data());
      const double grown = update_inverse_covariance(context, shape, history, scale, updated.data());
      RowMajor built = RowMajor::Constant(p, p, 9.0);
      const double whole = inverse_covariance_of(context, shape, history, 2.0, scale, built.data());
      // A's condition is below 1e5 here, and entries of A⁻¹ at most 1/2: 1e5 · 1e-16 with room for sums.
      EXPECT_LE((updated - expected).cwiseAbs().maxCoeff(), 1e-10);
      EXPECT_LE((built - expected).cwiseAbs().maxCoeff(), 1e-10);
      EXPECT_EQ(updated, RowMajor(updated.transpose()));
      EXPECT_EQ(built, RowMajor(built.transpose()));
      EXPECT_NEAR(grown, log_det, 1e-10 * (1.0 + log_det));
      EXPECT_NEAR(whole, log_det, 1e-10 * (1.0 + log_det));

      const std::vector<float> doc_factors = random_factors(shape, 33, 75);
      const Eigen::MatrixXd docs = slow_gradients(shape, view_of(shape, doc_factors));
      RowMajor m(33, 33);
      inverse_covariance_gram(context, shape, view_of(shape, doc_factors), scale, built.data(), m.data());
      const RowMajor slow = scale * docs * expected * docs.transpose();
      EXPECT_LE((m - slow).cwiseAbs().maxCoeff(), 1e-9 * slow.cwiseAbs().maxCoeff());
    }
  }
}

RowMajor positive_definite(std::int64_t n) {
  const std::vector<float> numbers = random_numbers(n * n, 71);
  const RowMajor root =
      Eigen::Map<const Eigen::Matrix<float, -1, -1, Eigen::RowMajor>>(numbers.data(), n, n).cast<double>();
  return root * root.transpose() / static_cast<double>(n) + 0.5 * RowMajor::Identity(n, n);
}

// Eigen is the oracle: another library, other algorithms, column-major by nature.
TEST(BlasTest, FactorisesAndSolves) {
  const auto is_close = [](const RowMajor& actual, const RowMajor& expected, double tolerance) {
    return ((actual - expected).array().abs() <= tolerance).all();
  };
  for (const std::int64_t n : {1, 2, 33, 100}) {
    const RowMajor a = positive_definite(n);
    RowMajor factor = a;
    factor.triangularView<Eigen::StrictlyUpper>().setConstant(7.0);  // is left alone
    const RowMajor upper = factor.triangularView<Eigen::StrictlyUpper>();
    blas::cholesky(n, factor.data(), n);
    EXPECT_EQ(RowMajor(factor.triangularView<Eigen::StrictlyUpper>()), upper);
    const RowMajor l = factor.triangularView<Eigen::Lower>();
    // Eigenvalues lie between 0.5 and 5, so 100 rows lose no more than 100 · 10 · 1e-16.
    EXPECT_TRUE(is_close(l * l.transpose(), a, 1e-13));
    const std::vector<double> numbers = random_doubles(n * 5, 8);
    const RowMajor b = Eigen::Map<const RowMajor>(numbers.data(), n, 5);
    RowMajor x = b;
    blas::solve_lower(blas::Transpose::kNo, n, 5, l.data(), n, x.data(), 5);
    EXPECT_TRUE(is_close(l * x, b, 1e-12));
    x = b;
    blas::solve_lower(blas::Transpose::kYes, n, 5, l.data(), n, x.data(), 5);
    EXPECT_TRUE(is_close(l.transpose() * x, b, 1e-12));
    blas::inverse_from_cholesky(n, factor.data(), n);
    const RowMajor inverse = factor.selfadjointView<Eigen::Lower>();
    EXPECT_TRUE(is_close(inverse * a, RowMajor::Identity(n, n), 1e-12));
  }
  RowMajor a = RowMajor::Identity(5, 5);
  a(2, 2) = -1.0;
  EXPECT_EQ(message_of<NumericError>([&] { blas::cholesky(5, a.data(), 5); }),
            "A 5 x 5 matrix is not positive definite: its Cholesky factorisation fails at row 3.");
}

TEST(BlasOfTheLibraryTest, RefusesSizesBeyond32Bits) {
  double number = 0.0;
  constexpr auto kNo = blas::Transpose::kNo;
  EXPECT_THROW(
      blas::gemm(kNo, kNo, std::int64_t{1} << 31, 1, 1, 1.0, &number, 1, &number, 1, 0.0, &number, 1),
      InvalidArgument);
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

      const std::vector<double> x = random_doubles(n * 7, 72);
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

// The numbers a thread reads must not change when another appends, not even where rows of L give way to
// rows of L⁻¹.
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
      const std::vector<double> x = random_doubles(rows * (columns + 1), 73);
      RowMajor c = RowMajor::Constant(columns, columns, 2.0);
      subtract_gram(context, rows, columns, x.data(), columns + 1, c.data(), columns);
      const RowMajor wide = Eigen::Map<const RowMajor>(x.data(), rows, columns + 1).leftCols(columns);
      const RowMajor expected = RowMajor::Constant(columns, columns, 2.0) - wide.transpose() * wide;
      const RowMajor off = (c - expected).triangularView<Eigen::Lower>();
      EXPECT_TRUE((off.array().abs() <= 1e-12).all());
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

// Central differences of the obvious double formula, at points where no unit changes side within a step.
TEST(TangentFactorsTest, MatchFiniteDifferences) {
  ExecutionContext context;
  for (const NetworkShape& shape : test_shapes()) {
    const std::vector<float> theta = random_theta(shape, 11);
    const std::vector<float> features = random_numbers(40 * shape.inputs, 12);
    std::vector<float> factors(40 * shape.factors());
    std::vector<float> scores(40);
    tangent_factors(context, shape, theta, matrix_of(features, shape.inputs), factors, scores);
    std::vector<float> expected_scores(40);
    score_docs(context, shape, theta, matrix_of(features, shape.inputs), expected_scores);
    EXPECT_EQ(scores, expected_scores);
    const std::vector<double> centre(theta.begin(), theta.end());
    constexpr double kStep = 1e-5;
    int compared = 0;
    for (std::int64_t doc = 0; doc < 40 && compared < 4; ++doc) {
      const float* x = features.data() + doc * shape.inputs;
      if (slow_score(shape, centre, x).nearest_kink < 100.0 * kStep) continue;
      ++compared;
      const std::vector<double> g = slow_gradient(shape, factors.data() + doc * shape.factors());
      double largest = 0.0;
      for (const double value : g) largest = std::max(largest, std::abs(value));
      for (std::size_t k = 0; k < g.size(); ++k) {
        std::vector<double> moved = centre;
        moved[k] += kStep;
        const double up = slow_score(shape, moved, x).score;
        moved[k] = centre[k] - kStep;
        const double down = slow_score(shape, moved, x).score;
        // f is linear in each single parameter while no unit changes side, so the difference is off by
        // rounding only (1e-16/step); the factors are float32, off by tens of 6e-8.
        EXPECT_TRUE(std::abs(g[k] - (up - down) / (2.0 * kStep)) <= 1e-5 * (1.0 + largest))
            << "parameter " << k << " of " << g.size();
      }
    }
    EXPECT_EQ(compared, 4);
  }
}

/// Inner products of p terms are off by at most p · 1e-16 of ‖g‖‖g'‖; p is below 1,400 here.
void expect_products(const RowMajor& actual, const Eigen::MatrixXd& left, const Eigen::MatrixXd& right,
                     double scale, double left_norm, double right_norm) {
  const Eigen::MatrixXd expected = scale * left * right.transpose();
  ASSERT_EQ(actual.rows(), expected.rows());
  ASSERT_EQ(actual.cols(), expected.cols());
  EXPECT_TRUE(((actual - expected).array().abs() <= 1e-13 * scale * left_norm * right_norm).all());
}

TEST(TangentKernelTest, MatchesProductsOfGradients) {
  for (const NetworkShape& shape : test_shapes()) {
    for (const std::int64_t docs : {1, 33, 130}) {
      for (const std::int64_t pairs : {0, 1, 64, 70}) {
        const std::vector<float> doc_factors = random_factors(shape, docs, 20);
        const std::vector<float> pair_factors = random_factors(shape, 2 * pairs, 21);
        const std::vector<float> other_factors = random_factors(shape, 6, 22);
        const TangentFactors left = view_of(shape, pair_factors);
        const TangentFactors right = view_of(shape, doc_factors);
        const TangentFactors others = view_of(shape, other_factors);
        const Eigen::MatrixXd g = slow_gradients(shape, right);
        const Eigen::MatrixXd g_pairs = slow_pair_gradients(shape, left);
        const Eigen::MatrixXd g_others = slow_pair_gradients(shape, others);
        const double norm = g.rowwise().norm().maxCoeff();
        const double pair_norm =
            pairs == 0 ? 0.0 : 2.0 * slow_gradients(shape, left).rowwise().norm().maxCoeff();
        const double other_norm = 2.0 * slow_gradients(shape, others).rowwise().norm().maxCoeff();
        for (const int threads : {1, 2}) {
          ExecutionContext context(threads);
          RowMajor kernel(docs, docs);
          doc_kernel(context, shape, right, 0.3, kernel.data());
          expect_products(kernel, g, g, 0.3, norm, norm);
          RowMajor wide = RowMajor::Constant(pairs, docs + 2, -1.0);
          pair_doc_kernel(context, shape, left, right, 0.3, wide.data(), docs + 2);
          expect_products(wide.leftCols(docs), g_pairs, g, 0.3, pair_norm, norm);
          EXPECT_TRUE((wide.rightCols(2).array() == -1.0).all());
          RowMajor among(pairs, 3);
          pair_kernel(context, shape, left, others, 0.3, among.data(), 3);
          expect_products(among, g_pairs, g_others, 0.3, pair_norm, other_norm);
        }
      }
    }
  }
}

TEST(PairWidthTest, ReadsTheLowerTriangleAndIsSymmetric) {
  ExecutionContext context;
  const std::vector<double> m = {2.0, 99.0, 99.0, 0.5, 3.0, 99.0, -1.0, 0.25, 4.0};
  std::vector<double> width_sq(9, -1.0);
  const WidthHealth health = pair_width_sq(context, 3, m.data(), width_sq.data());
  EXPECT_EQ(width_sq, (std::vector<double>{0.0, 4.0, 8.0, 4.0, 0.0, 6.5, 8.0, 6.5, 0.0}));
  EXPECT_EQ(health.negative, 0);
  EXPECT_EQ(health.lost, 0);
  std::vector<double> in_place = m;
  pair_width_sq(context, 3, in_place.data(), in_place.data());
  EXPECT_EQ(in_place, width_sq);
  pair_width_sq(context, 0, nullptr, nullptr);
}

TEST(PairWidthTest, DistancesKeepTheirDigits) {
  for (const std::int64_t rows : {0, 1, 2, 31, 33}) {
    const std::int64_t columns = 7;
    std::vector<double> h(rows * columns);
    for (std::int64_t i = 0; i < rows; ++i) {
      // The last column is what all have in common; every third row differs from the one before by little.
      for (std::int64_t c = 0; c < columns; ++c)
        h[i * columns + c] =
            c + 1 == columns ? 1e4 : std::sin(static_cast<double>(5 * (i - (i % 3) / 2) + c));
      if (i % 3 == 2) h[i * columns] += 1e-7;
    }
    std::vector<double> distance_sq(rows * rows, -1.0);
    row_distance_sq(rows, columns, h.data(), distance_sq.data());
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < rows; ++j) {
        double expected = 0.0;
        for (std::int64_t c = 0; c < columns; ++c)
          expected += std::pow(h[i * columns + c] - h[j * columns + c], 2.0);
        // Norms of 10⁸ with rounding of 10⁻⁸, where distances are above 10².
        EXPECT_NEAR(distance_sq[i * rows + j], expected, 1e-9 * expected) << i << ", " << j;
        EXPECT_EQ(distance_sq[i * rows + j], distance_sq[j * rows + i]);
      }
    }
  }
}

TEST(PairWidthTest, DistinguishesRoundingFromLostDigits) {
  ExecutionContext context;
  std::vector<double> width_sq(4);
  const auto health_of = [&](double own, double other, double product) {
    const std::vector<double> m = {own, 0.0, product, other};
    const WidthHealth health = pair_width_sq(context, 2, m.data(), width_sq.data());
    EXPECT_GE(width_sq[1], 0.0);
    return health;
  };
  EXPECT_EQ(health_of(1.0, 1.0, 1.0 + 1e-12).negative, 1);
  EXPECT_EQ(health_of(1.0, 1.0, 1.0 + 1e-12).lost, 0);
  EXPECT_EQ(health_of(1.0, 1.0, 1.1).lost, 1);
  EXPECT_EQ(health_of(1.0, -0.1, 0.0).lost, 1);
  for (const auto& [own, other, product] : std::vector<std::array<double, 3>>{
           {1.0, kNan, 0.0}, {1.0, kInfinity, 0.0}, {1.0, 1.0, kNan}, {kInfinity, kInfinity, kInfinity}})
    EXPECT_GT(health_of(own, other, product).lost, 0);
}

}  // namespace
}  // namespace olrank
