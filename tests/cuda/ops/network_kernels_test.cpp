#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/data/normaliser.h"
#include "core/math/pair_loss.h"
#include "core/ops/gradient_products.h"
#include "core/ops/pair_training.h"
#include "core/ops/tangent_factors.h"
#include "cuda/ops/gradient_products.h"
#include "cuda/ops/query_inputs.h"
#include "cuda/ops/tangent_factors.h"
#include "tests/cuda/ops/history_fixture.h"

namespace olrank {
namespace {

OLRANK_KERNEL_TEST_SUITE(GradientProductsKernelTest);

template <class Shape>
void expect_equal_sums(const Shape& shape, std::int64_t docs) {
  ExecutionContext context;
  const std::int64_t p = shape.parameters();
  const Given<float> factors = random_factors(shape, docs, 6);
  const Given<double> v = random_doubles(p, 7);
  const Given<double> weights = random_doubles(docs, 8);
  const device::FactorRows view{factors, docs, shape.factors()};
  DeviceArray<double> work(std::max(device::gradient_products_workspace(shape, docs),
                                    device::gradient_sum_workspace(shape, docs)));
  DeviceArray<double> products(docs), sum(p);
  device::gradient_products(nullptr, shape, view, v, work, products);
  device::gradient_sum(nullptr, shape, view, weights, work, sum);
  std::vector<double> expected(docs);
  gradient_products(context, shape, view_of(shape, factors), v, expected);
  // Sums of up to 2,000 products of numbers below 100, in double.
  EXPECT_TRUE(all_near(products.to_host(), expected, 1e-10, 1e-12)) << p << " " << docs;
  std::vector<double> expected_sum(p);
  gradient_sum(context, shape, view_of(shape, factors), weights, expected_sum);
  EXPECT_TRUE(all_near(sum.to_host(), expected_sum, 1e-10, 1e-12)) << p << " " << docs;

  // Several columns at once: each has the bits that its products have alone.
  constexpr std::int64_t kColumns = 3;
  const Given<double> columns = random_doubles(kColumns * std::max(p, docs), 9);
  DeviceArray<double> work_of_all(std::max(device::gradient_products_workspace(shape, docs, kColumns),
                                           device::gradient_sum_workspace(shape, docs, kColumns)));
  DeviceArray<double> all_products(kColumns * docs), all_sums(kColumns * p);
  device::gradient_products(nullptr, shape, view, columns, work_of_all, all_products, nullptr, kColumns);
  device::gradient_sum(nullptr, shape, view, columns, work_of_all, all_sums, nullptr, kColumns);
  for (std::int64_t column = 0; column < kColumns; ++column) {
    device::gradient_products(nullptr, shape, view, columns.there() + column * p, work, products);
    EXPECT_EQ(part_of(all_products.to_host(), column * docs, docs), products.to_host());
    gradient_sum(context, shape, view_of(shape, factors), part_of<double>(columns, column * docs, docs),
                 expected_sum);
    EXPECT_TRUE(all_near(part_of(all_sums.to_host(), column * p, p), expected_sum, 1e-10, 1e-12)) << column;
  }

  auto untouched = on_device(expected_sum);
  device::gradient_sum(nullptr, shape, view, weights, work, untouched,
                       on_device(std::vector<std::int32_t>{1}));
  EXPECT_EQ(untouched.to_host(), expected_sum);
}

TEST_P(GradientProductsKernelTest, ProductsAndSumsMatchCpu) {
  for (const NetworkShape& shape : test_shapes()) expect_equal_sums(shape, 19);
  for (const std::int64_t docs : {0, 1, 31, 64, 65, 200}) expect_equal_sums(ntk_shape(5, 6, 2), docs);
  expect_equal_sums(standard_shape(70, 66, 3), 20);
}

OLRANK_KERNEL_TEST_SUITE(TangentFactorsKernelTest);

struct FactorCase {
  NetworkShape shape;
  std::int64_t docs;
  std::int64_t members;
  bool many_docs = false;
};

std::vector<FactorCase> cases() {
  std::vector<FactorCase> cases;
  for (const NetworkShape& shape : test_shapes()) cases.push_back({shape, 33, 1});
  for (const std::int64_t docs : {0, 1, 31, 32, 130}) cases.push_back({ntk_shape(13, 34, 2), docs, 1});
  cases.push_back({standard_shape(9, 40, 3), 21, 3});
  // Layers that take several tiles.
  cases.push_back({ntk_shape(19, 12, 3), 1200, 1});
  cases.push_back({ntk_shape(3, 140, 2), 9, 1});
  cases.push_back({ntk_shape(13, 34, 2), 130, 2, true});
  cases.push_back({standard_shape(9, 40, 2), 21, 3, true});
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
    DeviceArray<float> scores(one.members * one.docs), magnitudes(one.members * one.docs);
    DefaultProducts on;
    device::tangent_factors(
        on.products,
        {.shape = shape, .theta = theta_there, .members = one.members, .many_docs = one.many_docs},
        features_there, {rows, one.docs, stride}, {scores, magnitudes});
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
    DeviceArray<float> rows(40 * shape.factors()), scores(40), magnitudes(40);
    const device::FactorRows view{rows, 40, shape.factors()};
    DefaultProducts on;
    device::forward(on.products, {shape, theta_there}, features_there, view, {scores, magnitudes});
    const auto found = scores.to_host();
    const auto scale = magnitudes.to_host();
    for (std::size_t doc = 0; doc < found.size(); ++doc) {
      EXPECT_GT(scale[doc], 0.1F);
      EXPECT_LE(std::abs(found[doc]), kScoreRounding * double{scale[doc]});
    }
  }
}

OLRANK_KERNEL_TEST_SUITE(QueryInputsKernelTest);

constexpr float kLimit = FittedNormaliser::kLargestInput;
constexpr float kNone = std::numeric_limits<float>::max();

/// Rows that lie `stride` apart, with what is not to be read between them.
DeviceArray<float> rows_apart(const std::vector<float>& values, std::int64_t features,
                              std::int64_t stride) {
  std::vector<float> apart(std::ssize(values) / features * stride, std::numeric_limits<float>::quiet_NaN());
  for (std::int64_t i = 0; i < std::ssize(values); ++i)
    apart[i / features * stride + i % features] = values[i];
  return on_device(apart);
}

struct Found {
  std::vector<std::uint32_t> bits;
  unsigned long long bad = 0;
};

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

Found found_for(const std::vector<float>& values, std::int64_t features, std::int64_t stride, bool scale) {
  const auto apart = rows_apart(values, features, stride);
  const std::int64_t docs = std::ssize(values) / features;
  auto inputs = unset_on_device<float>(docs * features);
  auto bad = on_device(std::vector<unsigned long long>{~0ULL});
  device::query_inputs(nullptr, {apart.data(), docs, features, stride}, scale, scale ? kNone : kLimit,
                       inputs, bad);
  return {bits_of(inputs.to_host()), bad.to_host().front()};
}

TEST_P(QueryInputsKernelTest, InputsHaveTheBitsOfTheHosts) {
  for (const std::int64_t features : {1, 31, 33}) {
    for (const std::int64_t docs : {1, 15, 17, 100}) {
      std::vector<float> values = random_numbers(docs * features, 7 * docs + features);
      for (std::int64_t doc = 0; doc < docs; ++doc) {
        values[doc * features] = doc % 3 == 0 ? -0.0F : 0.0F;  // of both signs, as the least value
        if (features < 4) continue;
        values[doc * features + 1] = doc % 4 == 1 ? -0.0F : static_cast<float>(doc % 4);
        values[doc * features + 2] = 7.0F;
        values[doc * features + 3] = doc % 2 == 0 ? 3e38F : -3e38F;
      }
      for (const bool scale : {true, false}) {
        if (!scale && features >= 4) values[3] = values[docs * features - features + 3] = 1.0F;
        FittedNormaliser normaliser;
        normaliser.kind = scale ? Normalisation::kQueryMinmax : Normalisation::kNone;
        normaliser.features = features;
        std::vector<float> expected(values.size());
        normaliser.apply({values.data(), docs, features}, expected.data());
        for (const std::int64_t stride : {features, features + 5}) {
          const Found found = found_for(values, features, stride, scale);
          EXPECT_EQ(found.bits, bits_of(expected)) << docs << " × " << features;
          const auto bad = normaliser.find_bad_input(expected.data(), docs);
          EXPECT_EQ(found.bad, bad ? docs * features + bad->doc * features + bad->feature : ~0ULL);
        }
      }
    }
  }
}

TEST_P(QueryInputsKernelTest, TheFirstBadValueIsFound) {
  constexpr std::int64_t kFeatures = 40;
  constexpr unsigned long long kCount = 50 * kFeatures;
  std::vector<float> values = random_numbers(kCount, 3);
  values[1234] = 2e12F;
  values[1500] = -3e12F;
  EXPECT_EQ(found_for(values, kFeatures, kFeatures, false).bad, kCount + 1234);
  EXPECT_EQ(found_for(values, kFeatures, kFeatures, true).bad, ~0ULL);
  values[1700] = std::numeric_limits<float>::quiet_NaN();
  values[1900] = std::numeric_limits<float>::infinity();
  for (const bool scale : {true, false})
    EXPECT_EQ(found_for(values, kFeatures, kFeatures, scale).bad, 1700U);
  values[80] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(found_for(values, kFeatures, kFeatures, true).bad, 80U);
}

OLRANK_KERNEL_TEST_SUITE(LargestCurvatureKernelTest);

TEST_P(LargestCurvatureKernelTest, MatchesCpu) {
  for (const NetworkShape& shape : {ntk_shape(6, 8, 2), standard_shape(4, 7, 3), linear_shape(5)}) {
    const std::int64_t docs = 40;
    const std::int64_t p = shape.parameters();
    const Given<float> factors = random_factors(shape, docs, 9);
    TestHistory history(shape, docs, random_terms(docs, 70, 10));
    std::vector<double> vector(p);
    RngStream(test_key(11), 0).unit_vector(vector);
    auto vector_there = on_device(vector);
    const device::PairHistoryView view = history.view();
    device::CurvatureTask task;
    task.shape = shape;
    task.rows = {factors, docs, shape.factors()};
    task.terms = view.terms;
    task.count = view.count;
    task.incidence = view.incidence;
    task.fresh = vector_there;  // not read: the vector has a length
    DeviceArray<double> work(device::curvature_workspace(shape, docs));
    DeviceArray<device::CurvatureState> state(1);
    device::begin_curvature(nullptr, task, vector_there, state);
    for (int iteration = 0; iteration < 100; ++iteration) {
      device::iterate_curvature(nullptr, task, vector_there, work, state);
    }
    ExecutionContext context;
    const double expected = largest_curvature(context, shape, view_of(shape, factors), history.terms,
                                              vector, task.tolerance, 100);
    const device::CurvatureState found = state.to_host()[0];
    EXPECT_EQ(found.settled, 1);
    EXPECT_LT(found.iterations, 100);
    // Both stop at the same iteration, where rounding is all that differs.
    EXPECT_NEAR(found.estimate / 4.0, expected, 1e-9 * expected);
    EXPECT_TRUE(all_near(vector_there.to_host(), vector, 1e-8, 0.0));
    DeviceArray<double> step(1);
    for (const double growth : {1.0, 1.04}) {
      device::step_from_curvature(nullptr, state, growth, 0.5, 3.0, step);
      EXPECT_NEAR(step.to_host()[0], 0.5 / (growth * expected + 3.0), 1e-9);
    }
  }
}

// Gradients that were all equal leave a zero vector; later ones must still find their curvature.
TEST_P(LargestCurvatureKernelTest, RestartsFromTheGivenVectorWhenItsOwnIsZero) {
  const NetworkShape shape = linear_shape(300);
  const std::vector<double> fresh = random_doubles(300, 12);
  device::CurvatureTask task;
  task.shape = shape;
  const auto fresh_there = on_device(fresh);
  task.fresh = fresh_there;
  DeviceArray<double> work(device::curvature_workspace(shape, 0));
  DeviceArray<device::CurvatureState> state(1);
  auto vector = on_device(std::vector<double>(300));
  device::begin_curvature(nullptr, task, vector, state);
  EXPECT_EQ(vector.to_host(), fresh);
  EXPECT_EQ(state.to_host()[0].settled, 0);
  EXPECT_EQ(state.to_host()[0].norm, 1.0);
  EXPECT_EQ(state.to_host()[0].estimate, 0.0);
  // One with a length stays.
  std::vector<double> two(300);
  two[299] = 2.0;
  vector = on_device(two);
  device::begin_curvature(nullptr, task, vector, state);
  EXPECT_EQ(vector.to_host(), two);
  EXPECT_EQ(state.to_host()[0].norm, 2.0);
}

}  // namespace
}  // namespace olrank
