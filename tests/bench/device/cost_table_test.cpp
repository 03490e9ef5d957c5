#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "bench/device/device_case.h"
#include "tests/support/message_of.h"

// The table of docs/evidence/GPU-RECORD.md: where each operation of the engine is computed and why is
// written there by hand; what it needs at least, by the counts of its case, and how long that takes an H200
// at the rates of its data sheet are computed here. With OLRANK_REWRITE_TABLES=1 the test rewrites them.
namespace olrank {
namespace {

constexpr const char* kPage = "docs/evidence/GPU-RECORD.md";
const std::string kBegin = "<!-- table of operations -->\n";
const std::string kEnd = "<!-- end of table -->";

// An H200's data sheet states these rates.
constexpr double kBytesPerSecond = 4.8e12;
constexpr double kOperationsPerSecond = 67e12;  // float32, and double on tensor cores
constexpr double kSplitFloatsPerSecond = 494e12 / 3.0;

/// The papers' network, a long query and three ages of a trial.
DeviceSizes table_sizes() {
  DeviceSizes sizes;
  sizes.docs = 120;
  sizes.pairs = {1000, 5000, 10'000};
  return sizes;
}

double least_seconds(const DeviceCase& one) {
  const double rate =
      one.least.arithmetic == Arithmetic::kTf32x3 ? kSplitFloatsPerSecond : kOperationsPerSecond;
  return std::max(one.least.operations / rate, one.least.bytes / kBytesPerSecond);
}

std::int64_t pairs_of(const DeviceCase& one) {
  return parameter_of(one.parameters, "n");
}

/// Writes it with two digits, or all that are before the point.
std::string short_number(double value) {
  if (value == 0.0) return "0";
  if (value >= 99.5) return fmt::format("{:.0f}", value);
  const int digits = std::max(0, 1 - static_cast<int>(std::floor(std::log10(value))));
  return value < 0.01 ? "< 0.01" : fmt::format("{:.{}f}", value, digits);
}

/// One value for each of the table's n, or a single one where it does not depend on n.
std::string joined(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(short_number(value));
  if (std::set<std::string>(texts.begin(), texts.end()).size() == 1) return texts[0];
  return fmt::format("{}", fmt::join(texts, " / "));
}

class Costs {
 public:
  Costs() : cases_(device_cases(table_sizes())) {
    // cuSOLVER computes these alone; no case measures them.
    for (const char* name : {"factorisation/factorise", "factorisation/invert_factor"}) {
      for (const std::int64_t n : table_sizes().pairs) {
        const auto count = static_cast<double>(n);
        const double triangle = 8.0 * count * count;  // read and written
        cases_.push_back({name, {{"n", n}}, {count * count * count / 3.0, triangle}, {}, {}});
      }
    }
  }

  /// The cases of an operation with the fewest members, by n.
  std::vector<DeviceCase> of(const std::string& operation) const {
    std::vector<DeviceCase> found;
    for (const DeviceCase& one : cases_) {
      const bool same = !found.empty() && pairs_of(one) == pairs_of(found.back());
      const bool of_docs_alone = operation == "tangent_kernel/query_kernels" && pairs_of(one) == 0;
      if (one.name == operation && !same && !of_docs_alone) found.push_back(one);
    }
    return found;
  }

  /// The beginning of an operation's row, up to where it is computed.
  std::string row(const std::string& operation) const {
    std::vector<double> operations, bytes, seconds;
    for (const DeviceCase& one : of(operation)) {
      operations.push_back(1e-9 * one.least.operations);
      bytes.push_back(1e-6 * one.least.bytes);
      seconds.push_back(1e6 * least_seconds(one));
    }
    return fmt::format("| `{}` | {} | {} | {} |", operation, joined(operations), joined(bytes),
                       joined(seconds));
  }

  /// A round by these parts and J = 20 training steps.
  std::string round_row(const std::string& name, const std::vector<std::string>& parts) const {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < table_sizes().pairs.size(); ++i) {
      double seconds = 20.0 * least_seconds(of("training/step")[i]);
      for (const std::string& part : parts) {
        const auto cases = of(part);
        seconds += least_seconds(cases[std::min(i, cases.size() - 1)]);
      }
      texts.push_back(short_number(1e6 * seconds));
    }
    return fmt::format("| **{}** | | | **{}** | | |", name, fmt::join(texts, " / "));
  }

  /// The operations of the cases without those that are sums of others.
  std::set<std::string> operations() const {
    std::set<std::string> names;
    for (const DeviceCase& one : cases_)
      if (!one.name.starts_with("widths/") && !one.name.starts_with("training/")) names.insert(one.name);
    return names;
  }

 private:
  std::vector<DeviceCase> cases_;
};

/// The table with its numbers computed again; `left` are the operations that it has no row of.
std::string computed(const std::string& table, const Costs& costs, std::set<std::string>& left) {
  left = costs.operations();
  std::string text;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| `")) {
      const std::string operation = line.substr(3, line.find('`', 3) - 3);
      std::size_t end = 0;
      for (int column = 0; column < 4; ++column) end = line.find('|', end + 1);
      EXPECT_EQ(left.erase(operation), 1U) << "no case measures " << operation;
      line = costs.row(operation) + line.substr(end + 1);
    } else if (line.starts_with("| **a round, full")) {
      line = costs.round_row("a round, full covariance",
                             {"tangent_factors/tangent_factors", "widths/full-dual",
                              "inverse_factor/apply_tail", "inverse_factor/append_pairs"});
    } else if (line.starts_with("| **a round, diagonal")) {
      line = costs.round_row(
          "a round, diagonal covariance",
          {"tangent_factors/tangent_factors", "widths/diagonal", "diagonal_covariance/add_to_diagonal"});
    }
    text += line + "\n";
  }
  return text;
}

TEST(CostTableTest, IsTheTableOfTheDocuments) {
  std::ifstream file(kPage);
  std::string page(std::istreambuf_iterator<char>(file), {});
  const auto begin = page.find(kBegin);
  const auto end = page.find(kEnd, begin);
  ASSERT_NE(begin, std::string::npos) << kPage;
  ASSERT_NE(end, std::string::npos) << kPage;
  const auto first = begin + kBegin.size();
  const std::string before = page.substr(first, end - first);
  std::set<std::string> left;
  const std::string table = computed(before, Costs(), left);
  EXPECT_TRUE(left.empty()) << kPage << " does not say where " << *left.begin() << " is computed";
  if (std::getenv("OLRANK_REWRITE_TABLES") != nullptr) {
    page.replace(first, end - first, table);
    std::ofstream(kPage) << page;
    return;
  }
  EXPECT_EQ(before, table)
      << "OLRANK_REWRITE_TABLES=1 build/cpu/bin/tests/device_bench_test --gtest_filter='CostTableTest.*' "
         "rewrites it.";
}

// S = L⁻¹K for n = 10,000 and V = 120: n (n + 1) V operations at 67 TFLOP/s, L⁻¹ and twice K at 4.8 TB/s.
TEST(CostTableTest, HoldsTheArithmeticOfTheLargestProduct) {
  const std::string row = Costs().row("inverse_factor/apply_factor");
  EXPECT_TRUE(contains(row, "/ 12 |"));   // GFLOP
  EXPECT_TRUE(contains(row, "/ 419 |"));  // MB
  EXPECT_TRUE(contains(row, "/ 179 |"));  // µs
}

}  // namespace
}  // namespace olrank
