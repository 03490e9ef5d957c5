#include "cuda/ops/block_covariance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

constexpr double kBlockLambda = 0.4;
constexpr double kBlockScale = 0.125;

/// Places in θ of each block's parameters, written out: a unit's weights, then its bias.
std::vector<std::vector<std::int64_t>> places_of_blocks(const TangentShape& shape,
                                                        std::int64_t first_layer) {
  std::vector<std::vector<std::int64_t>> places;
  for (const NetworkLayer& layer : shape.layers().subspan(first_layer)) {
    for (std::int64_t unit = 0; unit < layer.rows; ++unit) {
      places.emplace_back();
      for (std::int64_t c = 0; c < layer.columns; ++c)
        places.back().push_back(layer.weight + unit * layer.columns + c);
      if (layer.has_bias()) places.back().push_back(layer.bias + unit);
    }
  }
  return places;
}

/// Factors in which every third hidden unit is inactive for all documents, and every unit for document 2.
template <class Shape>
std::vector<float> partly_dead_factors(const Shape& shape, std::int64_t docs, std::uint64_t seed) {
  std::vector<float> factors = random_factors(shape, docs, seed);
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const TangentShape all(shape);
    for (const NetworkLayer& layer : all.layers().first(all.layers().size() - 1)) {
      for (std::int64_t unit = 0; unit < layer.rows; ++unit) {
        if (unit % 3 == 1 || doc == 2) factors[doc * shape.factors() + layer.delta + unit] = 0.0F;
      }
    }
  }
  return factors;
}

/// Blocks as the device keeps them, round by round, beside the matrices that they stand for.
struct BlockRounds {
  TangentShape shape;
  device::BlockTable blocks;
  std::vector<std::vector<std::int64_t>> places;
  DeviceArray<double> roots;
  DeviceArray<device::CovarianceStatus> status;
  std::vector<double> directions;
  DeviceArray<double> directions_there;
  DeviceArray<double> products;
  DeviceArray<double> energies;
  std::vector<Eigen::MatrixXd> a;

  BlockRounds(const TangentShape& of, std::int64_t first_layer)
      : shape(of),
        blocks(of, first_layer),
        places(places_of_blocks(of, first_layer)),
        roots(blocks.numbers),
        status(on_device(std::vector<device::CovarianceStatus>(1))),
        directions(random_doubles(2 * blocks.parameters, 5)),
        directions_there(on_device(directions)),
        products(on_device(std::vector<double>(2 * blocks.parameters))),
        energies(on_device(std::vector<double>(2 * blocks.count()))) {
    device::reset_block_roots(nullptr, blocks, 1.0 / std::sqrt(kBlockLambda), roots.data());
    for (const auto& block : places)
      a.emplace_back(kBlockLambda * Eigen::MatrixXd::Identity(std::ssize(block), std::ssize(block)));
  }

  device::BlockProbes probes() { return {2, directions_there.data(), products.data(), energies.data()}; }

  Eigen::MatrixXd of_block(const Eigen::MatrixXd& gradients, std::size_t u) const {
    Eigen::MatrixXd own(gradients.rows(), std::ssize(places[u]));
    for (std::int64_t k = 0; k < own.cols(); ++k) own.col(k) = gradients.col(places[u][k]);
    return own;
  }

  void play(const std::vector<float>& factors, const std::vector<PreferencePair>& pairs) {
    auto rows = on_device(factors);
    const auto pairs_there = on_device(pairs);
    const auto docs = std::ssize(factors) / shape.factors();
    const auto count = std::ssize(pairs);
    const device::FactorRows view{rows.data(), docs, shape.factors()};
    DeviceArray<double> w(docs * blocks.parameters);
    DeviceArray<double> m = unset_on_device<double>(docs * docs);
    DeviceArray<double> gram_work(device::block_gram_workspace(blocks, docs));
    DeviceArray<double> work(device::update_block_roots_workspace(blocks, count));
    device::block_rows(nullptr, blocks, view, roots.data(), w.data());
    device::block_gram(nullptr, blocks, view, w.data(), kBlockScale, gram_work.data(), m.data());
    device::update_block_roots(nullptr, blocks, view, w.data(), pairs_there.data(), count, kBlockScale,
                               work.data(), roots.data(), probes(), status.data());
    expect_m(m.to_host(), slow_gradients(shape, view_of(shape, factors)));
    add(slow_gradients(shape, view_of(shape, factors)), pairs);
  }

  void expect_m(const std::vector<double>& found, const Eigen::MatrixXd& g) const {
    const std::int64_t docs = g.rows();
    Eigen::MatrixXd expected = Eigen::MatrixXd::Zero(docs, docs);
    for (std::size_t u = 0; u < a.size(); ++u) {
      const Eigen::MatrixXd own = of_block(g, u);
      expected += kBlockScale * own * a[u].llt().solve(own.transpose());
    }
    for (std::int64_t i = 0; i < docs; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        // Sums in double of numbers whose scale is that of the diagonal.
        const double scale = std::sqrt(expected(i, i) * expected(j, j));
        ASSERT_TRUE(std::abs(found[i * docs + j] - expected(i, j)) <= 1e-11 * scale)
            << shape.parameters() << " " << docs << " " << i << " " << j;
      }
    }
  }

  void add(const Eigen::MatrixXd& g, const std::vector<PreferencePair>& pairs) {
    for (const PreferencePair& pair : pairs) {
      for (std::size_t u = 0; u < a.size(); ++u) {
        const Eigen::RowVectorXd own = of_block(g.row(pair.winner) - g.row(pair.loser), u);
        a[u] += kBlockScale * own.transpose() * own;
      }
    }
  }

  void expect_state() {
    const auto numbers = roots.to_host();
    const auto found_products = products.to_host();
    const auto found_energies = energies.to_host();
    DeviceArray<double> by_roots(energies.size());
    device::block_energies(nullptr, blocks, roots.data(), probes(), by_roots.data());
    const auto found_by_roots = by_roots.to_host();
    double log_det = 0.0;
    for (std::size_t u = 0; u < a.size(); ++u) {
      const device::BlockTable::Block block = blocks.block(static_cast<std::int64_t>(u));
      const std::int64_t size = a[u].rows();
      ASSERT_EQ(block.size, size);
      const Eigen::Map<const Eigen::Matrix<double, -1, -1, Eigen::RowMajor>> root(
          numbers.data() + block.number, size, size);
      const double error = (root.transpose() * root - a[u].inverse()).cwiseAbs().maxCoeff();
      EXPECT_TRUE(error <= 1e-12 / kBlockLambda) << error;
      const Eigen::LLT<Eigen::MatrixXd> cholesky(a[u] / kBlockLambda);
      for (std::int64_t k = 0; k < size; ++k) log_det += 2.0 * std::log(cholesky.matrixLLT()(k, k));
      for (std::int64_t probe = 0; probe < 2; ++probe) {
        const std::int64_t first = probe * blocks.parameters + block.first;
        const auto vector_at = [&](const std::vector<double>& of) {
          return Eigen::Map<const Eigen::VectorXd>(of.data() + first, size);
        };
        const Eigen::VectorXd v = vector_at(directions);
        const Eigen::VectorXd product = a[u] * v - kBlockLambda * v;  // probes began at 0 here
        EXPECT_TRUE((vector_at(found_products) - product).norm() <= 1e-12 * (1.0 + product.norm()));
        const double energy = v.dot(product);
        const auto at = static_cast<std::size_t>(probe * blocks.count()) + u;
        EXPECT_NEAR(found_energies[at], energy, 1e-12 * (1.0 + energy));
        const double found = vector_at(found_products).dot(a[u].llt().solve(vector_at(found_products)));
        EXPECT_NEAR(found_by_roots[at], found, 1e-11 * (1.0 + found));
      }
    }
    const device::CovarianceStatus now = status.to_host()[0];
    EXPECT_EQ(now.failed, 0);
    EXPECT_NEAR(now.log_det, log_det, 1e-10 * (1.0 + log_det));
  }
};

class BlockCovarianceKernelTest : public KernelTest {};

TEST_P(BlockCovarianceKernelTest, MatchesTheWholeHistoryInEachRound) {
  const auto expect_match = [](const auto& shape) {
    const auto last = std::ssize(TangentShape(shape).layers()) - 1;
    for (const std::int64_t first_layer : {std::int64_t{0}, last}) {
      BlockRounds rounds(shape, first_layer);
      std::uint64_t seed = 30;
      for (const std::int64_t count : {0, 1, 5, 32, 9}) {
        const std::int64_t docs = count == 32 ? 66 : 9;
        std::vector<PreferencePair> pairs;
        for (std::int64_t s = 0; s < count; ++s) {
          pairs.push_back(
              {static_cast<std::int32_t>((5 * s + 1) % docs), static_cast<std::int32_t>(s % docs)});
        }
        rounds.play(partly_dead_factors(shape, docs, ++seed), pairs);
      }
      rounds.expect_state();
    }
  };
  for (const NetworkShape& shape : {ntk_shape(9, 12, 2), standard_shape(70, 5, 2), standard_shape(4, 7, 3),
                                    ntk_shape(5, 6, 4), linear_shape(7)})
    expect_match(shape);
}

TEST_P(BlockCovarianceKernelTest, GramsTakeAnyNumberOfDocuments) {
  const NetworkShape shape = standard_shape(5, 6, 2);
  for (const std::int64_t docs : {0, 1, 31, 32, 33, 64, 65}) {
    BlockRounds rounds(shape, 0);
    rounds.play(partly_dead_factors(shape, docs, 3), {});
  }
  // Parts of two units.
  const NetworkShape wide_shape = ntk_shape(2, 90, 2);
  BlockRounds wide(wide_shape, 0);
  wide.play(partly_dead_factors(wide_shape, 130, 3), {});
}

// A squared U would leave nothing of λ beside 10¹⁸ times as much, and of the pairs' difference.
TEST_P(BlockCovarianceKernelTest, PairsOfVeryDifferentSizeKeepTheirDigits) {
  const NetworkShape shape = linear_shape(3);
  const std::vector<float> factors = {3e9F, 0.0F, 0.0F, 1.0F, 0.0F, 0.0F, 0.0F, 1.0F,
                                      0.0F, 1.0F, 0.0F, 1.0F,  //
                                      3e9F, 1.0F, 0.0F, 1.0F, 0.0F, 0.0F, 1.0F, 1.0F};
  ASSERT_EQ(std::ssize(factors), 5 * shape.factors());
  BlockRounds rounds(shape, 0);
  auto rows = on_device(factors);
  const auto pairs = on_device(std::vector<PreferencePair>{{0, 1}, {3, 1}});
  const device::FactorRows view{rows.data(), 5, shape.factors()};
  DeviceArray<double> w(5 * rounds.blocks.parameters);
  DeviceArray<double> work(device::update_block_roots_workspace(rounds.blocks, 2));
  device::block_rows(nullptr, rounds.blocks, view, rounds.roots.data(), w.data());
  device::update_block_roots(nullptr, rounds.blocks, view, w.data(), pairs.data(), 2, kBlockScale,
                             work.data(), rounds.roots.data(), rounds.probes(), rounds.status.data());
  // In the plane of the first two features A = λI + s(aaᵀ + bbᵀ) with a = (c, 0) and b = (c, 1): the second
  // one's (A⁻¹)₂₂ = A₁₁/det A, where c² leads both, is 1/(λ + s/2).
  const auto root = rounds.roots.to_host();
  const double found = root[1] * root[1] + root[4] * root[4] + root[7] * root[7];
  EXPECT_NEAR(found, 1.0 / (kBlockLambda + kBlockScale / 2.0), 1e-6);
}

TEST_P(BlockCovarianceKernelTest, NumbersThatAreNotFiniteLeaveTheRootsAlone) {
  const NetworkShape shape = standard_shape(4, 3, 2);
  BlockRounds rounds(shape, 0);
  std::vector<float> factors = random_factors(shape, 4, 8);
  const auto before = rounds.roots.to_host();
  std::fill_n(factors.begin(), shape.factors(), std::numeric_limits<float>::infinity());
  auto rows = on_device(factors);
  const auto pairs = on_device(std::vector<PreferencePair>{{1, 2}, {0, 3}});
  const device::FactorRows view{rows.data(), 4, shape.factors()};
  DeviceArray<double> w(4 * rounds.blocks.parameters);
  DeviceArray<double> work(device::update_block_roots_workspace(rounds.blocks, 2));
  device::block_rows(nullptr, rounds.blocks, view, rounds.roots.data(), w.data());
  device::update_block_roots(nullptr, rounds.blocks, view, w.data(), pairs.data(), 2, kBlockScale,
                             work.data(), rounds.roots.data(), rounds.probes(), rounds.status.data());
  EXPECT_EQ(rounds.status.to_host()[0].failed, 1);
  EXPECT_EQ(rounds.roots.to_host(), before);
}

OLRANK_KERNEL_TESTS(BlockCovarianceKernelTest);

}  // namespace
}  // namespace olrank
