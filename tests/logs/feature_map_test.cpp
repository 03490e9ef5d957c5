#include "logs/list_features.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace olrank {
namespace {

FeedbackRecord list_with(const std::string& names, std::vector<float> inputs) {
  FeedbackRecord record;
  record.docs = {{"a", false}, {"b", false}};
  record.feature_names = names;
  record.columns = std::ssize(inputs) / 2;
  record.inputs = std::move(inputs);
  return record;
}

TEST(FeatureMap, PutsInputsInTheOrderOfTheModel) {
  FeatureMap map({{"price", "age"}, {0.5F, -1.0F}, {"colour"}, {{"cost", "price"}}});
  const auto mapped = [&map](FeedbackRecord record) {
    EXPECT_EQ(map.apply(record), "");
    EXPECT_EQ(record.feature_names, R"(["price","age"])");
    EXPECT_EQ(record.columns, 2);
    return record.inputs;
  };
  using Row = std::vector<float>;
  EXPECT_EQ(mapped(list_with(R"(["price","age"])", {1, 2, 3, 4})), (Row{1, 2, 3, 4}));
  EXPECT_EQ(mapped(list_with(R"(["age","price"])", {1, 2, 3, 4})), (Row{2, 1, 4, 3}));
  EXPECT_EQ(mapped(list_with(R"(["age","cost"])", {1, 2, 3, 4})), (Row{2, 1, 4, 3}));
  EXPECT_EQ(mapped(list_with(R"(["price"])", {1, 2})), (Row{1, -1, 2, -1}));
  EXPECT_EQ(mapped(list_with(R"(["colour=red","age","colour[0]"])", {7, 1, 7, 7, 2, 7})),
            (Row{0.5F, 1, 0.5F, 2}));
  EXPECT_EQ(mapped(list_with("", {1, 2, 3, 4})), (Row{1, 2, 3, 4}));  // positions decide
}

TEST(FeatureMap, RefusesWhatTheModelLacks) {
  FeatureMap map({{"price", "age"}, {}, {"colour"}, {{"cost", "price"}}});
  const auto wrong = [&map](const std::string& names, std::vector<float> inputs) {
    FeedbackRecord record = list_with(names, std::move(inputs));
    return map.apply(record);
  };
  EXPECT_TRUE(wrong(R"(["price","colours"])", {1, 2, 3, 4})
                  .starts_with("The list has the feature 'colours', which the model lacks: "));
  EXPECT_EQ(wrong(R"(["price","cost"])", {1, 2, 3, 4}), "The list has the feature 'price' twice.");
  EXPECT_EQ(wrong(R"(["age"])", {1, 2, 3, 4}),
            "The list has 2 inputs per document and 1 name in 'feature_names'.");
  EXPECT_EQ(wrong(R"(["age"])", {1, 2}), "");  // a refusal does not last
}

TEST(FeatureMap, LeavesListsOfAModelWithoutNamesAsTheyAre) {
  FeatureMap map({});
  FeedbackRecord record = list_with(R"(["age","price"])", {1, 2, 3, 4});
  const FeedbackRecord before = record;
  EXPECT_EQ(map.apply(record), "");
  EXPECT_EQ(record, before);
}

TEST(FeatureMap, NamesListsWithoutNamesByTheFirstOnes) {
  FeatureMap map({{"age", "new"}, {0.0F, 9.0F}, {"price"}, {}, "advice", {"price", "age"}});
  FeedbackRecord record = list_with("", {1, 2, 3, 4});
  EXPECT_EQ(map.apply(record), "");
  EXPECT_EQ(record.inputs, (std::vector<float>{2, 9, 4, 9}));
}

TEST(FeatureNames, TellFeaturesApartUnlessTheyCountThem) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(telling_names({"price", "age"}), (Names{"price", "age"}));
  EXPECT_EQ(telling_names({"f1", "f2"}), Names());
  EXPECT_EQ(telling_names({"f2", "f1"}), (Names{"f2", "f1"}));
  EXPECT_EQ(telling_names({"price", "7"}), Names());
  FittedNormaliser kept;
  kept.features = 3;
  kept.kept = {0, 2};
  EXPECT_EQ(names_of_inputs({"a", "b", "c"}, kept), (Names{"a", "c"}));
}

}  // namespace
}  // namespace olrank
