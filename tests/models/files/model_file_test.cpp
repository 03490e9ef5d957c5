#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/version.h"
#include "models/files/external_model.h"
#include "models/files/model_file.h"
#include "models/files/model_scorer.h"
#include "models/linear/linear_belief.h"
#include "models/neural/ranker_network.h"
#include "models/ranker_factory.h"
#include "tests/core/data/letor_support.h"
#include "tests/core/ops/network_fixture.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

void write(const std::filesystem::path& path, const ModelTensors& model) {
  std::vector<NamedTensor> tensors;
  for (const auto& tensor : model.tensors) tensors.push_back({tensor.name, tensor.shape, tensor.values});
  write_file_atomically(path, safetensors_bytes(tensors, model.architecture));
}

NetworkSettings network(Parameterisation parameterisation, std::int64_t width, std::int64_t depth) {
  return {.width = width, .depth = depth, .parameterisation = parameterisation};
}

std::vector<float> first_theta(const NetworkSettings& settings, const NetworkShape& shape) {
  return first_parameters(settings, shape, make_key({.purpose = Purpose::kInitialisation}));
}

class ModelFileTest : public testing::Test {
 protected:
  void expect_refusal(const ModelTensors& model, const std::string& part) {
    write(file_, model);
    try {
      load_model(file_, ModelCode::kRefuse);
      ADD_FAILURE() << "accepted what should say: " << part;
    } catch (const DataError& error) {
      const std::string sentence = error.what();
      EXPECT_TRUE(contains(sentence, part));
      EXPECT_TRUE(contains(sentence, file_.string()));
    }
  }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "model.safetensors";
};

TEST_F(ModelFileTest, EveryRankerReadsBack) {
  const LabelledQueries none;
  for (const auto& [kind, name] : EnumNames<RankerKind>::values) {
    if (row_of(kind).is_external) continue;  // its file holds nothing
    for (const Parameterisation parameterisation : {Parameterisation::kNtk, Parameterisation::kStandard}) {
      RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kPaper);
      settings.network.width = 6;
      settings.network.depth = 3;
      settings.network.parameterisation = parameterisation;
      const auto ranker = make_ranker(settings, 5, TrialKeys::of(1, 1, "test"), 10, {.labels = &none});
      const ModelTensors model = ranker->model();
      write(file_, model);
      const LoadedModel loaded = load_model(file_, ModelCode::kRefuse);
      std::vector<float> flat;
      for (const auto& tensor : model.tensors)
        flat.insert(flat.end(), tensor.values.begin(), tensor.values.end());
      std::vector<float> read;
      for (const auto& theta : loaded.members) read.insert(read.end(), theta.begin(), theta.end());
      EXPECT_EQ(read, flat) << name;
      EXPECT_EQ(loaded.is_additive(), kind == RankerKind::kClickGp) << name;
      if (!loaded.is_additive()) {
        EXPECT_EQ(loaded.shape, network_shape(settings.network, 5)) << name;
      }
      EXPECT_EQ(loaded.is_linear(), settings.network.network == NetworkForm::kLinear) << name;
      EXPECT_EQ(loaded.metadata, ModelMetadata(model.architecture)) << name;
    }
  }
}

// It is part of the function, whatever the parameterisation would give.
TEST_F(ModelFileTest, OutputScaleIsThatOfTheFile) {
  const Dataset data = read_text("1 qid:1 1:1 2:-2\n0 qid:1 1:0.5 2:4\n");
  ExecutionContext context;
  for (ModelTensors model :
       {LinearModel(2).tensors(std::vector<float>{1.0F, -0.5F}),
        additive_tensors(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}),
        network_tensors(network(Parameterisation::kStandard, 1, 2), standard_shape(2, 1, 2),
                        std::vector<float>{1.0F, -1.0F, 0.5F, 2.0F, -1.0F})}) {
    std::erase_if(model.architecture, [](const auto& entry) { return entry.first == "output_scale"; });
    write(file_, model);
    const std::vector<double> plain =
        scores_of_all(ModelScorer(load_model(file_, ModelCode::kRefuse)), data, context);
    for (const double scale : {3.0, -0.25}) {
      ModelTensors scaled = model;
      scaled.architecture.emplace_back("output_scale", fmt::format("{}", scale));
      write(file_, scaled);
      const std::vector<double> scores =
          scores_of_all(ModelScorer(load_model(file_, ModelCode::kRefuse)), data, context);
      ASSERT_NE(plain[0], 0.0);
      for (std::size_t doc = 0; doc < plain.size(); ++doc)
        EXPECT_DOUBLE_EQ(scores[doc], scale * plain[doc]);
    }
    for (const char* wrong : {"0", "nan", "1e39", "two", ""}) {
      ModelTensors refused = model;
      refused.architecture.emplace_back("output_scale", wrong);
      expect_refusal(
          refused, fmt::format("Its output_scale is '{}' instead of a finite number other than 0.", wrong));
    }
  }
}

TEST_F(ModelFileTest, NamesTheFormatsThatAreWrittenForOtherPrograms) {
  for (const char* file : {R"({"format":"olrank-model","inputs":2})", "PK\x03\x04 archive/data.pkl"}) {
    EXPECT_EQ(
        message_of([&] { parse_model(file, "m", ModelCode::kRefuse); }),
        "m: This is JSON or PyTorch's format, which olrank writes for other programs and does not read: "
        "name the model file that was exported. A TorchScript module of your own is the setting module.");
  }
}

TEST_F(ModelFileTest, ReadsOnnxByARegisteredReaderAlone) {
  const std::string file("\x08\x08\x3a\x10some nodes", 14);
  EXPECT_TRUE(contains(message_of([&] { parse_model(file, "m.onnx", ModelCode::kRefuse); }),
                       "m.onnx: This is an ONNX model, which olrank reads in Python alone"));
  register_onnx_reader([&](std::string_view bytes, const std::string& name) {
    EXPECT_EQ(bytes, file);
    EXPECT_EQ(name, "m.onnx");
    // Each document has the number of its query's documents.
    return ExternalModel{
        "a model that counts", 2, {}, [](std::span<const float> docs, std::span<double> scores) {
          EXPECT_EQ(docs.size(), 2 * scores.size());
          std::fill(scores.begin(), scores.end(), static_cast<double>(scores.size()));
        }};
  });
  const ModelScorer scorer(parse_model(file, "m.onnx", ModelCode::kRefuse));
  register_onnx_reader({});
  const std::vector<float> docs(10);
  const std::int64_t offsets[] = {0, 2, 5};
  std::vector<double> scores(5);
  Scratch scratch;
  scorer.score(scratch, {docs.data(), 5, 2}, offsets, scores);
  EXPECT_EQ(scores, (std::vector<double>{2.0, 2.0, 3.0, 3.0, 3.0}));
}

TEST_F(ModelFileTest, RefusesOtherArchitectures) {
  const NetworkSettings settings = network(Parameterisation::kStandard, 4, 2);
  const NetworkShape shape = network_shape(settings, 3);
  const ModelTensors good = network_tensors(settings, shape, first_theta(settings, shape));
  write(file_, good);
  EXPECT_EQ(load_model(file_, ModelCode::kRefuse).shape, shape);

  const auto with = [&](const std::string& key, const std::string& value) {
    ModelTensors model = good;
    for (auto& [known, text] : model.architecture) {
      if (known == key) text = value;
    }
    return model;
  };
  expect_refusal(with("architecture", "transformer"),
                 "'transformer'; olrank knows 'linear', 'additive', 'relu' and 'module'.");
  ModelTensors newer = with("architecture", "transformer");
  newer.architecture.emplace_back("producer", "olrank 99.0.0");
  expect_refusal(newer, fmt::format("'module'. olrank 99.0.0 wrote it, and this is olrank {}: use that one",
                                    version()));
  expect_refusal(with("architecture", "linear"), "tensor 'linear.weight' is missing");
  expect_refusal(with("width", "6"), "the shape [4, 3] instead of [6, 3]");
  expect_refusal(with("width", "4x"), "'4x'");
  expect_refusal(with("width", "99999999999999999999"), "instead of a number from 1 to 65536");
  expect_refusal(with("depth", "1"), "instead of a number from 2 to 16");
  expect_refusal(with("depth", "3"), "instead of [4, 4]");
  expect_refusal(with("parameterisation", "mup"), "'mup'");
  expect_refusal(with("parameterisation", "ntk"), "has no tensor 'layers.0.bias'");
  ModelTensors silent = good;
  silent.architecture.clear();
  expect_refusal(silent, "metadata has no architecture");
  ModelTensors fewer = good;
  fewer.tensors.pop_back();
  expect_refusal(fewer, "tensor 'layers.1.bias' is missing");
  ModelTensors more = good;
  more.tensors.push_back({"layers.2.bias", {1}, {0.0F}});
  expect_refusal(more, "has no tensor 'layers.2.bias'");
  ModelTensors infinite = good;
  infinite.tensors[1].values[0] = std::numeric_limits<float>::infinity();
  expect_refusal(infinite, "'layers.0.bias' contains numbers that are not finite");
  ModelTensors flat = good;
  flat.tensors[0].shape = {12};
  expect_refusal(flat, "'layers.0.weight' has the shape [12]");
  ModelTensors members = good;
  members.architecture.emplace_back("members", "2");
  expect_refusal(members, "tensor 'members.0.layers.0.weight' is missing");
}

TEST_F(ModelFileTest, AdditiveModelsAreLinearInInputsAndTheirCosines) {
  const std::vector<float> theta = {1, 2, 3, 4, 5, 6, 7, 8};
  ModelTensors good = additive_tensors(theta);
  good.architecture.emplace_back("normalisation", R"({"kind":"none","features":3,"kept":[0,2]})");
  write(file_, good);
  const LoadedModel loaded = load_model(file_, ModelCode::kRefuse);
  EXPECT_TRUE(loaded.is_linear());
  EXPECT_TRUE(loaded.is_additive());
  EXPECT_EQ(loaded.shape, linear_shape(8));
  EXPECT_EQ(loaded.normaliser.features, 3);
  EXPECT_EQ(loaded.normaliser.cosines, 3);
  EXPECT_EQ(loaded.normaliser.inputs(), 8);
  EXPECT_EQ(loaded.members, std::vector<std::vector<float>>{theta});
  const auto tensors = tensors_of(loaded);
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].name, "linear.weight");
  EXPECT_EQ(tensors[0].shape, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(tensors[0].values, (std::vector<float>{1, 2}));
  EXPECT_EQ(tensors[1].name, "cosines.weight");
  EXPECT_EQ(tensors[1].shape, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(tensors[1].values, (std::vector<float>{3, 4, 5, 6, 7, 8}));

  write(file_, additive_tensors(theta));
  EXPECT_EQ(load_model(file_, ModelCode::kRefuse).normaliser.features, 2);

  ModelTensors linear = good;
  linear.architecture.front().second = "linear";
  expect_refusal(linear, "has no tensor 'cosines.weight'");
  ModelTensors fewer = good;
  fewer.tensors.pop_back();
  expect_refusal(fewer, "tensor 'cosines.weight' is missing");
  ModelTensors narrow = good;
  narrow.tensors[1] = {"cosines.weight", {2, 2}, {1, 2, 3, 4}};
  expect_refusal(narrow, "'cosines.weight' has the shape [2, 2] instead of [3, 2]");
  ModelTensors more = good;
  more.tensors.push_back({"linear.bias", {1}, {0.0F}});
  expect_refusal(more, "has no tensor 'linear.bias'");
  ModelTensors infinite = good;
  infinite.tensors[1].values[5] = std::numeric_limits<float>::infinity();
  expect_refusal(infinite, "'cosines.weight' contains numbers that are not finite");
  ModelTensors other = good;
  other.architecture.back().second = R"({"kind":"none","features":8})";
  expect_refusal(other, "yields 8 inputs, but its first layer takes 2");

  const std::vector<float> with_products = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const std::vector<InputPair> pairs = {{1, 0}, {1, 1}};
  good = additive_tensors(with_products, pairs);
  write(file_, good);
  const LoadedModel products = load_model(file_, ModelCode::kRefuse);
  EXPECT_EQ(products.shape, linear_shape(10));
  EXPECT_EQ(products.normaliser.inputs(), 10);
  EXPECT_EQ(products.normaliser.products, pairs);
  EXPECT_EQ(products.members, std::vector<std::vector<float>>{with_products});
  ASSERT_EQ(tensors_of(products).size(), 3U);
  EXPECT_EQ(tensors_of(products)[2].values, (std::vector<float>{9, 10}));
  for (const std::string text : {"[[0,2]]", "[[0]]", "[[-1,0]]", "[]", "{", "[[0,0.5]]"}) {
    ModelTensors wrong = good;
    wrong.architecture.back().second = text;
    expect_refusal(wrong, "Its products are '" + text + "' instead of pairs of inputs");
  }
  fewer = good;
  fewer.tensors.pop_back();
  expect_refusal(fewer, "tensor 'products.weight' is missing");
}

TEST_F(ModelFileTest, ReadsNormalisationAndNames) {
  ModelTensors model = LinearModel(2).tensors(std::vector<float>{1, 2});
  write(file_, model);
  EXPECT_EQ(load_model(file_, ModelCode::kRefuse).normaliser.kind, Normalisation::kNone);
  EXPECT_EQ(load_model(file_, ModelCode::kRefuse).normaliser.features, 2);
  EXPECT_TRUE(load_model(file_, ModelCode::kRefuse).feature_names.empty());

  model.architecture.emplace_back("normalisation", R"({"kind":"query-minmax","features":3,"kept":[0,2]})");
  model.architecture.emplace_back("feature_names", R"(["bm25","constant","age"])");
  write(file_, model);
  const LoadedModel loaded = load_model(file_, ModelCode::kRefuse);
  EXPECT_EQ(loaded.normaliser.kind, Normalisation::kQueryMinmax);
  EXPECT_EQ(loaded.normaliser.kept, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(loaded.feature_names, (std::vector<std::string>{"bm25", "constant", "age"}));

  const auto with = [&](std::size_t entry, const std::string& text) {
    ModelTensors other = model;
    other.architecture[entry].second = text;
    return other;
  };
  expect_refusal(with(1, R"({"kind":"none","features":3})"),
                 "yields 3 inputs, but its first layer takes 2");
  expect_refusal(with(1, "{}"), "Its 'kind' is missing or not a string.");
  expect_refusal(with(2, R"(["a","b"])"), "not a list of 3 names");
  expect_refusal(with(2, R"(["a","b",3])"), "not a list of 3 names");
  expect_refusal(with(2, "a b c"), "not a list of 3 names");
}

LoadedModel ensemble(std::int64_t features, int members) {
  LoadedModel model;
  model.settings.network = NetworkForm::kMlp;
  model.shape = ntk_shape(features, 6, 3);
  for (int member = 0; member < members; ++member)
    model.members.push_back(random_theta(model.shape, 10 + static_cast<std::uint64_t>(member)));
  model.normaliser.kind = Normalisation::kQueryMinmax;
  model.normaliser.features = features;
  return model;
}

/// Queries of 1 to 40 documents with four features.
Dataset random_queries(int queries) {
  std::string text;
  RngStream rng(test_key(9), 0);
  for (int query = 0; query < queries; ++query) {
    const std::uint32_t docs = 1 + rng.index(40);
    for (std::uint32_t doc = 0; doc < docs; ++doc)
      text += "0 qid:" + std::to_string(query) + " 1:" + std::to_string(rng.normal()) +
              " 2:" + std::to_string(rng.uniform()) + " 3:" + std::to_string(doc) + " 4:1\n";
  }
  return read_text(text);
}

TEST(ModelScorer, NormalisesByQueryAndTakesTheMean) {
  const Dataset data = random_queries(90);
  for (const int members : {1, 3}) {
    const ModelScorer scorer(ensemble(4, members));
    ExecutionContext one;
    ExecutionContext two(2);
    const std::vector<double> scores = scores_of_all(scorer, data, one);
    EXPECT_EQ(scores_of_all(scorer, data, two), scores);
    const Dataset inputs = scorer.model().normaliser.apply(data, one);
    for (std::int64_t doc = 0; doc < data.docs(); ++doc) {
      double mean = 0.0;
      for (const auto& theta : scorer.model().members)
        mean +=
            slow_score(scorer.model().shape, theta, inputs.all_features().doc(doc).data()).score / members;
      EXPECT_NEAR(scores[doc], mean, 1e-12 * std::max(1.0, std::abs(mean)));
    }
  }
}

/// score = Σ_j w_j x_j + Σ_{k=2..4} Σ_j c_{k,j} cos(πkx_j), x = (z − low) / (high − low) within the query.
double slow_additive_score(const std::vector<float>& theta, const Dataset& z, std::int64_t query,
                           std::int64_t doc) {
  const std::int64_t columns = z.features();
  double score = 0.0;
  for (std::int64_t j = 0; j < columns; ++j) {
    const auto value = [&](std::int64_t of) { return double{z.all_features().doc(of)[j]}; };
    double low = value(doc);
    double high = value(doc);
    for (std::int64_t other = z.offset(query); other < z.offset(query + 1); ++other) {
      low = std::min(low, value(other));
      high = std::max(high, value(other));
    }
    const double x = high > low ? (value(doc) - low) / (high - low) : 0.0;
    score += theta[j] * x;
    for (int k = 2; k <= 4; ++k) score += theta[(k - 1) * columns + j] * std::cos(std::numbers::pi * k * x);
  }
  return score;
}

TEST(ModelScorer, ScoresAdditiveModels) {
  const Dataset data = random_queries(40);
  ExecutionContext context(2);
  for (const bool drop_constant : {false, true}) {
    for (const Normalisation kind :
         {Normalisation::kNone, Normalisation::kQueryMinmax, Normalisation::kZscore}) {
      LoadedModel model;
      model.settings.network = NetworkForm::kLinear;
      model.normaliser = fit_normaliser(kind, data, drop_constant, context);
      const Dataset z = model.normaliser.apply(data, context);
      model.normaliser.cosines = 3;
      model.shape = linear_shape(4 * z.features());
      model.members.push_back(random_theta(model.shape, 10));
      const std::vector<float> theta = model.members.front();
      const std::vector<double> scores = scores_of_all(ModelScorer(std::move(model)), data, context);
      // x and its cosines are rounded to floats: together at most (4π + 1) 2⁻²⁵ for each weight.
      double tolerance = 1e-12;
      for (const float weight : theta) tolerance += 13.6 * 0x1p-25 * std::abs(weight);
      for (std::int64_t query = 0; query < data.queries(); ++query) {
        for (std::int64_t doc = data.offset(query); doc < data.offset(query + 1); ++doc)
          ASSERT_NEAR(scores[doc], slow_additive_score(theta, z, query, doc), tolerance) << name_of(kind);
      }
    }
  }
}

TEST(ModelScorer, RangesCoverTheQueriesInOrder) {
  const Dataset data = random_queries(90);
  for (const std::int64_t docs : {1, 100, 1000000}) {
    std::int64_t next = 0;
    for (const QueryRange range : query_ranges(data, docs)) {
      EXPECT_EQ(range.begin, next);
      EXPECT_GT(range.end, range.begin);
      next = range.end;
      if (next < data.queries()) {
        EXPECT_GE(data.offset(range.end) - data.offset(range.begin), docs);
      }
    }
    EXPECT_EQ(next, data.queries());
  }
}

TEST(ModelScorer, FitsDataToTheModel) {
  ExecutionContext context;
  const Dataset data = random_queries(3);
  EXPECT_EQ(fitted_to_model(data, ensemble(4, 1), "here", context).features(), 4);
  const Dataset wide = fitted_to_model(data, ensemble(6, 1), "here", context);
  EXPECT_EQ(wide.features(), 6);
  EXPECT_EQ(wide.all_features().doc(1)[5], 0.0F);
  EXPECT_EQ(message_of<DataError>([&] { fitted_to_model(data, ensemble(2, 1), "here", context); }),
            "here: The data has 4 features, but the model was trained on 2: remove the others.");
}

}  // namespace
}  // namespace olrank
