#include <gtest/gtest.h>

#include <fmt/format.h>
#include <torch/csrc/jit/serialization/import.h>
#include <limits>
#include <sstream>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/text/message_text.h"
#include "models/export/export_format.h"
#include "models/files/model_scorer.h"
#include "models/linear/linear_belief.h"
#include "models/modules/built_in_modules.h"
#include "models/neural/ranker_network.h"
#include "models/ranker_factory.h"
#include "models/skeleton/belief.h"
#include "tests/core/ops/network_fixture.h"
#include "tests/models/modules/module_fixture.h"
#include "tests/models/modules/script_file.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

// Model files of modules: what they hold, whether they load, and their exports.

constexpr std::int64_t kInputs = 5;

NetworkSettings module_settings(const std::string& module, Parameterisation parameterisation,
                                Activation activation = Activation::kGelu) {
  NetworkSettings settings;
  settings.network = NetworkForm::kModule;
  settings.module = module;
  settings.activation = activation;
  settings.width = 6;
  settings.depth = 3;
  settings.parameterisation = parameterisation;
  return settings;
}

/// A trained model's file: parameters near the first ones.
std::string file_of(const NetworkSettings& settings, int members, Normalisation kind) {
  const auto model = make_module_model(settings, kInputs);
  std::vector<std::vector<float>> thetas;
  for (int member = 0; member < members; ++member)
    thetas.push_back(moved_parameters(*model, 5 + static_cast<std::uint64_t>(member)));
  ModelTensors tensors = members == 1 ? model->tensors(thetas.front()) : ensemble_tensors(*model, thetas);
  tensors.architecture.emplace_back(
      "normalisation", fmt::format(R"({{"kind":"{}","features":{}}})", name_of(kind), kInputs));
  std::vector<NamedTensor> named;
  for (const auto& tensor : tensors.tensors) named.push_back({tensor.name, tensor.shape, tensor.values});
  return safetensors_bytes(named, tensors.architecture);
}

std::vector<double> scores_of(const LoadedModel& model, const std::vector<float>& raw) {
  const std::int64_t docs = std::ssize(raw) / kInputs;
  std::vector<double> scores(docs);
  const std::vector<std::int64_t> offsets = {0, docs};
  ExecutionContext context;
  ModelScorer(model).score(context.scratch(0), {raw.data(), docs, kInputs}, offsets, scores);
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

/// TorchScript's scores, from the archive that is exported.
std::vector<double> script_scores(const LoadedModel& model, std::vector<float> raw) {
  std::istringstream bytes(torch_script_of(model));
  torch::jit::Module module = torch::jit::load(bytes, torch::kCPU);
  const torch::Tensor scores =
      module.forward({torch::from_blob(raw.data(), {std::ssize(raw) / kInputs, kInputs}, torch::kFloat)})
          .toTensor()
          .contiguous();
  EXPECT_EQ(scores.scalar_type(), torch::kDouble);
  EXPECT_FALSE(scores.requires_grad());
  return {scores.data_ptr<double>(), scores.data_ptr<double>() + scores.numel()};
}

class ModuleModelFileTest : public testing::Test {
 protected:
  void SetUp() override { write_script(script_, kInputs); }

  void expect_refusal(const std::string& bytes, const std::string& part) {
    try {
      parse_model(bytes, "a.safetensors", ModelCode::kTrust);
      ADD_FAILURE() << "accepted what should say: " << part;
    } catch (const DataError& error) {
      EXPECT_TRUE(contains(error.what(), part));
      EXPECT_FALSE(contains(error.what(), "\n"));
    }
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
      const std::string bytes = file_of(settings, members, Normalisation::kQueryMinmax);
      const LoadedModel loaded = parse_model(bytes, "a.safetensors", ModelCode::kTrust);
      ASSERT_EQ(std::ssize(loaded.members), members);
      EXPECT_EQ(loaded.settings.module, settings.module);
      EXPECT_EQ(loaded.shape.inputs, kInputs);
      // Scores of rankers are rounded to float32 once.
      expect_near(scores_of(loaded, raw_), expected_scores(settings, loaded, raw_), 1e-7);
      EXPECT_EQ(parse_model(safetensors_of(loaded), "a.safetensors", ModelCode::kTrust).members,
                loaded.members);
    }
  }
}

TEST_F(ModuleModelFileTest, TorchScriptExportsScoreAlike) {
  for (const NetworkSettings& settings : all_settings()) {
    for (const int members : {1, 2}) {
      SCOPED_TRACE(fmt::format("{}, {} members", settings.module, members));
      const LoadedModel loaded = parse_model(file_of(settings, members, Normalisation::kQueryMinmax),
                                             "a.safetensors", ModelCode::kTrust);
      expect_near(script_scores(loaded, raw_), scores_of(loaded, raw_), 1e-12);
      // A state_dict's tensors have the names of the module's own parameters.
      EXPECT_FALSE(exported(loaded, ExportFormat::kPt, "model").empty());
    }
  }
}

TEST_F(ModuleModelFileTest, RefusesCodeUnlessItIsTrusted) {
  const std::string bytes =
      file_of(module_settings(script_, Parameterisation::kStandard), 1, Normalisation::kNone);
  EXPECT_EQ(message_of<InvalidArgument>([&] {
              parse_model(bytes, "a.safetensors", ModelCode::kRefuse);
            }).find("a.safetensors contains the TorchScript module"),
            0U);
  EXPECT_NO_THROW(parse_model(bytes, "a.safetensors", ModelCode::kTrust));
}

TEST_F(ModuleModelFileTest, RefusesAModuleThatChangesItself) {
  write_script(script_, kInputs, std::string("  self.constant.shift.add_(1.0)\n") + kTanhScript);
  const NetworkSettings settings = module_settings(script_, Parameterisation::kStandard);
  EXPECT_THROW(file_of(settings, 1, Normalisation::kNone), InvalidArgument);
}

TEST_F(ModuleModelFileTest, TakesDropoutThatIsOff) {
  // The interpreter's stack has a product before the arguments of dropout.
  write_script(script_, kInputs,
               "  h = torch.matmul(docs, self.w.t())\n"
               "  return torch.matmul(h, self.v) + torch.matmul(torch.dropout(h, 0.5, False), self.v)\n");
  EXPECT_NO_THROW(file_of(module_settings(script_, Parameterisation::kStandard), 1, Normalisation::kNone));
}

TEST_F(ModuleModelFileTest, FilesNeedNoTorchScriptFileNextToThem) {
  const NetworkSettings settings = module_settings(script_.string(), Parameterisation::kStandard);
  const std::string bytes = file_of(settings, 1, Normalisation::kNone);
  const std::vector<double> scores =
      scores_of(parse_model(bytes, "a.safetensors", ModelCode::kTrust), raw_);
  std::filesystem::remove(script_);
  const LoadedModel loaded = parse_model(bytes, "a.safetensors", ModelCode::kTrust);
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
  const LoadedModel loaded =
      parse_model(file_of(module_settings("relu", Parameterisation::kNtk), 2, Normalisation::kNone),
                  "a.safetensors", ModelCode::kTrust);
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
  const LoadedModel loaded =
      parse_model(file_of(module_settings("layernorm", Parameterisation::kNtk), 1, Normalisation::kNone),
                  "a.safetensors", ModelCode::kTrust);
  for (const auto format : {ExportFormat::kOnnx, ExportFormat::kJson, ExportFormat::kC}) {
    EXPECT_TRUE(contains(message_of<InvalidArgument>([&] { exported(loaded, format, "model"); }),
                         "--to torchscript"));
  }
}

TEST_F(ModuleModelFileTest, ModulesOfUsersLoadWhereTheyAreRegistered) {
  register_module("of-a-user",
                  [](const ModuleRequest& request) { return std::make_shared<ResidualRanker>(request); });
  const NetworkSettings settings = module_settings("of-a-user", Parameterisation::kStandard);
  const LoadedModel loaded =
      parse_model(file_of(settings, 2, Normalisation::kNone), "a.safetensors", ModelCode::kTrust);
  expect_near(scores_of(loaded, raw_), expected_scores(settings, loaded, raw_), 1e-7);
  EXPECT_TRUE(contains(message_of<InvalidArgument>([&] { torch_script_of(loaded); }),
                       "'of-a-user' is written in C++"));
}

TEST_F(ModuleModelFileTest, RefusesOtherModulesAndDamage) {
  const auto model_of = [](const NetworkSettings& settings) {
    const auto model = make_module_model(settings, kInputs);
    return model->tensors(moved_parameters(*model, 5));
  };
  const auto bytes_of = [](const ModelTensors& model) {
    std::vector<NamedTensor> named;
    for (const auto& tensor : model.tensors) named.push_back({tensor.name, tensor.shape, tensor.values});
    return safetensors_bytes(named, model.architecture);
  };
  const ModelTensors good = model_of(module_settings("residual", Parameterisation::kStandard));
  const auto with = [&](ModelTensors model, const std::string& key, const std::string& value) {
    std::erase_if(model.architecture, [&](const auto& entry) { return entry.first == key; });
    if (!value.empty()) model.architecture.emplace_back(key, value);
    return bytes_of(model);
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
  ModelTensors fewer = good;
  fewer.tensors.pop_back();
  expect_refusal(bytes_of(fewer), "tensor 'output.bias' is missing");
  ModelTensors more = good;
  more.tensors.push_back({"extra", {1}, {0.0F}});
  expect_refusal(bytes_of(more), "has no tensor 'extra'");
  ModelTensors infinite = good;
  infinite.tensors[1].values[0] = std::numeric_limits<float>::infinity();
  expect_refusal(bytes_of(infinite), "'input.bias' contains numbers that are not finite");
  ModelTensors flat = good;
  flat.tensors[0].shape = {6 * kInputs};
  expect_refusal(bytes_of(flat), "'input.weight' has the shape [30] instead of [6, 5]");

  const ModelTensors script = model_of(module_settings(script_.string(), Parameterisation::kStandard));
  expect_refusal(with(script, "torchscript", "not base64"), "not in base64");
  expect_refusal(with(script, "torchscript", base64_of("a short file")), "is not a TorchScript file");
  write_script(script_, kInputs,
               "  h = torch.relu(torch.matmul(docs, self.w.t()))\n"
               "  return torch.matmul(h, self.v) + self.constant.forward()\n");
  expect_refusal(with(script, "torchscript", base64_of(read_file(script_))), "Its fingerprint is");
}

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
