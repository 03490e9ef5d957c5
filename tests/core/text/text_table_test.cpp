#include "core/text/text_table.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace olrank {
namespace {

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

std::int64_t widest_line(const std::string& text) {
  std::int64_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, columns_of(line));
  return widest;
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
  EXPECT_NE(fitted.text.find("olranknet-…-name-full"), std::string::npos) << fitted.text;
}

TEST(TextTable, DropsColumnsInOrder) {
  const auto narrower = table_of_two().fitted(56);
  EXPECT_EQ(narrower.hidden, (std::vector<std::string>{"rounds/s"}));
  EXPECT_LE(widest_line(narrower.text), 56);
  const auto narrow = table_of_two().fitted(44);
  EXPECT_EQ(narrow.hidden, (std::vector<std::string>{"rounds/s", "trials"}));
  EXPECT_LE(widest_line(narrow.text), 44);
  EXPECT_NE(narrow.text.find("0.4914 ± 0.0081"), std::string::npos);
}

TEST(TextTable, SaysWhatItHides) {
  EXPECT_EQ(hidden_columns_text({}, 80), "");
  EXPECT_EQ(hidden_columns_text({"rounds/s", "trials"}, 80),
            "Not shown within 80 columns: rounds/s, trials; --wide shows all.\n");
}

}  // namespace
}  // namespace olrank
