#include "bench/device/cost_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

// The table of docs/evidence/GPU-RECORD.md follows from the counts of the device bench. With
// OLRANK_REWRITE_TABLES=1 the test rewrites it.
namespace olrank {
namespace {

constexpr const char* kPage = "docs/evidence/GPU-RECORD.md";
const std::string kBegin = "<!-- table of operations -->\n";
const std::string kEnd = "<!-- end of table -->";

TEST(CostTableTest, IsTheTableOfTheDocuments) {
  std::ifstream file(kPage);
  std::string page(std::istreambuf_iterator<char>(file), {});
  const auto begin = page.find(kBegin);
  const auto end = page.find(kEnd, begin);
  ASSERT_NE(begin, std::string::npos) << kPage;
  ASSERT_NE(end, std::string::npos) << kPage;
  const auto first = begin + kBegin.size();
  const std::string table = cost_table();
  if (std::getenv("OLRANK_REWRITE_TABLES") != nullptr) {
    page.replace(first, end - first, table);
    std::ofstream(kPage) << page;
    return;
  }
  EXPECT_EQ(page.substr(first, end - first), table)
      << "OLRANK_REWRITE_TABLES=1 build/cpu/bin/tests/device_bench_test --gtest_filter='CostTableTest.*' "
         "rewrites it.";
}

// S = L⁻¹K for n = 10,000 and V = 120: n (n + 1) V operations at 67 TFLOP/s, L⁻¹ and twice K at 4.8 TB/s.
TEST(CostTableTest, HoldsTheArithmeticOfTheLargestProduct) {
  const std::string table = cost_table();
  const auto begin = table.find("| `inverse_factor/apply_factor` |");
  ASSERT_NE(begin, std::string::npos);
  const std::string row = table.substr(begin, table.find('\n', begin) - begin);
  EXPECT_NE(row.find("/ 12 |"), std::string::npos) << row;   // GFLOP
  EXPECT_NE(row.find("/ 419 |"), std::string::npos) << row;  // MB
  EXPECT_NE(row.find("/ 179 |"), std::string::npos) << row;  // µs
}

}  // namespace
}  // namespace olrank
