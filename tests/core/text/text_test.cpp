#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/text/message_text.h"
#include "core/text/text_table.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

TEST(Base64, IsThatOfRfc4648) {
  for (const auto& [bytes, text] : {std::pair<std::string, std::string>{"", ""},
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"},
                                    {"\xfb\xff\xbf", "+/+/"}}) {
    EXPECT_EQ(base64_of(bytes), text);
    EXPECT_EQ(bytes_of_base64(text), bytes);
  }
}

TEST(Base64, ReadsBackEveryByte) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(bytes_of_base64(base64_of(bytes.substr(size))), bytes.substr(size));
}

TEST(Base64, RefusesOtherText) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg==Zg==", "Zm9v\n", "Zm9-", "Z===", "====", "Zh==", "Zm9="})
    EXPECT_EQ(bytes_of_base64(text), std::nullopt) << text;
}

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

std::int64_t widest_line(const std::string& text) {
  std::int64_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, columns_of(line));
  return widest;
}

TEST(Wrapped, KeepsToItsColumns) {
  const std::string text =
      "Protocol paper; queries without a relevant document: zero; seeds 1, 2, 3; no intervals at all.";
  for (std::int64_t columns = 20; columns < 100; ++columns)
    EXPECT_LE(widest_line(wrapped(text, columns, 4)), columns);
}

TEST(Csv, WritesNumbersThatReadBackExactly) {
  EXPECT_EQ(csv_number(0.1), "0.1");
  EXPECT_EQ(csv_number(1.0 / 3.0), "0.3333333333333333");
  EXPECT_EQ(csv_number(std::numeric_limits<double>::quiet_NaN()), "");
  EXPECT_EQ(csv_number(std::numeric_limits<double>::infinity()), "");
  EXPECT_EQ(csv_number(std::optional<double>()), "");
  EXPECT_EQ(csv_number(std::optional<std::int64_t>(151234)), "151234");
}

TEST(Csv, SplitsLines) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> lines = {
      {"a,b", {"a", "b"}},
      {"", {""}},
      {"a,,c,\r", {"a", "", "c", ""}},
      {"\"a,b\",\"say \"\"x\"\"\",\"\"", {"a,b", "say \"x\"", ""}}};
  std::vector<std::string> fields;
  for (const auto& [line, expected] : lines) {
    EXPECT_EQ(split_csv(line, fields), "") << line;
    EXPECT_EQ(fields, expected) << line;
  }
}

TEST(Csv, QuotesOnlyFieldsThatNeedItAndReadsThem) {
  std::vector<std::string> fields;
  for (const auto& [text, written] :
       std::vector<std::pair<std::string, std::string>>{{"plain", "plain"},
                                                        {"", ""},
                                                        {"a,b", "\"a,b\""},
                                                        {"say \"x\"", "\"say \"\"x\"\"\""},
                                                        {"\"", "\"\"\"\""},
                                                        {"two\nlines", "\"two\nlines\""},
                                                        {"carriage\rreturn", "\"carriage\rreturn\""}}) {
    EXPECT_EQ(csv_field(text), written);
    EXPECT_EQ(split_csv(written + "," + written, fields), "");
    EXPECT_EQ(fields, (std::vector<std::string>{text, text}));
  }
}

TEST(Csv, SaysWhichFieldIsBroken) {
  std::vector<std::string> fields;
  EXPECT_EQ(split_csv("a,\"two", fields), "Field 2 begins with a quote that does not end on this line.");
  EXPECT_EQ(split_csv("\"a\"b", fields), "Field 1 goes on after its closing quote.");
  EXPECT_TRUE(contains(split_csv("a,b\"c\"", fields), "Field 2 has a quote within"));
}

TEST(NearestTest, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("rum", "run"), 1);
  EXPECT_EQ(edit_distance("widht", "width"), 1);  // neighbours swapped
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("eval-every", "EVAL_every"), 0);
}

TEST(NearestTest, TakesFirstOnTies) {
  const std::vector<std::string> names = {"alpha", "alphb", "beta"};
  EXPECT_EQ(nearest_name("alph", names), "alpha");
  EXPECT_EQ(nearest_name("bet", names), "beta");
  EXPECT_EQ(nearest_name("x", {}), "");
}

TEST(NearestTest, LeadingWordsMayBeMissing) {
  const std::vector<std::string> flags = {"--max-memory", "--protocol-eval-every", "--seeds"};
  EXPECT_EQ(nearest_name("--eval-every", flags), "--protocol-eval-every");
  EXPECT_EQ(nearest_name("--every", flags), "--protocol-eval-every");
  EXPECT_EQ(nearest_name("--seed", flags), "--seeds");
  EXPECT_EQ(nearest_name("every", std::vector<std::string>{"very", "delivery"}), "very");  // no whole word
  EXPECT_EQ(nearest_name("--", flags), "--seeds");
}

TEST(NearestTest, EndsMayBeMissing) {
  EXPECT_EQ(nearest_name("exp", std::vector<std::string>{"linear", "exponential"}), "exponential");
  EXPECT_EQ(nearest_name("trec", std::vector<std::string>{"olrank", "trec_eval", "ranklib"}), "trec_eval");
  EXPECT_EQ(nearest_name("e", std::vector<std::string>{"err", "a"}), "a");
}

TEST(NearestTest, SuggestsOnlyWhatMayBeMeant) {
  const std::vector<std::string> flags = {"--alpha", "--c1", "--set", "--fold", "--protocol-eval-every"};
  const std::vector<std::string> fields = {"query", "k", "id"};
  expect_cases("core/refusals.txt", "near names", [&](const std::string& name) {
    return std::string(near_name(name, name.starts_with('-') ? flags : fields));
  });
  EXPECT_EQ(near_name("x", {}), "");
  EXPECT_EQ(did_you_mean("banana", flags), "No known name is close to it.");
}

TEST(NearestTest, JoinsNames) {
  EXPECT_EQ(joined(std::vector<std::string>{}), "");
  EXPECT_EQ(joined(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(joined(std::vector<std::string>{"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(joined(std::vector<std::string>{"a", "b"}, " or "), "a or b");
}

TEST(MustBeOneOf, ListsTheChoicesAndSuggestsTheNearest) {
  const std::vector<std::string> choices = {"offline", "online", "both"};
  EXPECT_EQ(did_you_mean("onlin", choices), "Did you mean 'online'?");
  EXPECT_EQ(must_be_one_of("onlin", choices),
            "must be offline, online or both, not 'onlin'. Did you mean 'online'?");
  EXPECT_EQ(must_be_one_of("banana", choices), "must be offline, online or both, not 'banana'.");
}

TextTable table_of_two() {
  TextTable table({{.header = "clicks", .is_name = true},
                   {.header = "ranker", .is_name = true},
                   {.header = "trials", .dropped = 2},
                   {.header = "ndcg@10"},
                   {.header = "rounds/s", .dropped = 1}});
  table.add({"perfect", "olranknet-with-a-long-name-full", "2", "0.4914 ± 0.0081", "21"});
  table.add({"perfect", "olranknet-with-a-long-name-diag", "2", "0.4871 ± 0.0007", "9683"});
  return table;
}

TEST(TextTable, AlignsItsColumns) {
  EXPECT_EQ(table_of_two().fitted(0).text,
            "clicks   ranker                           trials          ndcg@10  rounds/s\n"
            "perfect  olranknet-with-a-long-name-full       2  0.4914 ± 0.0081        21\n"
            "perfect  olranknet-with-a-long-name-diag       2  0.4871 ± 0.0007      9683\n");
}

TEST(TextTable, ShortensNamesBeforeItDropsColumns) {
  const auto fitted = table_of_two().fitted(65);
  EXPECT_TRUE(fitted.hidden.empty());
  EXPECT_EQ(widest_line(fitted.text), 65);
  EXPECT_TRUE(contains(fitted.text, "olranknet-…-name-full"));
}

TEST(TextTable, DropsColumnsInOrder) {
  const auto narrower = table_of_two().fitted(56);
  EXPECT_EQ(narrower.hidden, (std::vector<std::string>{"rounds/s"}));
  EXPECT_LE(widest_line(narrower.text), 56);
  const auto narrow = table_of_two().fitted(44);
  EXPECT_EQ(narrow.hidden, (std::vector<std::string>{"rounds/s", "trials"}));
  EXPECT_LE(widest_line(narrow.text), 44);
  EXPECT_TRUE(contains(narrow.text, "0.4914 ± 0.0081"));
}

TEST(TextTable, SaysWhatItHides) {
  EXPECT_EQ(hidden_columns_text({}, 80), "");
  EXPECT_EQ(hidden_columns_text({"rounds/s", "trials"}, 80),
            "Not shown within 80 columns: rounds/s, trials; --wide shows all.\n");
}

}  // namespace
}  // namespace olrank
