#include "cuda/ops/curvature.h"

#include <algorithm>
#include <cmath>

#include "core/ops/pair_training.h"
#include "core/ops/tangent_factors.h"
#include "cuda/ops/gradient_sums.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

class CurvatureKernelTest : public KernelTest {};

std::vector<double> random_doubles(std::int64_t count, std::uint64_t seed) {
  std::vector<double> values;
  for (const float draw : random_numbers(count, seed)) values.push_back(double{draw});
  return values;
}

void expect_equal_sums(const NetworkShape& shape, std::int64_t docs) {
  ExecutionContext context;
  const std::int64_t p = shape.parameters();
  const std::vector<float> factors = random_factors(shape, docs, 6);
  const std::vector<double> v = random_doubles(p, 7);
  const std::vector<double> weights = random_doubles(docs, 8);
  auto rows = on_device(factors);
  const device::FactorRows view{rows.data(), docs, shape.factors()};
  const auto v_there = on_device(v);
  const auto weights_there = on_device(weights);
  DeviceArray<double> work(std::max(device::gradient_products_workspace(shape, docs),
                                    device::gradient_sum_workspace(shape, docs)));
  DeviceArray<double> products(docs);
  DeviceArray<double> sum(p);
  device::gradient_products(nullptr, shape, view, v_there.data(), work.data(), products.data());
  device::gradient_sum(nullptr, shape, view, weights_there.data(), work.data(), sum.data());
  std::vector<double> expected(static_cast<std::size_t>(docs));
  gradient_products(context, shape, view_of(shape, factors), v, expected);
  // Sums of up to 2,000 products of numbers below 100, in double.
  EXPECT_TRUE(all_near(products.to_host(), expected, 1e-10, 1e-12)) << shape.depth << " " << docs;
  std::vector<double> expected_sum(static_cast<std::size_t>(p));
  gradient_sum(context, shape, view_of(shape, factors), weights, expected_sum);
  EXPECT_TRUE(all_near(sum.to_host(), expected_sum, 1e-10, 1e-12)) << shape.depth << " " << docs;

  const auto skip = on_device(std::vector<std::int32_t>{1});
  auto untouched = on_device(expected_sum);
  device::gradient_sum(nullptr, shape, view, weights_there.data(), work.data(), untouched.data(),
                       skip.data());
  EXPECT_EQ(untouched.to_host(), expected_sum);
}

TEST_P(CurvatureKernelTest, ProductsAndSumsEqualTheCpus) {
  for (const NetworkShape& shape : test_shapes()) expect_equal_sums(shape, 19);
  for (const std::int64_t docs : {0, 1, 31, 64, 65, 200}) expect_equal_sums(ntk_shape(5, 6, 2), docs);
  expect_equal_sums(standard_shape(70, 66, 3), 20);
}

TEST_P(CurvatureKernelTest, TheLargestCurvatureIsTheCpus) {
  for (const NetworkShape& shape : {ntk_shape(6, 8, 2), standard_shape(4, 7, 3), linear_shape(5)}) {
    const std::int64_t docs = 40;
    const std::int64_t p = shape.parameters();
    const std::vector<float> factors = random_factors(shape, docs, 9);
    std::vector<PairTerm> terms;
    RngStream draws(test_key(10), 1);
    for (int t = 0; t < 70; ++t) {
      const auto first = static_cast<std::int32_t>(draws.index(40));
      const auto second =
          static_cast<std::int32_t>((static_cast<std::uint32_t>(first) + 1 + draws.index(39)) % 40);
      terms.push_back({first, second, 1.0 + draws.index(4), 0.0});
    }
    std::vector<double> vector(static_cast<std::size_t>(p));
    RngStream(test_key(11), 0).unit_vector(vector);
    auto rows = on_device(factors);
    const auto terms_there = on_device(terms);
    auto vector_there = on_device(vector);
    DeviceArray<std::int32_t> offsets(docs + 1);
    DeviceArray<std::int32_t> ends(140);
    DeviceArray<std::int32_t> incidence_work(device::incidence_workspace(docs, 70));
    device::find_incidence(nullptr, terms_there.data(), 70, docs, incidence_work.data(),
                           {offsets.data(), ends.data()});
    device::CurvatureTask task;
    task.shape = shape;
    task.rows = {rows.data(), docs, shape.factors()};
    task.terms = terms_there.data();
    task.count = 70;
    task.incidence = {offsets.data(), ends.data()};
    task.fresh = vector_there.data();  // of no use here
    DeviceArray<double> work(device::curvature_workspace(shape, docs));
    DeviceArray<device::CurvatureState> state(1);
    device::begin_curvature(nullptr, task, vector_there.data(), work.data(), state.data());
    for (int iteration = 0; iteration < 100; ++iteration) {
      device::iterate_curvature(nullptr, task, vector_there.data(), work.data(), state.data());
    }
    ExecutionContext context;
    const double expected =
        largest_curvature(context, shape, view_of(shape, factors), terms, vector, task.tolerance, 100);
    const device::CurvatureState found = state.to_host()[0];
    EXPECT_EQ(found.settled, 1);
    EXPECT_LT(found.iterations, 100);
    // Both stop at the same iteration, where rounding is all that differs.
    EXPECT_NEAR(found.estimate / 4.0, expected, 1e-9 * expected);
    EXPECT_TRUE(all_near(vector_there.to_host(), vector, 1e-8, 0.0));
    DeviceArray<double> step(1);
    device::step_from_curvature(nullptr, state.data(), 0.5, 3.0, step.data());
    EXPECT_NEAR(step.to_host()[0], 0.5 / (expected + 3.0), 1e-9);
  }
}

// As on the CPU: gradients that were all equal do not keep later ones from having a curvature.
TEST_P(CurvatureKernelTest, AVectorWithoutLengthBeginsAnew) {
  const NetworkShape shape = linear_shape(300);
  const std::vector<double> fresh = random_doubles(300, 12);
  device::CurvatureTask task;
  task.shape = shape;
  const auto fresh_there = on_device(fresh);
  task.fresh = fresh_there.data();
  DeviceArray<double> work(device::curvature_workspace(shape, 0));
  DeviceArray<device::CurvatureState> state(1);
  auto vector = on_device(std::vector<double>(300));
  device::begin_curvature(nullptr, task, vector.data(), work.data(), state.data());
  EXPECT_EQ(vector.to_host(), fresh);
  EXPECT_EQ(state.to_host()[0].settled, 0);
  EXPECT_EQ(state.to_host()[0].norm, 1.0);
  EXPECT_EQ(state.to_host()[0].estimate, 0.0);
  // One with a length stays.
  std::vector<double> two(300);
  two[299] = 2.0;
  vector = on_device(two);
  device::begin_curvature(nullptr, task, vector.data(), work.data(), state.data());
  EXPECT_EQ(vector.to_host(), two);
  EXPECT_EQ(state.to_host()[0].norm, 2.0);
}

OLRANK_KERNEL_TESTS(CurvatureKernelTest);

}  // namespace
}  // namespace olrank
