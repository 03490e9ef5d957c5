#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/random/rng_stream.h"
#include "models/files/boosted_trees.h"
#include "models/files/model_file.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

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

std::string tree_refusal(const std::string& bytes) {
  return message_of<DataError>([&] { BoostedTrees::parse(bytes, "trees"); });
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
    ASSERT_TRUE(BoostedTrees::is_file(bytes));
    const BoostedTrees model = BoostedTrees::parse(bytes, kTreeModels[number]);
    ASSERT_EQ(model.features(), kTreeFeatures);
    EXPECT_EQ(model.feature_names().empty(), kTreeModels[number].starts_with("lightgbm"));
    for (const std::vector<double>& line : documents) {
      ASSERT_EQ(line.size(), kTreeFeatures + kTreeModels.size());
      const std::vector<float> doc(line.begin(), line.begin() + kTreeFeatures);
      const double expected = line[kTreeFeatures + number];
      EXPECT_NEAR(model.score(doc.data()), expected, 1e-6 * std::max(1.0, std::abs(expected)))
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
  const std::string light = tree_file("lightgbm-plain.txt");
  EXPECT_TRUE(contains(tree_refusal(with_change(light, "num_cat=0", "num_cat=1")), "splits by categories"));
  EXPECT_TRUE(contains(tree_refusal(with_change(light, "is_linear=0", "is_linear=1")), "linear functions"));
  EXPECT_TRUE(
      contains(tree_refusal(with_change(light, "num_tree_per_iteration=1", "num_tree_per_iteration=3")),
               "several scores a document"));
  const std::string boosted = tree_file("xgboost-trees.json");
  EXPECT_TRUE(contains(tree_refusal(with_change(boosted, "\"split_type\":[0", "\"split_type\":[1")),
                       "splits by categories"));
  EXPECT_TRUE(contains(tree_refusal(with_change(boosted, "\"name\":\"gbtree\"", "\"name\":\"gblinear\"")),
                       "'gblinear'"));
  EXPECT_TRUE(contains(tree_refusal(with_change(boosted, "\"num_class\":\"0\"", "\"num_class\":\"3\"")),
                       "several scores"));
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
      EXPECT_TRUE(std::isfinite(BoostedTrees::parse(bytes, "trees").score(doc.data()))) << number;
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
