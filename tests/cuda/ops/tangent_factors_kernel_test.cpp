#include "cuda/ops/tangent_factors.h"

#include "core/math/pair_width.h"
#include "core/ops/tangent_factors.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

class TangentFactorsKernelTest : public KernelTest {};

struct FactorCase {
  NetworkShape shape;
  std::int64_t docs;
  std::int64_t members;
  device::Multiplier multiplier = device::Multiplier::kChosen;
};

std::vector<FactorCase> cases() {
  std::vector<FactorCase> cases;
  for (const NetworkShape& shape : test_shapes()) cases.push_back({shape, 33, 1});
  for (const std::int64_t docs : {0, 1, 31, 32, 130}) cases.push_back({ntk_shape(13, 34, 2), docs, 1});
  cases.push_back({standard_shape(9, 40, 3), 21, 3});
  // Enough of them for the large tiles, and layers that take several.
  cases.push_back({ntk_shape(19, 12, 3), 1200, 1});
  cases.push_back({ntk_shape(3, 140, 2), 9, 1});
  cases.push_back({ntk_shape(13, 34, 2), 130, 2, device::Multiplier::kLibrary});
  cases.push_back({standard_shape(9, 40, 2), 21, 3, device::Multiplier::kLibrary});
  return cases;
}

TEST_P(TangentFactorsKernelTest, MatchCpu) {
  for (const FactorCase& one : cases()) {
    const NetworkShape& shape = one.shape;
    const std::int64_t stride = shape.factors() + 3;
    const std::vector<float> features = random_numbers(one.docs * shape.inputs, 5);
    const std::vector<float> theta = stacked_theta(shape, one.members, 7);
    const DeviceArray<float> features_there = on_device(features);
    const DeviceArray<float> theta_there = on_device(theta);
    DeviceArray<float> rows = unset_on_device<float>(one.members * one.docs * stride);
    DeviceArray<float> scores(one.members * one.docs);
    DeviceArray<float> magnitudes(one.members * one.docs);
    DefaultProducts on;
    device::tangent_factors(
        on.products,
        {.shape = shape, .theta = theta_there.data(), .members = one.members, .multiplier = one.multiplier},
        features_there.data(), {rows.data(), one.docs, stride}, {scores.data(), magnitudes.data()});
    const std::vector<float> found = rows.to_host();
    for (std::int64_t member = 0; member < one.members; ++member) {
      ExecutionContext context;
      std::vector<float> expected(one.docs * shape.factors());
      std::vector<float> expected_scores(one.docs);
      std::vector<float> expected_magnitudes(expected_scores.size());
      tangent_factors(context, shape, part_of(theta, member * shape.parameters(), shape.parameters()),
                      matrix_of(features, shape.inputs), expected, expected_scores, expected_magnitudes);
      std::vector<float> dense;
      for (std::int64_t doc = 0; doc < one.docs; ++doc) {
        const auto row = part_of(found, (member * one.docs + doc) * stride, shape.factors());
        dense.insert(dense.end(), row.begin(), row.end());
      }
      // Float32 sums of up to 40 products of numbers near 1, in another order, through up to 4 layers.
      EXPECT_TRUE(all_near(dense, expected, 1e-5, 1e-5)) << shape.depth << " " << one.docs;
      const auto own_scores = part_of(scores.to_host(), member * one.docs, one.docs);
      const auto own_magnitudes = part_of(magnitudes.to_host(), member * one.docs, one.docs);
      EXPECT_TRUE(all_near(own_scores, expected_scores, 1e-4, 1e-5));
      EXPECT_TRUE(all_near(own_magnitudes, expected_magnitudes, 0.0, 1e-5));
    }
  }
}

TEST_P(TangentFactorsKernelTest, SymmetricNetworksScoreZero) {
  for (const NetworkShape& shape : {ntk_shape(11, 26, 3), ntk_shape(13, 270, 2), ntk_shape(11, 26, 2)}) {
    std::vector<float> theta(shape.parameters());
    initialise(shape, Initialisation::kSymmetric, test_key(3), theta);
    const std::vector<float> features = random_numbers(40 * shape.inputs, 9);
    const DeviceArray<float> features_there = on_device(features);
    const DeviceArray<float> theta_there = on_device(theta);
    DeviceArray<float> rows(40 * shape.factors());
    DeviceArray<float> scores(40);
    DeviceArray<float> magnitudes(40);
    const device::FactorRows view{rows.data(), 40, shape.factors()};
    DefaultProducts on;
    device::forward(on.products, {shape, theta_there.data()}, features_there.data(), view,
                    {scores.data(), magnitudes.data()});
    const auto found = scores.to_host();
    const auto scale = magnitudes.to_host();
    for (std::size_t doc = 0; doc < found.size(); ++doc) {
      EXPECT_GT(scale[doc], 0.1F);
      EXPECT_LE(std::abs(found[doc]), kScoreRounding * double{scale[doc]});
    }
  }
}

TEST_P(TangentFactorsKernelTest, GathersPairs) {
  const std::vector<float> rows = random_numbers(5 * 7, 1);
  const std::vector<std::int32_t> pairs = {4, 0, 2, 2, 1, 3};
  const DeviceArray<float> rows_there = on_device(rows);
  const DeviceArray<std::int32_t> pairs_there = on_device(pairs);
  DeviceArray<float> to(6 * 7);
  device::gather_pairs(nullptr, {const_cast<float*>(rows_there.data()), 5, 7}, pairs_there.data(), 3,
                       to.data());
  const auto found = to.to_host();
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    EXPECT_EQ(part_of(found, 7 * static_cast<std::int64_t>(i), 7), part_of(rows, 7 * pairs[i], 7));
  }
}

OLRANK_KERNEL_TESTS(TangentFactorsKernelTest);

}  // namespace
}  // namespace olrank
