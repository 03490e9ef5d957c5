#include "cuda/ops/gradient_products.h"

#include <algorithm>

#include "core/ops/gradient_products.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

class GradientProductsKernelTest : public KernelTest {};

template <class Shape>
void expect_equal_sums(const Shape& shape, std::int64_t docs) {
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
  std::vector<double> expected(docs);
  gradient_products(context, shape, view_of(shape, factors), v, expected);
  // Sums of up to 2,000 products of numbers below 100, in double.
  EXPECT_TRUE(all_near(products.to_host(), expected, 1e-10, 1e-12)) << p << " " << docs;
  std::vector<double> expected_sum(p);
  gradient_sum(context, shape, view_of(shape, factors), weights, expected_sum);
  EXPECT_TRUE(all_near(sum.to_host(), expected_sum, 1e-10, 1e-12)) << p << " " << docs;

  const auto skip = on_device(std::vector<std::int32_t>{1});
  auto untouched = on_device(expected_sum);
  device::gradient_sum(nullptr, shape, view, weights_there.data(), work.data(), untouched.data(),
                       skip.data());
  EXPECT_EQ(untouched.to_host(), expected_sum);
}

TEST_P(GradientProductsKernelTest, ProductsAndSumsMatchCpu) {
  for (const NetworkShape& shape : test_shapes()) expect_equal_sums(shape, 19);
  for (const std::int64_t docs : {0, 1, 31, 64, 65, 200}) expect_equal_sums(ntk_shape(5, 6, 2), docs);
  expect_equal_sums(standard_shape(70, 66, 3), 20);
}

OLRANK_KERNEL_TESTS(GradientProductsKernelTest);

}  // namespace
}  // namespace olrank
