// Training's products in TF32: factors rounded or cut off, or nothing, as the library likes; nothing else.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "core/random/rng_stream.h"
#include "cuda/ops/pair_training.h"
#include "cuda/ops/tangent_factors.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

#if defined(OLRANK_KERNELS_EMULATED)

using emulation::Tf32;

class Tf32KernelTest : public testing::TestWithParam<std::tuple<emulation::Schedule, Tf32>> {
 protected:
  void SetUp() override {
    emulation::forget_everything();
    emulation::set_schedule(std::get<0>(GetParam()));
    emulation::set_tf32(std::get<1>(GetParam()));
  }
  void TearDown() override { emulation::set_tf32(Tf32::kRounds); }
};

#define OLRANK_TF32_TESTS(name)                       \
  INSTANTIATE_TEST_SUITE_P(                           \
      Emulated, name,                                 \
      testing::Combine(testing::ValuesIn(kSchedules), \
                       testing::Values(Tf32::kRounds, Tf32::kTruncates, Tf32::kIgnores)))

#else

class Tf32KernelTest : public KernelTest {};

#define OLRANK_TF32_TESTS(name) OLRANK_KERNEL_TESTS(name)

#endif

/// By what a product of two factors may be off: cut off, each loses up to 2⁻¹⁰ of itself.
double of_library() {
#if defined(OLRANK_KERNELS_EMULATED)
  if (emulation::tf32() == Tf32::kRounds) return 0.0;
#endif
  return 2e-3;
}

/// −1, 0 and 1: their products and sums are whole numbers that TF32 holds.
std::vector<float> signs(std::int64_t count, std::uint64_t seed) {
  RngStream draws(test_key(seed), 3);
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(draws.index(3)) - 1.0F);
  return values;
}

struct Passed {
  std::vector<float> rows;
  std::vector<float> scores;
};

Passed pass(const NetworkShape& shape, const std::vector<float>& features, const std::vector<float>& theta,
            std::int64_t members, Precision precision) {
  const auto docs = std::ssize(features) / shape.inputs;
  const DeviceArray<float> features_there = on_device(features);
  const DeviceArray<float> theta_there = on_device(theta);
  DeviceArray<float> rows = unset_on_device<float>(members * docs * shape.factors());
  DeviceArray<float> scores(members * docs);
  DefaultProducts on;
  device::tangent_factors(on.products, {shape, theta_there.data(), members, 0, precision},
                          features_there.data(), {rows.data(), docs, shape.factors()},
                          {scores.data(), nullptr});
  return {rows.to_host(), scores.to_host()};
}

// Widths are squares, so that √m is a whole number too. Inputs of 16 and 136 move four by four, of 19 one
// by one; a layer takes one tile or several, with and without room left in it.
TEST_P(Tf32KernelTest, MatchesFloat32WhenNothingNeedsRounding) {
  struct Case {
    NetworkShape shape;
    std::int64_t docs;
    std::int64_t members = 1;
  };
  const Case cases[] = {{ntk_shape(19, 16, 3), 33},     {ntk_shape(16, 16, 3), 70, 3},
                        {ntk_shape(136, 64, 2), 130},   {ntk_shape(20, 144, 2), 40, 2},
                        {standard_shape(12, 36, 2), 1}, {ntk_shape(4, 4, 2), 600}};
  for (const Case& one : cases) {
    const std::vector<float> features = signs(one.docs * one.shape.inputs, 5);
    const std::vector<float> theta = signs(one.members * one.shape.parameters(), 6);
    const Passed expected = pass(one.shape, features, theta, one.members, Precision::kFloat32);
    const Passed found = pass(one.shape, features, theta, one.members, Precision::kTf32);
    EXPECT_GT(*std::max_element(expected.scores.begin(), expected.scores.end()), 0.0F);
    EXPECT_EQ(found.rows, expected.rows) << one.shape.inputs;
    EXPECT_EQ(found.scores, expected.scores) << one.shape.inputs;
  }
}

/// To 11 bits, ties away from zero.
double rounded(float value) {
  int exponent = 0;
  const double fraction = std::frexp(double{value}, &exponent);
  return std::ldexp(std::round(std::ldexp(fraction, 11)), exponent - 11);
}

TEST_P(Tf32KernelTest, FactorsAreRoundedToNearest) {
  const NetworkShape shape = ntk_shape(37, 34, 2);
  constexpr std::int64_t kDocs = 50;
  std::vector<float> features = random_numbers(kDocs * shape.inputs, 7);
  features[0] = 1.0F + std::ldexp(1.0F, -11);  // a tie
  features[1] = -features[0];
  const std::vector<float> theta = random_theta(shape, 8);
  const Passed found = pass(shape, features, theta, 1, Precision::kTf32);
  const std::int64_t place = shape.layer(1).input;
  double largest_rounding = 0.0;
  for (std::int64_t doc = 0; doc < kDocs; ++doc) {
    for (std::int64_t unit = 0; unit < shape.width; ++unit) {
      double expected = 0.0;
      double exact = 0.0;
      double terms = 0.0;
      for (std::int64_t k = 0; k < shape.inputs; ++k) {
        const float x = features[doc * shape.inputs + k];
        const float w = theta[unit * shape.inputs + k];
        expected += rounded(x) * rounded(w);
        exact += double{x} * double{w};
        terms += std::abs(double{x} * double{w});
      }
      const double unit_found{found.rows[doc * shape.factors() + place + unit]};
      // 37 products are added in float32, in whatever way a tensor core does it.
      ASSERT_NEAR(unit_found, std::max(0.0, expected), (4e-6 + of_library()) * terms) << doc << " " << unit;
      largest_rounding = std::max(largest_rounding, std::abs(std::max(0.0, exact) - unit_found) / terms);
    }
  }
  // Rounding shows: half a unit of the 11th bit is 2^-12 of a factor.
  if (tf32_rounds()) {
    EXPECT_GT(largest_rounding, 5e-5);
  }
  EXPECT_LT(largest_rounding, 5e-4 + of_library());
}

// A unit that is no number is never positive; an infinite one is. Whether a library's ReLU makes 0 of NaN,
// as our kernel does, is its own affair.
TEST_P(Tf32KernelTest, NonFiniteNumbersStayNonFinite) {
  const NetworkShape shape = ntk_shape(8, 16, 2);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> features = random_numbers(3 * shape.inputs, 9);
    features[static_cast<std::size_t>(shape.inputs) + 2] = bad;
    const std::vector<float> theta = random_theta(shape, 8);
    const Passed expected = pass(shape, features, theta, 1, Precision::kFloat32);
    const Passed found = pass(shape, features, theta, 1, Precision::kTf32);
    std::int64_t infinite = 0;
    for (std::int64_t doc = 0; doc < 3; ++doc) {
      for (std::int64_t unit = 0; unit < shape.width; ++unit) {
        const auto at = static_cast<std::size_t>(doc * shape.factors() + shape.layer(1).input + unit);
        EXPECT_EQ(std::isinf(found.rows[at]), std::isinf(expected.rows[at])) << doc << " " << unit;
        if (doc != 1) {  // which has the bad feature
          EXPECT_TRUE(std::isfinite(found.rows[at])) << doc << " " << unit;
        }
        EXPECT_EQ(found.rows[at] > 0.0F, expected.rows[at] > 0.0F) << doc << " " << unit;
        infinite += std::isinf(found.rows[at]) ? 1 : 0;
      }
    }
    EXPECT_EQ(infinite > 0, std::isinf(bad));
  }
}

/// A gradient of a small history, and what it is made of.
struct Gradients {
  NetworkShape shape;
  std::int64_t docs;
  std::int64_t all_members;
  std::vector<float> features = random_numbers(docs * shape.inputs, 63);
  std::vector<PairTerm> terms;
  DeviceArray<float> features_there;
  DeviceArray<PairTerm> terms_there;
  DeviceArray<std::int32_t> offsets;
  DeviceArray<std::int32_t> ends;
  DeviceArray<float> theta;
  std::vector<float> rows_left;  // by the latest pass

  Gradients(const NetworkShape& of, std::int64_t doc_count, std::int64_t members)
      : shape(of), docs(doc_count), all_members(members) {
    RngStream draws(test_key(4), 2);
    const auto n = static_cast<std::uint32_t>(docs);
    for (std::uint32_t t = 0; t < 2 * n; ++t) {
      const std::uint32_t first = draws.index(n);
      terms.push_back({static_cast<std::int32_t>(first),
                       static_cast<std::int32_t>((first + 1 + draws.index(n - 1)) % n), 1.0,
                       draws.index(2) == 0 ? 0.0 : 1.0});
    }
    features_there = on_device(features);
    terms_there = on_device(terms);
    std::vector<float> numbers = stacked_theta(shape, members, 61);
    for (float& number : numbers) number *= 0.1F;  // scores near 1, so that slopes are not steep
    theta = on_device(numbers);
    const auto count = std::ssize(terms);
    offsets = DeviceArray<std::int32_t>(docs + 1);
    ends = DeviceArray<std::int32_t>(2 * count);
    DeviceArray<std::int32_t> workspace(device::incidence_workspace(docs, count));
    device::find_incidence(nullptr, terms_there.data(), count, docs, workspace.data(),
                           {offsets.data(), ends.data()});
    offsets.to_host();  // waits: the workspace goes
  }

  std::vector<double> of(std::int64_t first, std::int64_t members, Precision precision) {
    const auto count = std::ssize(terms);
    const device::TrainingSizes sizes = device::training_sizes(shape, all_members, docs, count);
    DeviceArray<float> rows = unset_on_device<float>(sizes.rows);
    DeviceArray<float> scores(sizes.scores);
    DeviceArray<float> partial(sizes.partial);
    DeviceArray<double> losses(sizes.losses);
    DeviceArray<double> gradient(members * shape.parameters());
    const device::TrainingWorkspace work{rows.data(), scores.data(), partial.data(), losses.data()};
    const device::PairHistoryView view{
        features_there.data(), docs, terms_there.data(), count, {offsets.data(), ends.data()}};
    const device::NetworkStack stack{shape, theta.data() + first * shape.parameters(), members, all_members,
                                     precision};
    DefaultProducts on;
    device::forward_history(on.products, stack, view, work);
    device::pair_gradients(on.products, stack, view, {}, work, {gradient.data()});
    rows_left = rows.to_host();
    return gradient.to_host();
  }
};

// Each layer's is the sum over the documents of rounded δ times rounded input.
TEST_P(Tf32KernelTest, GradientsMatchSumsOfRoundedFactors) {
  for (const NetworkShape& shape : {ntk_shape(24, 40, 2), ntk_shape(11, 20, 3)}) {
    Gradients gradients(shape, 600, 1);
    const auto found = gradients.of(0, 1, Precision::kTf32);
    const std::vector<float>& rows = gradients.rows_left;
    const std::int64_t stride = device::training_row_stride(shape);
    for (std::int64_t l = 0; l + 1 < shape.depth; ++l) {
      const NetworkLayer layer = shape.layer(l);
      for (std::int64_t unit = 0; unit < layer.rows; ++unit) {
        for (std::int64_t column = 0; column < layer.columns; ++column) {
          double expected = 0.0;
          double terms = 0.0;
          for (std::int64_t doc = 0; doc < gradients.docs; ++doc) {
            const float delta = rows[doc * stride + layer.delta + unit];
            const float input = l == 0 ? gradients.features[doc * shape.inputs + column]
                                       : rows[doc * stride + layer.input + column];
            expected += rounded(delta) * rounded(input);
            terms += std::abs(double{delta} * double{input});
          }
          const auto at = static_cast<std::size_t>(layer.weight + unit * layer.columns + column);
          ASSERT_NEAR(found[at], expected, (1e-5 + of_library()) * terms)
              << l << " " << unit << " " << column;
        }
      }
    }
  }
}

TEST_P(Tf32KernelTest, GradientsAreCloseToFloat32) {
  for (const NetworkShape& shape :
       {ntk_shape(136, 100, 2), ntk_shape(11, 20, 3), standard_shape(12, 24, 4)}) {
    Gradients gradients(shape, 130, 2);
    const auto expected = gradients.of(0, 2, Precision::kFloat32);
    const auto found = gradients.of(0, 2, Precision::kTf32);
    double error = 0.0;
    double length = 0.0;
    for (std::size_t k = 0; k < expected.size(); ++k) {
      error += (found[k] - expected[k]) * (found[k] - expected[k]);
      length += expected[k] * expected[k];
    }
    // Factors are off by up to 2^-12, sums of many of them by less, and of some thousand units one or two
    // lie so near 0 that they turn.
    EXPECT_LT(std::sqrt(error / length), 0.05) << shape.depth;
    if (tf32_rounds()) {
      EXPECT_GT(std::sqrt(error / length), 1e-5) << shape.depth;
    }
  }
}

TEST_P(Tf32KernelTest, AMemberHasTheSameBitsInAnyStack) {
  constexpr std::int64_t kMembers = 3;
  const NetworkShape shape = ntk_shape(40, 36, 3);
  Gradients gradients(shape, 200, kMembers);
  const auto together = gradients.of(0, kMembers, Precision::kTf32);
  for (const std::int64_t member : {0, 2}) {
    EXPECT_TRUE(gradients.of(member, 1, Precision::kTf32) ==
                part_of(together, member * shape.parameters(), shape.parameters()))
        << member;
  }
}

OLRANK_TF32_TESTS(Tf32KernelTest);

}  // namespace
}  // namespace olrank
