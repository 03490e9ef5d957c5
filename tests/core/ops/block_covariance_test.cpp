#include "core/ops/block_covariance.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/core/ops/network_fixture.h"

namespace olrank {
namespace {

constexpr double kScale = 0.25;

/// The places in θ of a block's parameters.
std::vector<std::int64_t> places_of(const UnitBlock& block) {
  std::vector<std::int64_t> places;
  for (std::int64_t c = 0; c < block.layer.columns; ++c)
    places.push_back(block.layer.weight + block.unit * block.layer.columns + c);
  if (block.layer.has_bias()) places.push_back(block.layer.bias + block.unit);
  return places;
}

Eigen::MatrixXd columns_of(const Eigen::MatrixXd& rows, const UnitBlock& block) {
  return rows(Eigen::all, places_of(block));
}

std::vector<double> first_roots(const UnitBlocks& blocks, double lambda) {
  std::vector<double> roots(blocks.root_size());
  for (std::int64_t index = 0; index < blocks.count(); ++index) {
    const UnitBlock block = blocks.block(index);
    for (std::int64_t k = 0; k < block.size; ++k)
      roots[block.offset + k * (block.size + 1)] = 1.0 / std::sqrt(lambda);
  }
  return roots;
}

/// Factors in which a unit is dead for all documents, and where it can be another is alive for all.
std::vector<float> some_factors(const NetworkShape& shape, std::int64_t docs, std::uint64_t seed) {
  std::vector<float> factors = random_factors(shape, docs, seed);
  const NetworkLayer layer = shape.layer(0);
  for (std::int64_t doc = 0; doc < docs && layer.rows > 1; ++doc) {
    factors[doc * shape.factors() + layer.delta] = 0.0F;
    factors[doc * shape.factors() + layer.delta + 1] = 1.5F;
  }
  return factors;
}

struct NetworkBlocks {
  NetworkShape shape;
  UnitBlocks blocks;
};

std::vector<NetworkBlocks> all_blocks() {
  std::vector<NetworkBlocks> all;
  for (const NetworkShape& shape : test_shapes()) {
    for (const std::int64_t first : {std::int64_t{0}, shape.depth - 1})
      all.push_back({shape, {shape, first}});
  }
  return all;
}

TEST(BlockCovarianceTest, BlocksCoverEveryParameterOnce) {
  for (const auto& [shape, blocks] : all_blocks()) {
    const std::int64_t begin = shape.layer(blocks.first_layer).weight;
    std::vector<std::int64_t> places;
    std::int64_t numbers = 0;
    for (std::int64_t index = 0; index < blocks.count(); ++index) {
      const UnitBlock block = blocks.block(index);
      EXPECT_EQ(block.first, std::ssize(places));
      EXPECT_EQ(block.offset, numbers);
      const std::vector<std::int64_t> own = places_of(block);
      EXPECT_EQ(std::ssize(own), block.size);
      places.insert(places.end(), own.begin(), own.end());
      numbers += block.size * block.size;
    }
    EXPECT_EQ(blocks.parameters(), std::ssize(places));
    EXPECT_EQ(blocks.root_size(), numbers);
    std::sort(places.begin(), places.end());
    for (std::int64_t k = 0; k < std::ssize(places); ++k) EXPECT_EQ(places[k], begin + k);
    EXPECT_EQ(begin + std::ssize(places), blocks.shape.parameters());
  }
}

// The slow formula: each A_u written out and solved.
TEST(BlockCovarianceTest, MatchesWrittenOutGradients) {
  for (const auto& [shape, blocks] : all_blocks()) {
    for (const double lambda : {1.0, 1e-4}) {
      std::vector<double> roots = first_roots(blocks, lambda);
      std::vector<Eigen::MatrixXd> a;
      for (std::int64_t index = 0; index < blocks.count(); ++index) {
        const std::int64_t size = blocks.block(index).size;
        a.emplace_back(lambda * Eigen::MatrixXd::Identity(size, size));
      }
      double log_det = 0.0;
      for (const std::int64_t pairs : {0, 1, 5, 32, 70}) {
        const std::vector<float> seen = some_factors(shape, 2 * pairs, 80 + pairs);
        const Eigen::MatrixXd g = slow_pair_gradients(shape, view_of(shape, seen));
        ExecutionContext context(2);
        log_det += update_block_roots(context, blocks, view_of(shape, seen), kScale, roots.data());
        double expected_log_det = 0.0;
        for (std::int64_t index = 0; index < blocks.count(); ++index) {
          const Eigen::MatrixXd own = columns_of(g, blocks.block(index));
          a[index] += kScale * own.transpose() * own;
          const Eigen::LLT<Eigen::MatrixXd> factor(a[index]);
          const Eigen::MatrixXd l = factor.matrixL();
          expected_log_det += 2.0 * l.diagonal().array().log().sum() -
                              static_cast<double>(blocks.block(index).size) * std::log(lambda);
        }
        EXPECT_NEAR(log_det, expected_log_det, 1e-9 * (1.0 + expected_log_det));
        for (const std::int64_t count : {0, 1, 31, 32, 33, 100}) {
          const std::vector<float> factors = some_factors(shape, count, 77);
          const Eigen::MatrixXd docs = slow_gradients(shape, view_of(shape, factors));
          Eigen::MatrixXd expected = Eigen::MatrixXd::Zero(count, count);
          for (std::int64_t index = 0; index < blocks.count(); ++index) {
            const Eigen::LLT<Eigen::MatrixXd> factor(a[index]);
            const Eigen::MatrixXd half =
                factor.matrixL().solve(columns_of(docs, blocks.block(index)).transpose());
            for (std::int64_t i = 0; i < count; ++i) {
              for (std::int64_t j = 0; j < count; ++j)
                expected(i, j) += kScale * (half.col(i) - half.col(j)).squaredNorm();
            }
          }
          std::vector<double> width_sq(count * count, -1.0);
          block_width_sq(context, blocks, view_of(shape, factors), kScale, roots.data(), width_sq.data());
          for (std::int64_t i = 0; i < count; ++i) {
            for (std::int64_t j = 0; j < count; ++j) {
              // The formula loses the digits of A's condition, up to 10⁷.
              EXPECT_TRUE(std::abs(width_sq[i * count + j] - expected(i, j)) <= 1e-9 * expected(i, j))
                  << i << ", " << j << ": " << width_sq[i * count + j] << " for " << expected(i, j);
              EXPECT_EQ(width_sq[i * count + j], width_sq[j * count + i]);
            }
          }
        }
      }
    }
  }
}

// Two equal pairs whose sum of squares could hold nothing beside them.
TEST(BlockCovarianceTest, RootsKeepTheirDigits) {
  const UnitBlocks blocks{linear_shape(4), 0};
  ExecutionContext context;
  std::vector<double> roots = first_roots(blocks, 1.0);
  // Features, then the output's δ = 1.
  const std::vector<float> huge = {1e9F, 1e9F, 0.0F, 0.0F, 1.0F, 0.0F, 0.0F, 0.0F, 0.0F, 1.0F};
  const std::vector<float> twice = [&] {
    std::vector<float> both = huge;
    both.insert(both.end(), huge.begin(), huge.end());
    return both;
  }();
  update_block_roots(context, blocks, {twice.data(), 4}, 1.0, roots.data());
  // A = I + 2ggᵀ: across g the prior is left, along g 1/(1 + 2‖g‖²).
  const std::vector<float> docs = {1.0F, -1.0F, 0.0F, 0.0F, 1.0F, 0.0F, 0.0F, 0.0F, 0.0F, 1.0F,
                                   1.0F, 1.0F,  0.0F, 0.0F, 1.0F, 0.0F, 0.0F, 3.0F, 0.0F, 1.0F};
  std::vector<double> width_sq(16);
  block_width_sq(context, blocks, {docs.data(), 4}, 1.0, roots.data(), width_sq.data());
  EXPECT_NEAR(width_sq[1], 2.0, 1e-6);
  EXPECT_NEAR(width_sq[1 * 4 + 3], 9.0, 1e-6);
  // Rounding of the root, 10⁻¹⁶, is next to one over 10⁹.
  EXPECT_NEAR(width_sq[1 * 4 + 2], 2.0 / (1.0 + 4e18), 1e-5 * 5e-19);
}

TEST(BlockCovarianceTest, NumbersThatAreNotFiniteShow) {
  const NetworkShape shape = ntk_shape(3, 4, 2);
  const UnitBlocks blocks{shape, 0};
  ExecutionContext context;
  const std::vector<double> roots = first_roots(blocks, 1.0);
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> factors = random_factors(shape, 5, 3);
    const NetworkLayer layer = shape.layer(0);
    factors[2 * shape.factors() + layer.delta] = bad;
    std::vector<double> width_sq(25);
    block_width_sq(context, blocks, view_of(blocks.shape, factors), 1.0, roots.data(), width_sq.data());
    EXPECT_FALSE(std::isfinite(width_sq[2 * 5 + 1]));
  }
}

}  // namespace
}  // namespace olrank
