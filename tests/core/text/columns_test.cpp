#include "core/text/text_table.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace olrank {
namespace {

TEST(Columns, CountsCharactersNotBytes) {
  EXPECT_EQ(columns_of(""), 0);
  EXPECT_EQ(columns_of("0.4 ± 0.1"), 9);
  EXPECT_EQ(padded_left("±", 3), "  ±");
  EXPECT_EQ(padded_right("±", 3), "±  ");
  EXPECT_EQ(padded_right("four", 3), "four");
}

TEST(Shortened, KeepsBothEnds) {
  EXPECT_EQ(shortened("olranknet-diagonal", 18), "olranknet-diagonal");
  EXPECT_EQ(shortened("olranknet-diagonal", 9), "olra…onal");
  EXPECT_EQ(shortened("olranknet-diagonal", 8), "olra…nal");
  EXPECT_EQ(shortened("±±±±", 3), "±…±");
  EXPECT_EQ(shortened("abc", 1), "…");
  EXPECT_EQ(shortened("abc", 0), "");
}

TEST(Shortened, KeepsNamesApart) {
  const std::vector<std::string> names = {"net-alpha-0.1-wide-with-lambda-10",
                                          "net-alpha-0.2-wide-with-lambda-10", "short"};
  const std::vector<std::string> cut = shortened_apart(names, 16);
  EXPECT_NE(cut[0], cut[1]);
  EXPECT_EQ(cut[2], "short");
  for (const std::string& name : cut) EXPECT_LE(columns_of(name), 16) << name;
  // Where every cut makes them equal, they are at least short enough.
  EXPECT_EQ(shortened_apart({"aaaaXaaaa", "aaaaYaaaa"}, 3), (std::vector<std::string>{"a…a", "a…a"}));
  EXPECT_EQ(shortened_apart({"ab"}, 0), (std::vector<std::string>{""}));
}

TEST(Wrapped, BreaksAtBlanks) {
  EXPECT_EQ(wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(wrapped("one two three", 7, 2), "one two\n  three");
  EXPECT_EQ(wrapped("one\n\ntwo", 7), "one\n\ntwo");
  EXPECT_EQ(wrapped("", 7), "");
  EXPECT_EQ(wrapped("one two three", 0), "one two three");
  EXPECT_EQ(wrapped("  one two three", 7, 4), "  one\n    two\n    three");
}

TEST(Wrapped, BreaksLongWordsBehindSeparators) {
  EXPECT_EQ(wrapped("full|diagonal|none", 10), "full|\ndiagonal|\nnone");
  EXPECT_EQ(wrapped("a/long/path b", 8), "a/long/\npath b");
  // A word without any separator stays whole.
  EXPECT_EQ(wrapped("indivisible", 4), "indivisible");
  EXPECT_EQ(wrapped("± ± ±", 3), "± ±\n±");
}

TEST(Wrapped, KeepsToItsColumns) {
  const std::string text =
      "Protocol paper; queries without a relevant document: zero; seeds 1, 2, 3; no intervals at all.";
  for (std::int64_t columns = 20; columns < 100; ++columns) {
    std::istringstream lines(wrapped(text, columns, 4));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), columns) << line;
  }
}

}  // namespace
}  // namespace olrank
