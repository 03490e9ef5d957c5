#include <gtest/gtest.h>

#include "core/error.h"
#include "models/linear/linear_belief.h"
#include "models/modules/built_in_modules.h"
#include "models/neural/ranker_network.h"
#include "tests/core/ops/network_fixture.h"

namespace olrank {
namespace {

constexpr std::int64_t kDocs = 37;

torch::Tensor tensor_of(const std::vector<float>& values, std::int64_t features) {
  return torch::from_blob(const_cast<float*>(values.data()), {std::ssize(values) / features, features},
                          torch::kFloat)
      .clone();
}

std::vector<NetworkSettings> networks() {
  std::vector<NetworkSettings> made;
  for (const Parameterisation parameterisation : {Parameterisation::kNtk, Parameterisation::kStandard}) {
    for (const std::int64_t depth : {2, 3, 4}) {
      NetworkSettings& settings = made.emplace_back();
      settings.width = 32;
      settings.depth = depth;
      settings.parameterisation = parameterisation;
    }
  }
  return made;
}

TEST(ReluRankerTest, ParametersHaveTheNamesAndOrderOfModelFiles) {
  for (const NetworkSettings& settings : networks()) {
    const NetworkShape shape = network_shape(settings, 5);
    const std::vector<float> theta = random_theta(shape, 13);
    ReluRanker module(shape);
    EXPECT_EQ(module.theta(), std::vector<float>(theta.size(), 0.0F));
    module.set_theta(theta);
    EXPECT_EQ(module.theta(), theta);
    const ModelTensors model = network_tensors(settings, shape, theta);
    const auto named = module.named_parameters();
    ASSERT_EQ(named.size(), model.tensors.size());
    for (std::size_t index = 0; index < model.tensors.size(); ++index) {
      EXPECT_EQ(named[index].key(), model.tensors[index].name);
      EXPECT_EQ(named[index].value().sizes(), torch::IntArrayRef(model.tensors[index].shape));
    }
    EXPECT_THROW(module.set_theta(std::span(theta).first(theta.size() - 1)), InvalidArgument);
    EXPECT_EQ(module.theta(), theta);
  }
  EXPECT_THROW(ReluRanker(linear_shape(4)), InvalidArgument);
}

TEST(LinearRankerTest, ScoresAndParametersEqualTheLinearModel) {
  constexpr std::int64_t kFeatures = 20;
  const std::vector<float> features = random_numbers(kDocs * kFeatures, 16);
  const std::vector<float> theta = random_numbers(kFeatures, 17);
  LinearRanker module(kFeatures);
  module.set_theta(theta);
  EXPECT_EQ(module.theta(), theta);
  const auto named = module.named_parameters();
  ASSERT_EQ(named.size(), 1U);
  EXPECT_EQ(named[0].key(), LinearModel(kFeatures).tensors(theta).tensors[0].name);
  EXPECT_EQ(named[0].value().sizes(), torch::IntArrayRef({1, kFeatures}));
  const torch::Tensor scores = module.forward(tensor_of(features, kFeatures)).contiguous();
  ExecutionContext context;
  std::vector<float> expected(kDocs);
  LinearModel(kFeatures).score(context, theta, matrix_of(features, kFeatures), expected);
  for (std::size_t doc = 0; doc < expected.size(); ++doc) {
    double size = 0.0;
    for (std::size_t k = 0; k < theta.size(); ++k)
      size += std::abs(theta[k] * features[doc * theta.size() + k]);
    EXPECT_TRUE(std::abs(scores.data_ptr<float>()[doc] - expected[doc]) <= 1e-6 * size) << doc;
  }
  EXPECT_THROW(module.set_theta(std::vector<float>(3)), InvalidArgument);
}

}  // namespace
}  // namespace olrank
