#include "models/export/export_format.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "models/files/model_scorer.h"
#include "tests/core/ops/network_fixture.h"

namespace olrank {
namespace {

constexpr std::int64_t kFeatures = 4;

LoadedModel model_of(const NetworkShape& shape, int members, Normalisation kind, bool drop_a_feature) {
  LoadedModel model;
  model.settings.network = shape.depth == 1 ? NetworkForm::kLinear : NetworkForm::kMlp;
  model.settings.parameterisation = shape.biases ? Parameterisation::kStandard : Parameterisation::kNtk;
  model.settings.depth = shape.depth;
  model.settings.width = shape.width;
  model.shape = shape;
  for (int member = 0; member < members; ++member)
    model.members.push_back(random_theta(shape, 10 + static_cast<std::uint64_t>(member)));
  model.normaliser.kind = kind;
  model.normaliser.features = kFeatures;
  if (drop_a_feature) model.normaliser.kept = {0, 2, 3};
  model.normaliser.means = {0.5, 1.0, -2.0, 3.0};
  model.normaliser.scales = {2.0, 0.0, 0.25, 1.0 / 3.0};
  model.metadata = {{"seed", "3"}};
  if (members > 1) model.metadata.emplace_back("members", std::to_string(members));
  return model;
}

LoadedModel additive_model(int members, Normalisation kind, bool drop_a_feature) {
  LoadedModel model = model_of(linear_shape(drop_a_feature ? 12 : 16), members, kind, drop_a_feature);
  model.normaliser.cosines = 3;
  return model;
}

LoadedModel model_with_products(int members, Normalisation kind) {
  LoadedModel model = model_of(linear_shape(18), members, kind, false);
  model.normaliser.cosines = 3;
  model.normaliser.products = {{3, 0}, {1, 1}};
  return model;
}

/// Negative, tiny and constant values.
std::vector<float> raw_docs(std::int64_t docs) {
  RngStream rng(test_key(7), 0);
  std::vector<float> values;
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    for (const double value : {rng.normal(), 1e-9 * rng.uniform(), 100.0 * rng.normal(), 2.5})
      values.push_back(static_cast<float>(value));
  }
  return values;
}

torch::jit::Module loaded(const LoadedModel& model, torch::jit::ExtraFilesMap& extra) {
  std::istringstream bytes(torch_script_of(model));
  return torch::jit::load(bytes, torch::kCPU, extra);
}

/// Both sides compute in double from the same floats, in orders of their own: a few roundings of 1.1e-16 in
/// each of at most 6 sums of at most 6 terms, or one of 16. Cosines that differ by 5e-15 are the same
/// floats, but for those near 0.
constexpr double kTolerance = 1e-13;

void expect_scores_of_the_program(const LoadedModel& model, std::int64_t docs) {
  torch::jit::ExtraFilesMap extra{{"olrank.json", ""}};
  torch::jit::Module module = loaded(model, extra);
  std::vector<float> raw = raw_docs(docs);
  const torch::Tensor scores =
      module.forward({torch::from_blob(raw.data(), {docs, kFeatures}, torch::kFloat)}).toTensor();
  ASSERT_EQ(scores.dtype(), torch::kDouble);
  ASSERT_EQ(scores.sizes(), torch::IntArrayRef({docs}));
  const ModelScorer scorer(model);
  std::vector<double> expected(docs);
  const std::vector<std::int64_t> offsets = {0, docs};
  ExecutionContext context;
  scorer.score(context.scratch(0), {raw.data(), docs, kFeatures}, offsets, expected);
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const double got = scores[doc].item<double>();
    EXPECT_TRUE(std::abs(got - expected[doc]) <= kTolerance * std::max(1.0, std::abs(expected[doc])))
        << doc << ": " << got << " and " << expected[doc];
  }
  EXPECT_EQ(nlohmann::json::parse(extra["olrank.json"])["seed"], "3");
}

TEST(TorchScript, GivesTheProgramsScoresForEveryModelAndNormalisation) {
  for (const bool drop : {false, true}) {
    const std::int64_t inputs = drop ? 3 : 4;
    for (const NetworkShape& shape : {linear_shape(inputs), ntk_shape(inputs, 6, 2),
                                      ntk_shape(inputs, 4, 3), standard_shape(inputs, 5, 2)}) {
      for (const Normalisation kind : {Normalisation::kNone, Normalisation::kQueryMinmax,
                                       Normalisation::kZscore, Normalisation::kLog1pZscore}) {
        SCOPED_TRACE(
            fmt::format("depth {}, normalisation {}, dropped {}", shape.depth, name_of(kind), drop));
        for (const std::int64_t docs : {0, 7})
          expect_scores_of_the_program(model_of(shape, 1, kind, drop), docs);
      }
    }
  }
}

TEST(TorchScript, GivesTheProgramsScoresForAdditiveModels) {
  for (const bool drop : {false, true}) {
    for (const Normalisation kind : {Normalisation::kNone, Normalisation::kQueryMinmax,
                                     Normalisation::kZscore, Normalisation::kLog1pZscore}) {
      SCOPED_TRACE(fmt::format("normalisation {}, dropped {}", name_of(kind), drop));
      for (const std::int64_t docs : {0, 1, 7})
        expect_scores_of_the_program(additive_model(1, kind, drop), docs);
    }
  }
}

TEST(TorchScript, TakesTheMeanOfAnEnsemble) {
  expect_scores_of_the_program(additive_model(2, Normalisation::kZscore, true), 5);
  expect_scores_of_the_program(model_with_products(2, Normalisation::kZscore), 5);
  expect_scores_of_the_program(model_of(ntk_shape(4, 6, 2), 3, Normalisation::kQueryMinmax, false), 5);
  expect_scores_of_the_program(model_of(linear_shape(4), 2, Normalisation::kNone, false), 1);
}

TEST(TorchScript, ParametersHaveTheNamesOfModelFiles) {
  for (const LoadedModel& model : {model_of(standard_shape(4, 5, 2), 1, Normalisation::kZscore, false),
                                   model_of(standard_shape(4, 5, 2), 2, Normalisation::kZscore, false),
                                   additive_model(1, Normalisation::kZscore, false)}) {
    torch::jit::ExtraFilesMap extra;
    const torch::jit::Module module = loaded(model, extra);
    std::vector<std::string> names;
    for (const auto& parameter : module.named_parameters()) names.push_back(parameter.name);
    std::vector<std::string> expected;
    for (const auto& tensor : tensors_of(model)) expected.push_back(tensor.name);
    std::sort(names.begin(), names.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(names, expected);
  }
}

TEST(TorchScript, GivesTheSameBytesAgain) {
  const LoadedModel model = model_of(ntk_shape(4, 6, 2), 2, Normalisation::kLog1pZscore, true);
  EXPECT_EQ(torch_script_of(model), torch_script_of(model));
}

}  // namespace
}  // namespace olrank
