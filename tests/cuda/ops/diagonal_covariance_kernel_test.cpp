#include "cuda/ops/diagonal_covariance.h"

#include "core/ops/diagonal_covariance.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

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

  explicit Device(std::int64_t p) : diagonal(p), root(p), state{diagonal.data(), root.data()} {}
};

TEST_P(DiagonalCovarianceKernelTest, AccumulationMatchesCpu) {
  constexpr double kLambda = 0.3;
  constexpr double kScale = 0.125;
  const auto expect_equal_diagonals = [&](const auto& shape) {
    const std::vector<float> factors = random_factors(shape, 12, 3);
    const std::vector<PreferencePair> pairs = {{4, 1}, {0, 11}, {5, 5}, {4, 2}};
    auto rows = on_device(factors);
    const auto pairs_there = on_device(pairs);
    Device device(shape.parameters());
    const device::FactorRows view{rows.data(), 12, shape.factors()};
    device::reset_diagonal(nullptr, shape, kLambda, kScale, device.state);
    device::add_to_diagonal(nullptr, shape, view, pairs_there.data(), 0, kScale, device.state);
    const std::vector<double> fresh(shape.parameters(), kLambda);
    EXPECT_EQ(device.diagonal.to_host(), fresh);
    device::add_to_diagonal(nullptr, shape, view, pairs_there.data(), 3, kScale, device.state);
    device::add_to_diagonal(nullptr, shape, view, pairs_there.data() + 3, 1, kScale, device.state);

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
  std::vector<double> root;
  for (const float draw : random_numbers(shape.parameters(), 23)) {
    weights.push_back(1.0 / (0.1 + double{draw} * double{draw}));
    root.push_back(std::sqrt(kScale * weights.back()));
  }
  auto rows = on_device(factors);
  const auto root_there = on_device(root);
  DeviceArray<double> workspace(device::diagonal_gram_workspace(shape, docs));
  DeviceArray<double> m = unset_on_device<double>(docs * docs);
  device::diagonal_gram(nullptr, shape, {rows.data(), docs, shape.factors()}, root_there.data(),
                        workspace.data(), m.data());
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
  // More units than one part lists.
  expect_equal_grams(ntk_shape(3, 300, 2), 3);
  expect_equal_grams(shape_of_layers({{140, 2, true}, {1, 300}, {150, 3}}), 3);
}

OLRANK_KERNEL_TESTS(DiagonalCovarianceKernelTest);

}  // namespace
}  // namespace olrank
