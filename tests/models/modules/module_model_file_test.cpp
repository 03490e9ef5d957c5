#include <gtest/gtest.h>

#include <fmt/format.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/text/message_text.h"
#include "models/export/export_format.h"
#include "models/files/model_scorer.h"
#include "models/modules/built_in_modules.h"
#include "models/neural/ranker_network.h"
#include "models/ranker_factory.h"
#include "models/skeleton/belief.h"
#include "tests/core/ops/network_fixture.h"
#include "tests/models/modules/module_fixture.h"
#include "tests/models/small_world.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

// Model files of modules: what they hold, whether they load, and their exports.

constexpr std::int64_t kInputs = 5;

NetworkSettings module_settings(const std::string& module, Parameterisation parameterisation,
                                Activation activation = Activation::kGelu) {
  return {.network = NetworkForm::kModule,
          .module = module,
          .activation = activation,
          .width = 6,
          .depth = 3,
          .parameterisation = parameterisation};
}

/// A trained model's file: parameters near the first ones.
std::string file_of(const NetworkSettings& settings, int members = 1,
                    Normalisation kind = Normalisation::kNone) {
  const auto model = make_module_model(settings, kInputs);
  std::vector<std::vector<float>> thetas;
  for (int member = 0; member < members; ++member)
    thetas.push_back(moved_parameters(*model, 5 + static_cast<std::uint64_t>(member)));
  ModelTensors tensors = members == 1 ? model->tensors(thetas.front()) : ensemble_tensors(*model, thetas);
  tensors.architecture.emplace_back(
      "normalisation", fmt::format(R"({{"kind":"{}","features":{}}})", name_of(kind), kInputs));
  return plain_file_of(tensors);
}

LoadedModel read(const std::string& bytes) {
  return parse_model(bytes, "a.safetensors", ModelCode::kTrust);
}

std::vector<double> scores_of(const LoadedModel& model, const std::vector<float>& raw) {
  const FeatureMatrix docs = matrix_of(raw, model.normaliser.features);
  std::vector<double> scores(docs.docs);
  const std::vector<std::int64_t> offsets = {0, docs.docs};
  ExecutionContext context;
  ModelScorer(model).score(context.scratch(0), docs, offsets, scores);
  return scores;
}

/// The mean of what the members' modules score, from θ as it was written.
std::vector<double> expected_scores(const NetworkSettings& settings, const LoadedModel& loaded,
                                    const std::vector<float>& raw) {
  const std::int64_t docs = std::ssize(raw) / kInputs;
  std::vector<float> inputs(raw.size());
  loaded.normaliser.apply({raw.data(), docs, kInputs}, inputs.data());
  const auto model = make_module_model(settings, kInputs);
  ExecutionContext context;
  std::vector<double> means(docs);
  for (std::size_t member = 0; member < loaded.members.size(); ++member) {
    const std::vector<float> theta = moved_parameters(*model, 5 + member);
    std::vector<float> scores(docs);
    model->score(context, theta, {inputs.data(), docs, kInputs}, scores);
    for (std::int64_t doc = 0; doc < docs; ++doc)
      means[doc] += double{scores[doc]} / static_cast<double>(loaded.members.size());
  }
  return means;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t doc = 0; doc < got.size(); ++doc) {
    EXPECT_TRUE(std::abs(got[doc] - expected[doc]) <= tolerance * std::max(1.0, std::abs(expected[doc])))
        << doc << ": " << got[doc] << " and " << expected[doc];
  }
}

torch::jit::Module script_of(const LoadedModel& model, torch::jit::ExtraFilesMap& extra) {
  std::istringstream bytes(torch_script_of(model));
  return torch::jit::load(bytes, torch::kCPU, extra);
}

/// TorchScript's scores, from the archive that is exported.
std::vector<double> script_scores(const LoadedModel& model, std::vector<float> raw) {
  const std::int64_t docs = std::ssize(raw) / model.normaliser.features;
  torch::jit::ExtraFilesMap extra{{"olrank.json", ""}};
  const torch::Tensor scores =
      script_of(model, extra)
          .forward({torch::from_blob(raw.data(), {docs, model.normaliser.features}, torch::kFloat)})
          .toTensor()
          .contiguous();
  EXPECT_EQ(scores.scalar_type(), torch::kDouble);
  EXPECT_EQ(scores.sizes(), torch::IntArrayRef({docs}));
  EXPECT_FALSE(scores.requires_grad());
  const auto metadata = nlohmann::json::parse(extra["olrank.json"]);
  for (const auto& [key, value] : model.metadata)
    EXPECT_TRUE(key == "torchscript" || metadata[key] == value) << key;
  return {scores.data_ptr<double>(), scores.data_ptr<double>() + scores.numel()};
}

class ModuleModelFileTest : public testing::Test {
 protected:
  void SetUp() override { write_script(script_, kInputs); }

  void expect_refusal(const std::string& bytes, const std::string& part) {
    const std::string message = message_of<DataError>([&] { read(bytes); });
    EXPECT_TRUE(contains(message, part));
    EXPECT_FALSE(contains(message, "\n"));
  }

  std::vector<NetworkSettings> all_settings() const {
    std::vector<NetworkSettings> all;
    for (const std::string module : {"relu", "residual", "layernorm", "attention"}) {
      for (const auto form : {Parameterisation::kNtk, Parameterisation::kStandard})
        all.push_back(module_settings(module, form));
    }
    for (const auto activation : {Activation::kRelu, Activation::kSilu, Activation::kTanh})
      all.push_back(module_settings("residual", Parameterisation::kStandard, activation));
    all.push_back(module_settings(script_.string(), Parameterisation::kStandard));
    return all;
  }

  TemporaryFolder folder_;
  std::filesystem::path script_ = folder_ / "scorer.pt";
  std::vector<float> raw_ = random_numbers(9 * kInputs, 3, 2.0);
};

TEST_F(ModuleModelFileTest, EveryModuleReadsBackAndScores) {
  for (const NetworkSettings& settings : all_settings()) {
    for (const int members : {1, 3}) {
      SCOPED_TRACE(fmt::format("{}, {} members", settings.module, members));
      const LoadedModel loaded = read(file_of(settings, members, Normalisation::kQueryMinmax));
      ASSERT_EQ(std::ssize(loaded.members), members);
      EXPECT_EQ(loaded.settings.module, settings.module);
      EXPECT_EQ(loaded.shape.inputs, kInputs);
      // Scores of rankers are rounded to float32 once.
      expect_near(scores_of(loaded, raw_), expected_scores(settings, loaded, raw_), 1e-7);
      EXPECT_EQ(read(safetensors_of(loaded)).members, loaded.members);
    }
  }
}

TEST_F(ModuleModelFileTest, TorchScriptExportsScoreAlike) {
  for (const NetworkSettings& settings : all_settings()) {
    for (const int members : {1, 2}) {
      SCOPED_TRACE(fmt::format("{}, {} members", settings.module, members));
      const LoadedModel loaded = read(file_of(settings, members, Normalisation::kQueryMinmax));
      expect_near(script_scores(loaded, raw_), scores_of(loaded, raw_), 1e-12);
      // A state_dict's tensors have the names of the module's own parameters.
      EXPECT_FALSE(exported(loaded, ExportFormat::kPt, "model").empty());
    }
  }
}

TEST_F(ModuleModelFileTest, RefusesCodeUnlessItIsTrusted) {
  const std::string bytes = file_of(module_settings(script_, Parameterisation::kStandard));
  EXPECT_EQ(message_of<InvalidArgument>([&] {
              parse_model(bytes, "a.safetensors", ModelCode::kRefuse);
            }).find("a.safetensors contains the TorchScript module"),
            0U);
  EXPECT_NO_THROW(read(bytes));
}

TEST_F(ModuleModelFileTest, RefusesAModuleThatChangesItself) {
  write_script(script_, kInputs, std::string("  self.constant.shift.add_(1.0)\n") + kTanhScript);
  const NetworkSettings settings = module_settings(script_, Parameterisation::kStandard);
  EXPECT_THROW(file_of(settings), InvalidArgument);
}

TEST_F(ModuleModelFileTest, TakesDropoutThatIsOff) {
  // The interpreter's stack has a product before the arguments of dropout.
  write_script(script_, kInputs,
               "  h = torch.matmul(docs, self.w.t())\n"
               "  return torch.matmul(h, self.v) + torch.matmul(torch.dropout(h, 0.5, False), self.v)\n");
  EXPECT_NO_THROW(file_of(module_settings(script_, Parameterisation::kStandard)));
}

TEST_F(ModuleModelFileTest, FilesNeedNoTorchScriptFileNextToThem) {
  const NetworkSettings settings = module_settings(script_.string(), Parameterisation::kStandard);
  const std::string bytes = file_of(settings);
  const std::vector<double> scores = scores_of(read(bytes), raw_);
  std::filesystem::remove(script_);
  const LoadedModel loaded = read(bytes);
  EXPECT_EQ(scores_of(loaded, raw_), scores);
  expect_near(script_scores(loaded, raw_), scores, 1e-12);
  // A ranker may start from it, too.
  RankerSettings ranker = RankerSettings::defaults(RankerKind::kOlRankNet, ProtocolName::kPaper);
  ranker.network = loaded.settings;
  const auto started =
      make_ranker(ranker, kInputs, TrialKeys::of(1, 1, "test"), 10, {.first_thetas = loaded.members});
  EXPECT_EQ(started->model().tensors.front().values.front(), loaded.members.front().front());
}

TEST_F(ModuleModelFileTest, ReluAsAModuleIsExportedInEveryFormat) {
  const LoadedModel loaded = read(file_of(module_settings("relu", Parameterisation::kNtk), 2));
  for (const auto format : {ExportFormat::kOnnx, ExportFormat::kJson, ExportFormat::kC})
    EXPECT_FALSE(exported(loaded, format, "model").empty());
  std::vector<double> expected(raw_.size() / kInputs);
  ExecutionContext context;
  for (const auto& theta : loaded.members) {
    std::vector<float> scores(expected.size());
    score_docs(context, loaded.shape, theta, matrix_of(raw_, kInputs), scores);
    for (std::size_t doc = 0; doc < scores.size(); ++doc) expected[doc] += 0.5 * double{scores[doc]};
  }
  // The closed form's float32, in sums of some ten terms.
  expect_near(scores_of(loaded, raw_), expected, 1e-5);
}

TEST_F(ModuleModelFileTest, OtherFormatsAreRefused) {
  const LoadedModel loaded = read(file_of(module_settings("layernorm", Parameterisation::kNtk)));
  for (const auto format : {ExportFormat::kOnnx, ExportFormat::kJson, ExportFormat::kC}) {
    EXPECT_TRUE(contains(message_of<InvalidArgument>([&] { exported(loaded, format, "model"); }),
                         "--to torchscript"));
  }
}

TEST_F(ModuleModelFileTest, ModulesOfUsersLoadWhereTheyAreRegistered) {
  register_module("of-a-user",
                  [](const ModuleRequest& request) { return std::make_shared<ResidualRanker>(request); });
  const NetworkSettings settings = module_settings("of-a-user", Parameterisation::kStandard);
  const LoadedModel loaded = read(file_of(settings, 2));
  expect_near(scores_of(loaded, raw_), expected_scores(settings, loaded, raw_), 1e-7);
  EXPECT_TRUE(contains(message_of<InvalidArgument>([&] { torch_script_of(loaded); }),
                       "'of-a-user' is written in C++"));
}

TEST_F(ModuleModelFileTest, RefusesOtherModulesAndDamage) {
  const auto model_of = [](const NetworkSettings& settings) {
    const auto model = make_module_model(settings, kInputs);
    return model->tensors(moved_parameters(*model, 5));
  };
  const ModelTensors good = model_of(module_settings("residual", Parameterisation::kStandard));
  const auto with = [&](ModelTensors model, const std::string& key, const std::string& value) {
    std::erase_if(model.architecture, [&](const auto& entry) { return entry.first == key; });
    if (!value.empty()) model.architecture.emplace_back(key, value);
    return plain_file_of(model);
  };
  expect_refusal(with(good, "module", "mine"),
                 "Its module 'mine' is not registered in this program, which has attention, ");
  expect_refusal(with(good, "module", ""), "metadata has no module");
  expect_refusal(with(good, "fingerprint", "0123"), "Its fingerprint is '0123', but module 'residual' has");
  expect_refusal(with(good, "inputs", "7"), "Its fingerprint is");
  expect_refusal(with(good, "inputs", "100000000"), "number from 1 to 10000000");
  expect_refusal(with(good, "width", "65536"), "has more");
  expect_refusal(with(good, "width", "5"), "Its fingerprint is");
  expect_refusal(with(good, "activation", "sine"), "activation 'sine' is unknown");
  expect_refusal(with(good, "biases", "some"), "not true or false");
  expect_refusal(with(good, "output_scale", "2"), "Its output_scale is '2'");
  expect_refusal(with(good, "module", "mine.pt"), "metadata has no torchscript");
  expect_refusal(with(good, "members", "2"), "tensor 'members.0.input.weight' is missing");
  const auto tensors_changed = [&](const auto& change) {
    ModelTensors model = good;
    change(model.tensors);
    return plain_file_of(model);
  };
  expect_refusal(tensors_changed([](auto& all) { all.pop_back(); }), "tensor 'output.bias' is missing");
  expect_refusal(tensors_changed([](auto& all) {
                   all.push_back({"extra", {1}, {0.0F}});
                 }),
                 "has no tensor 'extra'");
  expect_refusal(tensors_changed([](auto& all) { all[1].values[0] = INFINITY; }),
                 "'input.bias' contains numbers that are not finite");
  expect_refusal(tensors_changed([](auto& all) { all[0].shape = {6 * kInputs}; }),
                 "'input.weight' has the shape [30] instead of [6, 5]");

  const ModelTensors script = model_of(module_settings(script_.string(), Parameterisation::kStandard));
  expect_refusal(with(script, "torchscript", "not base64"), "not in base64");
  expect_refusal(with(script, "torchscript", base64_of("a short file")), "is not a TorchScript file");
  write_script(script_, kInputs,
               "  h = torch.relu(torch.matmul(docs, self.w.t()))\n"
               "  return torch.matmul(h, self.v) + self.constant.forward()\n");
  expect_refusal(with(script, "torchscript", base64_of(read_file(script_))), "Its fingerprint is");
}

// Saved models as TorchScript.

constexpr std::int64_t kRawFeatures = 4;

LoadedModel network_model(const NetworkShape& shape, int members, Normalisation kind, bool drop_a_feature) {
  LoadedModel model;
  model.settings.network = shape.depth == 1 ? NetworkForm::kLinear : NetworkForm::kMlp;
  model.settings.parameterisation = shape.biases ? Parameterisation::kStandard : Parameterisation::kNtk;
  model.settings.depth = shape.depth;
  model.settings.width = shape.width;
  model.shape = shape;
  for (int member = 0; member < members; ++member)
    model.members.push_back(random_theta(shape, 10 + static_cast<std::uint64_t>(member)));
  model.normaliser.kind = kind;
  model.normaliser.features = kRawFeatures;
  if (drop_a_feature) model.normaliser.kept = {0, 2, 3};
  model.normaliser.means = {0.5, 1.0, -2.0, 3.0};
  model.normaliser.scales = {2.0, 0.0, 0.25, 1.0 / 3.0};
  model.metadata = {{"seed", "3"}};
  if (members > 1) model.metadata.emplace_back("members", std::to_string(members));
  return model;
}

LoadedModel additive_model(int members, Normalisation kind, bool drop_a_feature,
                           const std::vector<InputPair>& products = {}) {
  LoadedModel model = network_model(linear_shape((drop_a_feature ? 12 : 16) + std::ssize(products)),
                                    members, kind, drop_a_feature);
  model.normaliser.cosines = 3;
  model.normaliser.products = products;
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

/// Both sides compute in double from the same floats, in orders of their own: a few roundings of 1.1e-16 in
/// each of at most 6 sums of at most 6 terms, or one of 16. Cosines that differ by 5e-15 are the same
/// floats, but for those near 0.
constexpr double kTolerance = 1e-13;

void expect_scores_of_the_program(const LoadedModel& model, std::int64_t docs) {
  const std::vector<float> raw = raw_docs(docs);
  expect_near(script_scores(model, raw), scores_of(model, raw), kTolerance);
}

TEST(TorchScript, GivesTheProgramsScoresForEveryModelAndNormalisation) {
  for (const bool drop : {false, true}) {
    const std::int64_t inputs = drop ? 3 : 4;
    for (const Normalisation kind : {Normalisation::kNone, Normalisation::kQueryMinmax,
                                     Normalisation::kZscore, Normalisation::kLog1pZscore}) {
      std::vector<LoadedModel> models = {additive_model(1, kind, drop)};
      for (const NetworkShape& shape : {linear_shape(inputs), ntk_shape(inputs, 6, 2),
                                        ntk_shape(inputs, 4, 3), standard_shape(inputs, 5, 2)})
        models.push_back(network_model(shape, 1, kind, drop));
      for (const LoadedModel& model : models) {
        SCOPED_TRACE(fmt::format("depth {}, {} cosines, normalisation {}, dropped {}", model.shape.depth,
                                 model.normaliser.cosines, name_of(kind), drop));
        for (const std::int64_t docs : {0, 1, 7}) expect_scores_of_the_program(model, docs);
      }
    }
  }
}

TEST(TorchScript, TakesTheMeanOfAnEnsemble) {
  expect_scores_of_the_program(additive_model(2, Normalisation::kZscore, true), 5);
  expect_scores_of_the_program(additive_model(2, Normalisation::kZscore, false, {{3, 0}, {1, 1}}), 5);
  expect_scores_of_the_program(network_model(ntk_shape(4, 6, 2), 3, Normalisation::kQueryMinmax, false), 5);
  expect_scores_of_the_program(network_model(linear_shape(4), 2, Normalisation::kNone, false), 1);
}

TEST(TorchScript, ParametersHaveTheNamesOfModelFiles) {
  for (const LoadedModel& model : {network_model(standard_shape(4, 5, 2), 1, Normalisation::kZscore, false),
                                   network_model(standard_shape(4, 5, 2), 2, Normalisation::kZscore, false),
                                   additive_model(1, Normalisation::kZscore, false)}) {
    torch::jit::ExtraFilesMap extra;
    std::vector<std::string> names;
    for (const auto& parameter : script_of(model, extra).named_parameters())
      names.push_back(parameter.name);
    std::vector<std::string> expected;
    for (const auto& tensor : tensors_of(model)) expected.push_back(tensor.name);
    std::sort(names.begin(), names.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(names, expected);
  }
}

TEST(TorchScript, GivesTheSameBytesAgain) {
  const LoadedModel model = network_model(ntk_shape(4, 6, 2), 2, Normalisation::kLog1pZscore, true);
  EXPECT_EQ(torch_script_of(model), torch_script_of(model));
}

}  // namespace
}  // namespace olrank
