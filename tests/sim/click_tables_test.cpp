#include "sim/click_coins.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

using Row = std::vector<double>;

TEST(ClickTablesTest, MatchDocumentedTables) {
  const auto expect = [](const char* user, const Row& click, const Row& stop) {
    const ClickTable table = built_in_table(user, static_cast<int>(click.size()));
    EXPECT_EQ(table.click, click) << user << click.size();
    EXPECT_EQ(table.stop, stop) << user << click.size();
  };
  expect("perfect", {0, .2, .4, .8, 1}, {0, 0, 0, 0, 0});
  expect("perfect", {0, .5, 1}, {0, 0, 0});
  expect("perfect", {0, 1}, {0, 0});
  expect("navigational", {.05, .3, .5, .7, .95}, {.2, .3, .5, .7, .9});
  expect("navigational", {.05, .5, .95}, {.2, .5, .9});
  expect("navigational", {.05, .95}, {.2, .9});
  expect("informational", {.4, .6, .7, .8, .9}, {.1, .2, .3, .4, .5});
  expect("informational", {.4, .7, .9}, {.1, .3, .5});
  expect("informational", {.4, .9}, {.1, .5});
  EXPECT_EQ(built_in_users(), (std::vector<std::string>{"perfect", "navigational", "informational"}));
}

TEST(ClickTablesTest, LargestGradeSelectsTableUnlessStated) {
  const int by_data[] = {2, 2, 3, 5, 5};
  for (int grade = 0; grade <= 4; ++grade) {
    EXPECT_EQ(table_grades("perfect", grade, 0), by_data[grade]) << grade;
    EXPECT_EQ(table_grades("perfect", grade, 5), 5) << grade;
  }
  EXPECT_EQ(table_grades("perfect", 1, 3), 3);
}

TEST(ClickTablesTest, RefusesGradesBeyondTheTable) {
  EXPECT_EQ(message_of<InvalidArgument>([] { table_grades("perfect", 6, 0); }),
            "The data has grade 6, but the tables of the built-in user 'perfect' end at grade 4. Define a "
            "[[user]] with 7 click probabilities.");
  EXPECT_EQ(
      message_of<InvalidArgument>([] { table_grades("navigational", 3, 3); }),
      "The data has grade 3, but with clicks.grades = 3 the table of the built-in user 'navigational' ends "
      "at grade 2. Raise clicks.grades, or define a [[user]] with 4 click probabilities.");
  EXPECT_EQ(message_of<InvalidArgument>([] { table_grades("perfect", 1, 4); }),
            "clicks.grades must be 2, 3 or 5, or 0 to follow the data's largest grade, not 4.");
  EXPECT_NE(message_of<InvalidArgument>([] { table_grades("perfect", 1, -1); }), kNoError);
  EXPECT_NE(message_of<InvalidArgument>([] { built_in_table("perfect", 4); }), kNoError);
  EXPECT_NE(message_of<InvalidArgument>([] { built_in_table("perfekt", 2); }), kNoError);
}

}  // namespace
}  // namespace olrank
