#include "cuda/ops/largest_curvature.h"

#include <algorithm>
#include <cmath>

#include "core/ops/largest_curvature.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

class LargestCurvatureKernelTest : public KernelTest {};

TEST_P(LargestCurvatureKernelTest, MatchesCpu) {
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
    std::vector<double> vector(p);
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
    task.fresh = vector_there.data();  // not read: the vector has a length
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
    for (const double growth : {1.0, 1.04}) {
      device::step_from_curvature(nullptr, state.data(), growth, 0.5, 3.0, step.data());
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

OLRANK_KERNEL_TESTS(LargestCurvatureKernelTest);

}  // namespace
}  // namespace olrank
