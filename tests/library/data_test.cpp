#include "olrank/data.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "olrank/evaluation.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

struct Arrays {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  std::vector<std::uint8_t> grades = {0, 2, 1};
  std::vector<std::int64_t> offsets = {0, 2, 3};

  RankingData data(std::vector<std::string> names = {}) const {
    return RankingData::of(nullptr, values, 2, grades, offsets, std::move(names));
  }
};

TEST(RankingDataTest, IsAViewOfArrays) {
  const Arrays arrays;
  const RankingData data = arrays.data();
  EXPECT_EQ(data.values().data(), arrays.values.data());
  EXPECT_EQ(data.docs(), 3);
  EXPECT_EQ(data.queries(), 2);
  EXPECT_EQ(data.features(), 2);
  EXPECT_EQ(data.name(1), "2");
  EXPECT_EQ(arrays.data({"jacket", "coat"}).name(1), "coat");
}

TEST(RankingDataTest, KeepsTheOwnerOfItsArraysAlive) {
  auto owner = std::make_shared<Arrays>();
  const std::weak_ptr<Arrays> watched = owner;
  auto data = std::make_unique<RankingData>(
      RankingData::of(owner, owner->values, 2, owner->grades, owner->offsets));
  owner.reset();
  EXPECT_FALSE(watched.expired());
  data.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(RankingDataTest, ReadsBackWhatItWrites) {
  const TemporaryFolder folder;
  const Arrays arrays;
  const RankingData data = arrays.data({"a", "b"});
  data.write(folder / "data.txt");
  EXPECT_EQ(RankingData::load((folder / "data.txt").string()).fingerprint(), data.fingerprint());
}

TEST(RankingDataTest, RefusesArraysThatDoNotFit) {
  const auto refused = [](auto change) {
    Arrays arrays;
    change(arrays);
    return message_of<InvalidArgument>([&] { arrays.data(); });
  };
  EXPECT_EQ(refused([](Arrays& arrays) { arrays.values.pop_back(); }),
            "There are 5 feature values for 3 grades and 2 features: give 6.");
  EXPECT_EQ(refused([](Arrays& arrays) {
              arrays.offsets = {0, 2};
            }),
            "The offsets of queries must begin with 0 and end with 3.");
  EXPECT_EQ(refused([](Arrays& arrays) {
              arrays.offsets = {0, 2, 2, 3};
            }),
            "Query 1 has no documents: leave it out.");
  EXPECT_EQ(refused([](Arrays& arrays) { arrays.values[3] = std::nanf(""); }),
            "Feature 2 of document 1 is not finite.");
  EXPECT_EQ(refused([](Arrays& arrays) { arrays.grades[2] = 32; }),
            "The grade of document 2 is 32: it must be 0 to 31.");
  EXPECT_EQ(message_of<InvalidArgument>([] { Arrays().data({"one"}); }),
            "There are 1 names for 2 queries.");
}

// The first query is ordered wrongly, the second has one relevant document.
TEST(MeasureScoresTest, GivesMeansAndTheValuesOfQueries) {
  const Arrays arrays;
  const MetricValues values = measure_scores(arrays.data(), std::vector<double>{2, 1, 0},
                                             {.at = {1, 2}, .metrics = {"map@1"}, .by_query = true});
  EXPECT_EQ(values.queries, 2);
  ASSERT_EQ(values.means.front().first, "ndcg@1");
  EXPECT_EQ(values.means.front().second, 0.5);
  EXPECT_EQ(values.by_query[0][0], 0.0);
  EXPECT_EQ(values.by_query[1][0], 1.0);
  EXPECT_NEAR(values.by_query[0][1], 1.0 / std::log2(3.0), 1e-15);
  EXPECT_EQ(values.means.back().first, "map@1");
  EXPECT_EQ(message_of<InvalidArgument>([&] {
              measure_scores(arrays.data(), std::vector<double>{2, 1, 0}, {.convention = "letr"});
            }).find("convention must be"),
            0U);
}

}  // namespace
}  // namespace olrank
