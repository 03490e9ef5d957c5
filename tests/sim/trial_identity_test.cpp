#include "sim/trial_settings.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace olrank {
namespace {

TEST(TrialIdentityTest, PathsAreAsDocumented) {
  EXPECT_EQ((TrialIdentity{"full", "perfect", 2, 13}).path(), "trials/full/perfect/fold2/seed13");
}

TEST(RecipeTest, DescribesFirstDifference) {
  const Recipe here = {{"version", "1.0"}, {"ranker", "alpha = 0.1\nlambda = 10\n"}, {"trial", "fold 1"}};
  EXPECT_EQ(recipe_difference(here, here), "");
  EXPECT_EQ(recipe_difference({}, {}), "");
  Recipe there = here;
  there[1].second = "alpha = 0.1\nlambda = 0.1\n";
  EXPECT_EQ(recipe_difference(there, here), "the ranker: 'lambda = 0.1' there, 'lambda = 10' here");
  EXPECT_EQ(recipe_difference(here, there), "the ranker: 'lambda = 10' there, 'lambda = 0.1' here");
  // The first of several.
  there[0].second = "0.9";
  EXPECT_EQ(recipe_difference(there, here), "the version: '0.9' there, '1.0' here");
  // A text that begins another one.
  there = here;
  there[1].second = "alpha = 0.1\n";
  EXPECT_EQ(recipe_difference(there, here), "the ranker: '' there, 'lambda = 10' here");
  EXPECT_EQ(recipe_difference(here, there), "the ranker: 'lambda = 10' there, '' here");
  there[1].second = "";
  EXPECT_EQ(recipe_difference(there, here), "the ranker: '' there, 'alpha = 0.1' here");
  // Entries that one of them does not have.
  there = here;
  there.pop_back();
  EXPECT_EQ(recipe_difference(there, here), "the trial: '' there, 'fold 1' here");
  EXPECT_EQ(recipe_difference(here, there), "the trial, which is missing here");
  // Texts that differ in nothing but the end of the last line still differ.
  there = here;
  there[2].second = "fold 1\n";
  EXPECT_NE(recipe_difference(there, here), "");
}

TEST(RecipeTest, RoundTripsInOrder) {
  const Recipe recipe = {{"version", "1.0"}, {"b", "\"α\"\n\\"}, {"a", ""}};
  EXPECT_EQ(parse_recipe(recipe_json(recipe), "there"), recipe);
  EXPECT_EQ(parse_recipe(recipe_json({}), "there"), Recipe{});
  for (const char* wrong : {"", "[]", "7", "{\"a\": 1}", "{\"a\": \"b\"", "null"}) {
    try {
      parse_recipe(wrong, "there");
      ADD_FAILURE() << wrong << " was taken for a recipe";
    } catch (const IoError& error) {
      EXPECT_EQ(std::string(error.what()).find("there: The "), 0U) << error.what();
      EXPECT_NE(std::string(error.what()).find("recipe"), std::string::npos) << error.what();
    }
  }
}

TEST(RecipeTest, RoundsAreALineOfTheProtocol) {
  const Recipe fifty = {{"protocol", "name = \"paper\"\nrounds = 50\ncutoff = 10\n"},
                        {"ranker", "rounds = 7\n"}};
  const Recipe eighty = {{"protocol", "name = \"paper\"\nrounds = 80\ncutoff = 10\n"},
                         {"ranker", "rounds = 7\n"}};
  EXPECT_EQ(rounds_of(fifty), 50);
  EXPECT_EQ(rounds_of({{"ranker", "rounds = 7\n"}}), 0);
  EXPECT_EQ(without_rounds(fifty), without_rounds(eighty));
  EXPECT_EQ(text_of(without_rounds(fifty), "ranker"), "rounds = 7\n");
  Recipe other = eighty;
  other.front().second += "discount = 1.0\n";
  EXPECT_NE(without_rounds(fifty), without_rounds(other));
}

}  // namespace
}  // namespace olrank
