#include "core/feedback/examination.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/random/rng_stream.h"

namespace olrank {
namespace {

/// Lists of ten documents that users click with the probabilities `of_users`, while `predicted` were
/// predicted.
class Lists {
 public:
  explicit Lists(std::uint64_t seed) : draws_(make_key({.seed = seed, .purpose = Purpose::kProbe}), 0) {}

  /// Whether the alarm rings within as many lists, and after how many.
  int ring(ChangeAlarm& alarm, int lists, double (*of_users)(double)) {
    std::vector<double> predicted(10);
    std::vector<std::uint8_t> clicks(10);
    for (int list = 1; list <= lists; ++list) {
      for (std::size_t rank = 0; rank < predicted.size(); ++rank) {
        predicted[rank] = 0.05 + 0.9 * draws_.uniform();
        clicks[rank] = draws_.uniform() < of_users(predicted[rank]) ? 1 : 0;
      }
      if (alarm.learn(predicted, clicks)) return list;
    }
    return 0;
  }

 private:
  RngStream draws_;
};

// A false alarm every 20 million lists: 1.5 % that one of these 300,000 rings.
TEST(ChangeAlarmTest, IsSilentWhileNothingChanges) {
  ChangeAlarm right;
  EXPECT_EQ(Lists(1).ring(right, 150'000, [](double p) { return p; }), 0);
  ChangeAlarm always_wrong;
  EXPECT_EQ(Lists(2).ring(always_wrong, 150'000, [](double p) { return 0.5 * p; }), 0);
}

TEST(ChangeAlarmTest, RingsSoonAfterAChange) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Lists lists(seed);
    ChangeAlarm alarm;
    ASSERT_EQ(lists.ring(alarm, 1000, [](double p) { return p; }), 0);
    const int upside_down = lists.ring(alarm, 100, [](double p) { return 1.0 - p; });
    EXPECT_GE(upside_down, 5) << "a few surprises are no change";
    EXPECT_LT(upside_down, 25);
    // The next change rings, too.
    ASSERT_EQ(lists.ring(alarm, 1000, [](double p) { return p; }), 0);
    const int chance = lists.ring(alarm, 500, [](double) { return 0.1; });
    EXPECT_GT(chance, 0);
    EXPECT_LT(chance, 100);
  }
}

// Few clicks have skewed surprises.
TEST(ChangeAlarmTest, IsSilentWithFewClicks) {
  for (const double share : {0.05, 0.01, 0.002}) {
    ChangeAlarm alarm;
    RngStream draws(make_key({.seed = 3, .purpose = Purpose::kProbe}), 0);
    const std::vector<double> predicted(10, share);
    std::vector<std::uint8_t> clicks(10);
    for (int list = 0; list < 50'000; ++list) {
      for (std::uint8_t& click : clicks) click = draws.uniform() < share ? 1 : 0;
      ASSERT_FALSE(alarm.learn(predicted, clicks)) << share << ' ' << list;
    }
  }
}

TEST(ChangeAlarmTest, NextAlarmsNeedMoreLists) {
  Lists lists(7);
  ChangeAlarm alarm;
  ASSERT_EQ(lists.ring(alarm, 2000, [](double p) { return p; }), 0);
  ASSERT_GT(lists.ring(alarm, 25, [](double p) { return 1.0 - p; }), 0);
  ASSERT_EQ(lists.ring(alarm, 200, [](double p) { return p; }), 0);
  EXPECT_EQ(lists.ring(alarm, 100, [](double p) { return 1.0 - p; }), 0);
}

TEST(ChangeAlarmTest, NoFewListsRing) {
  ChangeAlarm alarm;
  const std::vector<double> sure(1000, 0.0);
  for (int list = 0; list < 150; ++list)
    EXPECT_FALSE(alarm.learn(sure, std::vector<std::uint8_t>(1000, 0)));
  for (int list = 0; list < 9; ++list) EXPECT_FALSE(alarm.learn(sure, std::vector<std::uint8_t>(1000, 1)));
  EXPECT_FALSE(alarm.learn({}, {}));
}

TEST(ChangeAlarmTest, IsSavedWhole) {
  Lists lists(5);
  ChangeAlarm alarm;
  lists.ring(alarm, 300, [](double p) { return p; });
  lists.ring(alarm, 4, [](double p) { return 1.0 - p; });
  StateWriter saved;
  save_fields(alarm, saved, "alarm");
  StateReader state(saved.bytes(), "test");
  ChangeAlarm loaded;
  load_fields(loaded, state, "alarm");
  Lists same(6);
  Lists again(6);
  const int rang = same.ring(alarm, 100, [](double p) { return 1.0 - p; });
  EXPECT_EQ(rang, again.ring(loaded, 100, [](double p) { return 1.0 - p; }));
  EXPECT_GT(rang, 0);
  StateWriter damaged;
  damaged.put("alarm", std::vector<double>(6));
  StateReader broken(damaged.bytes(), "test");
  EXPECT_THROW(load_fields(loaded, broken, "alarm"), Error);
}

}  // namespace
}  // namespace olrank
