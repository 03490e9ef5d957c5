#include "core/feedback/pair_history.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

/// The item of each unit, items side by side, written out.
std::vector<std::int64_t> units_of(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> units;
  for (std::size_t item = 0; item < counts.size(); ++item)
    units.insert(units.end(), counts[item], static_cast<std::int64_t>(item));
  return units;
}

void expect_units(const CountTree& tree, const std::vector<std::int64_t>& counts) {
  const std::vector<std::int64_t> units = units_of(counts);
  ASSERT_EQ(tree.items(), std::ssize(counts));
  ASSERT_EQ(tree.total(), std::ssize(units));
  for (std::size_t unit = 0; unit < units.size(); ++unit)
    ASSERT_EQ(tree.item_at(static_cast<std::int64_t>(unit)), units[unit]) << unit;
}

TEST(CountTreeTest, FindsTheItemOfEveryUnitWhileCountsChange) {
  RngStream coins(make_key({.seed = 91, .purpose = Purpose::kProbe}), 0);
  CountTree tree;
  std::vector<std::int64_t> counts;
  for (int step = 0; step < 300; ++step) {
    if (counts.empty() || coins.index(3) == 0) {
      counts.push_back(coins.index(3));
      tree.append(counts.back());
    } else {
      const auto item = coins.index(static_cast<std::uint32_t>(counts.size()));
      const std::int64_t change = std::int64_t{coins.index(5)} - 2;
      if (counts[item] + change < 0) continue;
      counts[item] += change;
      tree.add(item, change);
    }
    expect_units(tree, counts);
  }
  EXPECT_GT(tree.total(), 100);
  tree.clear();
  expect_units(tree, {});
  tree.append(2);
  expect_units(tree, {2});
}

}  // namespace
}  // namespace olrank
