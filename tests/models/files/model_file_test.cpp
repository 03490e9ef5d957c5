#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/random/rng_stream.h"
#include "core/version.h"
#include "models/files/external_model.h"
#include "models/files/model_file.h"
#include "models/files/model_scorer.h"
#include "models/linear/linear_belief.h"
#include "models/neural/ranker_network.h"
#include "models/ranker_factory.h"
#include "tests/core/data/letor_support.h"
#include "tests/core/ops/network_fixture.h"
#include "tests/models/small_world.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

NetworkSettings network(Parameterisation parameterisation, std::int64_t width, std::int64_t depth) {
  return {.width = width, .depth = depth, .parameterisation = parameterisation};
}

class ModelFileTest : public testing::Test {
 protected:
  LoadedModel read_back(const ModelTensors& model) const {
    write_file_atomically(file_, plain_file_of(model));
    return load_model(file_, ModelCode::kRefuse);
  }

  void expect_refusal(const ModelTensors& model, const std::string& part) const {
    const std::string sentence = message_of<DataError>([&] { read_back(model); });
    EXPECT_TRUE(contains(sentence, part));
    EXPECT_TRUE(contains(sentence, file_.string()));
  }

  /// A change of `good_` is refused.
  template <class Change>
  void refused(const std::string& part, const Change& change) const {
    ModelTensors model = good_;
    change(model);
    expect_refusal(model, part);
  }
  void refused(const std::string& key, const std::string& value, const std::string& part) const {
    refused(part, [&](ModelTensors& model) {
      for (auto& [known, text] : model.architecture) {
        if (known == key) text = value;
      }
    });
  }

  ModelTensors good_;
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
      const LoadedModel loaded = read_back(model);
      std::vector<float> read;
      for (const auto& theta : loaded.members) read.insert(read.end(), theta.begin(), theta.end());
      EXPECT_EQ(read, flat_theta(model)) << name;
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
    const std::vector<double> plain = scores_of_all(ModelScorer(read_back(model)), data, context);
    for (const double scale : {3.0, -0.25}) {
      ModelTensors scaled = model;
      scaled.architecture.emplace_back("output_scale", fmt::format("{}", scale));
      const std::vector<double> scores = scores_of_all(ModelScorer(read_back(scaled)), data, context);
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
  good_ = network_tensors(settings, shape, random_theta(shape, 1));
  EXPECT_EQ(read_back(good_).shape, shape);

  refused("architecture", "transformer",
          "'transformer'; olrank knows 'linear', 'additive', 'relu' and 'module'.");
  refused(fmt::format("'module'. olrank 99.0.0 wrote it, and this is olrank {}: use that one", version()),
          [](auto& model) {
            model.architecture = {{"architecture", "transformer"}, {"producer", "olrank 99.0.0"}};
          });
  refused("architecture", "linear", "tensor 'linear.weight' is missing");
  refused("width", "6", "the shape [4, 3] instead of [6, 3]");
  refused("width", "4x", "'4x'");
  refused("width", "99999999999999999999", "instead of a number from 1 to 65536");
  refused("depth", "1", "instead of a number from 2 to 16");
  refused("depth", "3", "instead of [4, 4]");
  refused("parameterisation", "mup", "'mup'");
  refused("parameterisation", "ntk", "has no tensor 'layers.0.bias'");
  refused("metadata has no architecture", [](auto& model) { model.architecture.clear(); });
  refused("tensor 'layers.1.bias' is missing", [](auto& model) { model.tensors.pop_back(); });
  refused("has no tensor 'layers.2.bias'", [](auto& model) {
    model.tensors.push_back({"layers.2.bias", {1}, {0.0F}});
  });
  refused("'layers.0.bias' contains numbers that are not finite",
          [](auto& model) { model.tensors[1].values[0] = INFINITY; });
  refused("'layers.0.weight' has the shape [12]", [](auto& model) { model.tensors[0].shape = {12}; });
  refused("tensor 'members.0.layers.0.weight' is missing",
          [](auto& model) { model.architecture.emplace_back("members", "2"); });
}

TEST_F(ModelFileTest, AdditiveModelsAreLinearInInputsAndTheirCosines) {
  const std::vector<float> theta = {1, 2, 3, 4, 5, 6, 7, 8};
  good_ = additive_tensors(theta);
  good_.architecture.emplace_back("normalisation", R"({"kind":"none","features":3,"kept":[0,2]})");
  const LoadedModel loaded = read_back(good_);
  EXPECT_TRUE(loaded.is_linear());
  EXPECT_TRUE(loaded.is_additive());
  EXPECT_EQ(loaded.shape, linear_shape(8));
  EXPECT_EQ(loaded.normaliser.features, 3);
  EXPECT_EQ(loaded.normaliser.cosines, 3);
  EXPECT_EQ(loaded.normaliser.inputs(), 8);
  EXPECT_EQ(loaded.members, std::vector<std::vector<float>>{theta});
  std::vector<std::string> tensors;
  for (const auto& [name, shape, values] : tensors_of(loaded))
    tensors.push_back(fmt::format("{} {} {}", name, shape, values));
  EXPECT_EQ(tensors, (std::vector<std::string>{"linear.weight [1, 2] [1, 2]",
                                               "cosines.weight [3, 2] [3, 4, 5, 6, 7, 8]"}));

  EXPECT_EQ(read_back(additive_tensors(theta)).normaliser.features, 2);

  refused("architecture", "linear", "has no tensor 'cosines.weight'");
  refused("tensor 'cosines.weight' is missing", [](auto& model) { model.tensors.pop_back(); });
  refused("'cosines.weight' has the shape [2, 2] instead of [3, 2]", [](auto& model) {
    model.tensors[1] = {"cosines.weight", {2, 2}, {1, 2, 3, 4}};
  });
  refused("has no tensor 'linear.bias'", [](auto& model) {
    model.tensors.push_back({"linear.bias", {1}, {0.0F}});
  });
  refused("'cosines.weight' contains numbers that are not finite",
          [](auto& model) { model.tensors[1].values[5] = INFINITY; });
  refused("normalisation", R"({"kind":"none","features":8})",
          "yields 8 inputs, but its first layer takes 2");

  const std::vector<float> with_products = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const std::vector<InputPair> pairs = {{1, 0}, {1, 1}};
  good_ = additive_tensors(with_products, pairs);
  const LoadedModel products = read_back(good_);
  EXPECT_EQ(products.shape, linear_shape(10));
  EXPECT_EQ(products.normaliser.inputs(), 10);
  EXPECT_EQ(products.normaliser.products, pairs);
  EXPECT_EQ(products.members, std::vector<std::vector<float>>{with_products});
  ASSERT_EQ(tensors_of(products).size(), 3U);
  EXPECT_EQ(tensors_of(products)[2].values, (std::vector<float>{9, 10}));
  for (const std::string text : {"[[0,2]]", "[[0]]", "[[-1,0]]", "[]", "{", "[[0,0.5]]"}) {
    refused("Its products are '" + text + "' instead of pairs of inputs",
            [&](auto& model) { model.architecture.back().second = text; });
  }
  refused("tensor 'products.weight' is missing", [](auto& model) { model.tensors.pop_back(); });
}

TEST_F(ModelFileTest, ReadsNormalisationAndNames) {
  good_ = LinearModel(2).tensors(std::vector<float>{1, 2});
  const LoadedModel plain = read_back(good_);
  EXPECT_EQ(plain.normaliser.kind, Normalisation::kNone);
  EXPECT_EQ(plain.normaliser.features, 2);
  EXPECT_TRUE(plain.feature_names.empty());

  good_.architecture.emplace_back("normalisation", R"({"kind":"query-minmax","features":3,"kept":[0,2]})");
  good_.architecture.emplace_back("feature_names", R"(["bm25","constant","age"])");
  const LoadedModel loaded = read_back(good_);
  EXPECT_EQ(loaded.normaliser.kind, Normalisation::kQueryMinmax);
  EXPECT_EQ(loaded.normaliser.kept, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(loaded.feature_names, (std::vector<std::string>{"bm25", "constant", "age"}));

  refused("normalisation", R"({"kind":"none","features":3})",
          "yields 3 inputs, but its first layer takes 2");
  refused("normalisation", "{}", "Its 'kind' is missing or not a string.");
  for (const char* names : {R"(["a","b"])", R"(["a","b",3])", "a b c"})
    refused("feature_names", names, "not a list of 3 names");
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

// Trees of LightGBM and XGBoost.

const std::filesystem::path kTreeFolder = "tests/models/files/trees";
constexpr int kTreeFeatures = 4;
const std::vector<std::string> kTreeModels = {"lightgbm-plain.txt", "lightgbm-zeros.txt",
                                              "lightgbm-forest.txt", "xgboost-trees.json",
                                              "xgboost-dart.json"};

std::string tree_file(const std::string& name) {
  return read_file(kTreeFolder / name);
}

/// The numbers of each line of documents.txt, which make_trees.py wrote: values, then scores.
std::vector<std::vector<double>> tree_lines() {
  std::vector<std::vector<double>> lines(1);
  const std::string text = tree_file("documents.txt");
  for (const char* next = text.c_str(); *next != '\0'; ++next) {
    if (*next == '\n') lines.emplace_back();
    if (*next == '\n' || *next == ' ' || *next == '|') continue;
    char* end = nullptr;
    lines.back().push_back(std::strtod(next, &end));
    next = end - 1;
  }
  lines.pop_back();
  return lines;
}

double score_of(const ExternalModel& model, const std::vector<float>& doc) {
  double score = 0.0;
  model.score(doc, {&score, 1});
  return score;
}

std::string tree_refusal(const std::string& bytes) {
  return message_of<DataError>([&] { read_trees(bytes, "trees"); });
}

std::string with_change(std::string text, const std::string& from, const std::string& to) {
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

TEST(BoostedTreesTest, ScoresAsLightGbmAndXgBoostDo) {
  const auto documents = tree_lines();
  ASSERT_EQ(documents.size(), 24U);
  for (std::size_t number = 0; number < kTreeModels.size(); ++number) {
    const std::string bytes = tree_file(kTreeModels[number]);
    ASSERT_TRUE(is_tree_file(bytes));
    const ExternalModel model = read_trees(bytes, kTreeModels[number]);
    ASSERT_EQ(model.features, kTreeFeatures);
    EXPECT_EQ(model.feature_names.empty(), kTreeModels[number].starts_with("lightgbm"));
    for (const std::vector<double>& line : documents) {
      ASSERT_EQ(line.size(), kTreeFeatures + kTreeModels.size());
      const std::vector<float> doc(line.begin(), line.begin() + kTreeFeatures);
      const double expected = line[kTreeFeatures + number];
      EXPECT_NEAR(score_of(model, doc), expected, 1e-6 * std::max(1.0, std::abs(expected)))
          << kTreeModels[number];
    }
  }
}

TEST(BoostedTreesTest, RefusesWhatIsCutShort) {
  for (const std::string& name : kTreeModels) {
    const std::string whole = tree_file(name);
    const std::size_t needed = name.ends_with("txt") ? whole.find("end of trees") + 12 : whole.size();
    for (std::size_t size = 8; size < needed; size += 1 + needed / 97)
      EXPECT_NE(tree_refusal(whole.substr(0, size)), kNoError) << name << " " << size;
  }
  const std::string text = tree_file("lightgbm-plain.txt");
  EXPECT_EQ(tree_refusal(text.substr(0, text.find("Tree=2"))),
            "trees: olrank cannot use this model of trees. It is cut short after 2 trees.");
  EXPECT_EQ(tree_refusal("{\"learner\": {"),
            "trees: olrank cannot use this model of trees. It is no whole JSON text: it may be cut short.");
}

TEST(BoostedTreesTest, RefusesTreesOfOtherKinds) {
  const char* light = "lightgbm-plain.txt";
  const char* boosted = "xgboost-trees.json";
  const std::array<const char*, 4> cases[] = {
      {light, "num_cat=0", "num_cat=1", "splits by categories"},
      {light, "is_linear=0", "is_linear=1", "linear functions"},
      {light, "num_tree_per_iteration=1", "num_tree_per_iteration=3", "several scores a document"},
      {boosted, R"("split_type":[0)", R"("split_type":[1)", "splits by categories"},
      {boosted, R"("name":"gbtree")", R"("name":"gblinear")", "'gblinear'"},
      {boosted, R"("num_class":"0")", R"("num_class":"3")", "several scores"}};
  for (const auto& [file, from, to, part] : cases)
    EXPECT_TRUE(contains(tree_refusal(with_change(tree_file(file), from, to)), part));
}

TEST(BoostedTreesTest, RefusesNodesThatLeadNowhere) {
  const std::string light = tree_file("lightgbm-plain.txt");
  const std::size_t left = light.find("left_child=") + 11;
  const auto with_left = [&](const std::string& child) {
    return std::string(light).replace(left, light.find(' ', left) - left, child);
  };
  for (const char* child : {"0", "77", "-77"})
    EXPECT_EQ(tree_refusal(with_left(child)),
              "trees: olrank cannot use this model of trees. The nodes of tree 0 are damaged.");
  EXPECT_TRUE(contains(tree_refusal(with_left("x")), "Its left_child has 'x' where a number belongs."));
  const std::size_t feature = light.find("split_feature=") + 14;
  EXPECT_TRUE(contains(tree_refusal(std::string(light).replace(feature, 1, "9")), "splits feature 9 of 4"));
}

TEST(BoostedTreesTest, DamagedFilesAreRefusedOrGiveFiniteScores) {
  const std::vector<float> doc = {0.5F, -1.0F, 0.0F, 2.0F};
  const std::string_view letters = "0123456789-.=e \n[]{},";
  int refused = 0;
  constexpr std::uint32_t kMutants = 2000;
  for (std::uint32_t number = 0; number < kMutants; ++number) {
    RngStream draws(make_key({.seed = 4, .purpose = Purpose::kProbe}), number);
    std::string bytes = tree_file(kTreeModels[number % kTreeModels.size()]);
    for (int change = 0; change < 2; ++change)
      bytes[draws.index(static_cast<std::uint32_t>(bytes.size()))] =
          letters[draws.index(static_cast<std::uint32_t>(letters.size()))];
    try {
      EXPECT_TRUE(std::isfinite(score_of(read_trees(bytes, "trees"), doc))) << number;
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 200);
}

TEST(BoostedTreesTest, IsAModelFileOfRawValues) {
  const LoadedModel model = load_model(kTreeFolder / "xgboost-trees.json", ModelCode::kRefuse);
  EXPECT_EQ(model.normaliser.kind, Normalisation::kNone);
  EXPECT_EQ(model.normaliser.features, kTreeFeatures);
  EXPECT_EQ(model.feature_names, (std::vector<std::string>{"bm25", "clicks", "age", "price"}));
  EXPECT_TRUE(contains(message_of<InvalidArgument>([&] { require_own_function(model, "C"); }), "trees"));
}

}  // namespace
}  // namespace olrank
