// Gradients written out by hand against LibTorch's automatic ones, in double.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <vector>

#include "core/ops/pair_training.h"
#include "tests/core/ops/network_fixture.h"

namespace olrank {
namespace {

torch::Tensor tensor_of(const std::vector<float>& values) {
  return torch::from_blob(const_cast<float*>(values.data()), {std::ssize(values)}, torch::kFloat)
      .to(torch::kDouble);
}

/// f(x; θ) of all documents, by LibTorch operations of the same arithmetic.
torch::Tensor scores_of(const NetworkShape& shape, const torch::Tensor& theta, const torch::Tensor& docs) {
  torch::Tensor units = docs;
  for (std::int64_t l = 0; l < shape.depth; ++l) {
    const NetworkLayer layer = shape.layer(l);
    const torch::Tensor weight =
        theta.narrow(0, layer.weight, layer.rows * layer.columns).view({layer.rows, layer.columns});
    torch::Tensor bias;
    if (layer.has_bias()) bias = theta.narrow(0, layer.bias, layer.rows);
    units = torch::linear(units, weight, bias);
    if (l + 1 < shape.depth) units = torch::relu(units);
  }
  return shape.output_scale * units.squeeze(1);
}

void expect_close(const std::vector<double>& actual, const torch::Tensor& expected, double tolerance) {
  const torch::Tensor values = expected.contiguous();
  ASSERT_EQ(std::ssize(actual), values.numel());
  double largest = 0.0;
  for (std::size_t k = 0; k < actual.size(); ++k) {
    largest = std::max(largest, std::abs(values.data_ptr<double>()[k]));
  }
  for (std::size_t k = 0; k < actual.size(); ++k) {
    EXPECT_TRUE(std::abs(actual[k] - values.data_ptr<double>()[k]) <= tolerance * (1.0 + largest)) << k;
  }
}

std::vector<NetworkShape> shapes() {
  return {ntk_shape(20, 32, 2),      ntk_shape(10, 16, 3),     ntk_shape(10, 16, 4),
          standard_shape(20, 33, 2), standard_shape(9, 16, 3), standard_shape(9, 16, 4)};
}

// A unit that is nearer to its kink than float32 resolves may be on for one side and off for the other; at
// these seeds the nearest one is ten times farther.
constexpr double kNearestKink = 2e-6;

TEST(AutogradTest, TangentFactorsEqualAutogradGradients) {
  constexpr std::int64_t kDocs = 12;
  for (const NetworkShape& shape : shapes()) {
    const std::vector<float> theta = random_theta(shape, 101);
    const std::vector<float> features = random_numbers(kDocs * shape.inputs, 102);
    ExecutionContext context;
    std::vector<float> factors(kDocs * shape.factors());
    tangent_factors(context, shape, theta, matrix_of(features, shape.inputs), factors);
    const torch::Tensor docs = tensor_of(features).view({kDocs, shape.inputs});
    for (std::int64_t doc = 0; doc < kDocs; ++doc) {
      ASSERT_GT(slow_score(shape, theta, features.data() + doc * shape.inputs).nearest_kink, kNearestKink);
      const torch::Tensor parameters = tensor_of(theta).requires_grad_(true);
      scores_of(shape, parameters, docs.narrow(0, doc, 1)).sum().backward();
      // Four layers of float32 sums of some 30 terms.
      expect_close(slow_gradient(shape, factors.data() + doc * shape.factors()), parameters.grad(), 1e-5);
    }
  }
}

TEST(AutogradTest, TrainingGradientsEqualAutogradGradients) {
  constexpr std::int64_t kDocs = 150;
  for (const NetworkShape& shape : shapes()) {
    const std::vector<float> theta = random_theta(shape, 103);
    const std::vector<float> centre = random_theta(shape, 104);
    const std::vector<float> features = random_numbers(kDocs * shape.inputs, 105);
    std::vector<PairTerm> terms;
    RngStream draws(test_key(106), 1);
    for (int t = 0; t < 400; ++t) {
      const auto first = static_cast<std::int32_t>(draws.index(kDocs));
      const auto second = static_cast<std::int32_t>((first + 1 + draws.index(kDocs - 1)) % kDocs);
      terms.push_back({first, second, 1.0 + draws.index(3), draws.normal()});
    }
    ExecutionContext context(2);
    std::vector<double> gradient(theta.size());
    const double loss = pair_loss_gradient(context, shape, theta, matrix_of(features, shape.inputs), terms,
                                           {1.0 / 400.0, 0.01, centre}, gradient);

    const torch::Tensor parameters = tensor_of(theta).requires_grad_(true);
    const torch::Tensor scores =
        scores_of(shape, parameters, tensor_of(features).view({kDocs, shape.inputs}));
    torch::Tensor expected = 0.01 * (parameters - tensor_of(centre)).square().sum();
    for (const PairTerm& term : terms) {
      const torch::Tensor z = scores[term.first] - scores[term.second];
      expected = expected - (term.labels * torch::log_sigmoid(z) +
                             (term.weight - term.labels) * torch::log_sigmoid(-z)) /
                                400.0;
    }
    expected.backward();
    EXPECT_NEAR(loss, expected.item<double>(), 1e-5 * (1.0 + std::abs(expected.item<double>())));
    expect_close(gradient, parameters.grad(), 2e-5);
  }
}

}  // namespace
}  // namespace olrank
