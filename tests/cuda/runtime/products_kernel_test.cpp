#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "cuda/runtime/products.h"
#include "cuda/runtime/work.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

using device::MatrixPlaces;
using device::ProductPlans;
using device::Products;
using device::ProductScales;
using device::ProductShape;

OLRANK_KERNEL_TEST_SUITE(ProductsKernelTest);

constexpr double kUntouched = 77.0;

std::int64_t end_of_matrices(const MatrixPlaces& places, const device::StoredSides& sides,
                             std::int64_t batch) {
  return places.offset + (batch - 1) * places.step + sides.rows * places.stride;
}

/// Arrays of a product, and C by the obvious sum in double.
template <class Number>
struct ProductCase {
  ProductShape shape;
  std::vector<Number> a;
  std::vector<Number> b;
  std::vector<Number> c;
  std::vector<double> expected;
  std::vector<double> terms;  // of the sums, without signs

  explicit ProductCase(const ProductShape& of, ProductScales scales = {}) : shape(of) {
    const auto numbers = [](std::int64_t count, std::uint64_t seed) {
      const std::vector<float> drawn = random_numbers(count, seed);
      return std::vector<Number>(drawn.begin(), drawn.end());
    };
    const std::int64_t bias_end =
        shape.bias < 0 ? 0 : shape.bias + (shape.batch - 1) * shape.b.step + shape.columns;
    a = numbers(end_of_matrices(shape.a, sides_of_a(shape), shape.batch), 1);
    b = numbers(std::max(bias_end, end_of_matrices(shape.b, sides_of_b(shape), shape.batch)), 2);
    c.assign(static_cast<std::size_t>(end_of_matrices(shape.c, {shape.rows, shape.columns}, shape.batch)),
             static_cast<Number>(kUntouched));
    expected.assign(c.begin(), c.end());
    terms.resize(c.size());
    for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
      for (std::int64_t i = 0; i < shape.rows; ++i) {
        for (std::int64_t j = 0; j < shape.columns; ++j) sum(scales, batch, i, j);
      }
    }
  }

  void sum(ProductScales scales, std::int64_t batch, std::int64_t i, std::int64_t j) {
    const auto at = [batch](const MatrixPlaces& places, bool transposes, std::int64_t row,
                            std::int64_t column) {
      if (transposes) std::swap(row, column);
      return static_cast<std::size_t>(places.offset + batch * places.step + row * places.stride + column);
    };
    const std::size_t place = at(shape.c, false, i, j);
    double product = 0.0;
    for (std::int64_t k = 0; k < shape.inner; ++k) {
      const double term = double{a[at(shape.a, shape.transposes_a, i, k)]} *
                          double{b[at(shape.b, shape.transposes_b, k, j)]};
      product += term;
      terms[place] += std::abs(term);
    }
    double value = scales.alpha * product + scales.beta * expected[place];
    if (shape.bias >= 0)
      value += double{b[static_cast<std::size_t>(shape.bias + batch * shape.b.step + j)]};
    expected[place] = shape.relu ? std::max(0.0, value) : value;
  }

  std::vector<Number> multiplied(ProductScales scales = {}) const {
    const DeviceArray<Number> left = on_device(a);
    const DeviceArray<Number> right = on_device(b);
    DeviceArray<Number> out = on_device(c);
    ProductPlans plans;
    const device::OwnedStream stream;
    Products products(plans, stream.get());
    products.multiply(shape, left, right, out, scales);
    stream.wait();
    return out.to_host();
  }

  void check(double relative, ProductScales scales = {}) const {
    const std::vector<Number> found = multiplied(scales);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (terms[i] == 0.0) {
        ASSERT_EQ(double{found[i]}, kUntouched) << i;
      } else {
        ASSERT_NEAR(double{found[i]}, expected[i], relative * (terms[i] + std::abs(expected[i]))) << i;
      }
    }
  }
};

ProductShape compact_product(std::int64_t rows, std::int64_t columns, std::int64_t inner,
                             bool transposes_a = false, bool transposes_b = false) {
  ProductShape shape{rows, columns, inner, transposes_a, transposes_b, {}, {}, {}};
  shape.a = {0, sides_of_a(shape).columns, 0};
  shape.b = {0, sides_of_b(shape).columns, 0};
  shape.c = {0, columns, 0};
  return shape;
}

/// Matrices within wider rows, at odd places, and several of them.
ProductShape spread_product(ProductShape shape, std::int64_t batch) {
  shape.a = {3, shape.a.stride + 5, sides_of_a(shape).rows * (shape.a.stride + 5) + 7};
  shape.b = {1, shape.b.stride + 2, sides_of_b(shape).rows * (shape.b.stride + 2) + 1};
  shape.c = {2, shape.c.stride + 4, shape.rows * (shape.c.stride + 4) + 3};
  shape.batch = batch;
  return shape;
}

// Rounding of a float sum of K products stays below K/2 · 2⁻²⁴ of its terms when it is a random walk.
constexpr double kFloatError = 4e-6;
constexpr double kDoubleError = 1e-14;

TEST_P(ProductsKernelTest, MatchesTheSumInAnyLayout) {
  for (const bool transposes_a : {false, true}) {
    for (const bool transposes_b : {false, true}) {
      for (const auto& [rows, columns, inner] :
           {std::array<std::int64_t, 3>{1, 1, 1}, {33, 17, 31}, {64, 32, 128}, {5, 136, 100}}) {
        const ProductShape shape = compact_product(rows, columns, inner, transposes_a, transposes_b);
        ProductCase<float>(shape).check(kFloatError);
        ProductCase<float>(spread_product(shape, 3)).check(kFloatError);
        ProductCase<double>(shape).check(kDoubleError);
        ProductCase<double>(spread_product(shape, 2)).check(kDoubleError);
      }
    }
  }
}

TEST_P(ProductsKernelTest, AddsBiasesAndCutsOffBelowZero) {
  for (const bool relu : {false, true}) {
    for (const std::int64_t bias : {std::int64_t{-1}, std::int64_t{40 * 24}}) {
      ProductShape shape = compact_product(50, 24, 40, false, true);
      shape.relu = relu;
      shape.bias = bias;
      shape.b.step = 41 * 24;  // biases follow weights
      shape.c.step = 50 * 24;
      shape.batch = 3;  // of one A
      ProductCase<float>(shape).check(kFloatError);
    }
  }
}

TEST_P(ProductsKernelTest, ScalesAndAdds) {
  const ProductScales scales{-0.5, 2.0};
  ProductCase<double>(compact_product(20, 30, 40), scales).check(kDoubleError, scales);
  ProductCase<float>(compact_product(20, 30, 40), scales).check(kFloatError, scales);
}

TEST_P(ProductsKernelTest, DoesNotReadAResultThatItReplaces) {
  ProductCase<float> one(compact_product(20, 30, 40));
  const std::vector<float> expected = one.multiplied();
  std::fill(one.c.begin(), one.c.end(), std::nanf(""));
  EXPECT_EQ(one.multiplied(), expected);
}

TEST_P(ProductsKernelTest, ABatchHasTheBitsOfItsMembers) {
  ProductShape shape = spread_product(compact_product(70, 40, 90, true, false), 4);
  shape.relu = true;
  const ProductCase<float> together(shape);
  const std::vector<float> found = together.multiplied();
  ProductCase<float> alone = together;
  alone.shape.batch = 1;
  for (std::int64_t member = 0; member < shape.batch; ++member) {
    alone.shape.a.offset = shape.a.offset + member * shape.a.step;
    alone.shape.b.offset = shape.b.offset + member * shape.b.step;
    alone.shape.c.offset = shape.c.offset + member * shape.c.step;
    alone.c = alone.multiplied();
  }
  EXPECT_EQ(alone.c, found);
}

TEST_P(ProductsKernelTest, NothingIsComputedOfEmptyMatrices) {
  for (const ProductShape& shape : {compact_product(0, 3, 4), compact_product(3, 0, 4)}) {
    ProductPlans plans;
    const device::OwnedStream stream;
    Products products(plans, stream.get());
    products.multiply(shape, static_cast<const float*>(nullptr), nullptr, nullptr);
    stream.wait();
  }
}

TEST_P(ProductsKernelTest, IsRecordedOnceItWasComputed) {
  const ProductCase<float> one(compact_product(20, 30, 40));
  const std::vector<float> expected = one.multiplied();
  const DeviceArray<float> a = on_device(one.a);
  const DeviceArray<float> b = on_device(one.b);
  DeviceArray<float> c = on_device(one.c);
  ProductPlans plans;
  const device::OwnedStream stream;
  Products products(plans, stream.get());
  const auto work = [&] { products.multiply(one.shape, a.data(), b.data(), c.data()); };
  EXPECT_ANY_THROW(device::Graph(stream.get(), work));
  work();
  stream.wait();
  device::copy_to_device(std::span<const float>(one.c), c.data());
  const device::Graph graph(stream.get(), work);
  EXPECT_EQ(c.to_host(), one.c);
  graph.start(stream.get());
  stream.wait();
  EXPECT_EQ(c.to_host(), expected);
}

TEST(ProductShapeTest, SizesOfABucketShareAnAlgorithm) {
  const auto bucket = [](const ProductShape& shape) { return device::bucket_of(shape, sizeof(float)); };
  EXPECT_TRUE(bucket(compact_product(121, 100, 136)) == bucket(compact_product(128, 100, 136)));
  EXPECT_FALSE(bucket(compact_product(120, 100, 136)) == bucket(compact_product(121, 100, 136)));
  EXPECT_EQ(bucket(compact_product(16, 100, 136)).rows, 16);
  EXPECT_EQ(bucket(compact_product(17, 100, 136)).rows, 18);
  EXPECT_EQ(bucket(compact_product(8193, 100, 136)).rows, 9216);
  EXPECT_EQ(bucket(compact_product(8192, 100, 136)).columns, 104);
  // Neither a batch nor the place of its matrices matters, but their alignment does.
  ProductShape batch = compact_product(128, 100, 136);
  batch.batch = 10;
  batch.c.step = 128 * 100;
  batch.a.stride = 240;
  EXPECT_TRUE(bucket(batch) == bucket(compact_product(128, 100, 136)));
  batch.a.stride = 241;
  EXPECT_FALSE(bucket(batch) == bucket(compact_product(128, 100, 136)));
}

TEST(ProductShapeTest, ABucketIsAlignedLikeItsShapes) {
  for (const std::int64_t offset : {0, 1, 2, 3, 4, 6, 8}) {
    for (const std::int64_t stride : {136, 137, 138, 140}) {
      ProductShape shape = compact_product(50, 100, 136, false, true);
      shape.a = {offset, stride, 0};
      shape.b = {0, stride, 2 * offset};
      shape.bias = offset;
      const ProductShape bucket = device::bucket_of(shape, sizeof(float));
      EXPECT_EQ(alignment_of(bucket.a, sizeof(float)), alignment_of(shape.a, sizeof(float)));
      EXPECT_EQ(alignment_of(bucket.b, sizeof(float)), alignment_of(shape.b, sizeof(float)));
      EXPECT_EQ(bias_alignment_of(bucket, sizeof(float)), bias_alignment_of(shape, sizeof(float)));
      EXPECT_NO_THROW(check_product(bucket));
    }
  }
  EXPECT_EQ(device::alignment_of({0, 136, 0}, sizeof(float)), 16);
  EXPECT_EQ(device::alignment_of({2, 136, 0}, sizeof(float)), 8);
  EXPECT_EQ(device::alignment_of({0, 136, 13'703}, sizeof(float)), 4);
  EXPECT_EQ(device::alignment_of({1, 136, 0}, sizeof(double)), 8);
}

TEST(ProductShapeTest, RefusesRowsThatOverlapAndEmptySums) {
  ProductShape shape = compact_product(8, 8, 8);
  EXPECT_NO_THROW(check_product(shape));
  shape.b.stride = 7;
  EXPECT_THROW(check_product(shape), std::logic_error);
  EXPECT_THROW(check_product(compact_product(8, 8, 0)), std::logic_error);
  EXPECT_THROW(check_product(compact_product(-1, 8, 8)), std::logic_error);
  shape = compact_product(8, 8, 8);
  shape.batch = 2;
  EXPECT_THROW(check_product(shape), std::logic_error);
}

}  // namespace
}  // namespace olrank
