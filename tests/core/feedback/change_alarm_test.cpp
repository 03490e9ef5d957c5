#include "core/feedback/change_alarm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

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
    EXPECT_GT(upside_down, 3) << "a few surprises are no change";
    EXPECT_LT(upside_down, 15);
    // The next change rings, too.
    ASSERT_EQ(lists.ring(alarm, 1000, [](double p) { return p; }), 0);
    const int chance = lists.ring(alarm, 500, [](double) { return 0.1; });
    EXPECT_GT(chance, 0);
    EXPECT_LT(chance, 100);
  }
}

TEST(ChangeAlarmTest, NoSingleListRings) {
  ChangeAlarm alarm;
  const std::vector<double> sure(1000, 0.0);
  for (int list = 0; list < 150; ++list)
    EXPECT_FALSE(alarm.learn(sure, std::vector<std::uint8_t>(1000, 0)));
  EXPECT_FALSE(alarm.learn(sure, std::vector<std::uint8_t>(1000, 1)));
  EXPECT_FALSE(alarm.learn({}, {}));
}

TEST(ChangeAlarmTest, IsSavedWhole) {
  Lists lists(5);
  ChangeAlarm alarm;
  lists.ring(alarm, 300, [](double p) { return p; });
  lists.ring(alarm, 4, [](double p) { return 1.0 - p; });
  StateWriter saved;
  alarm.save(saved, "alarm");
  StateReader state(saved.bytes(), "test");
  ChangeAlarm loaded;
  loaded.load(state, "alarm");
  Lists same(6);
  Lists again(6);
  EXPECT_EQ(same.ring(alarm, 100, [](double p) { return 1.0 - p; }),
            again.ring(loaded, 100, [](double p) { return 1.0 - p; }));
}

}  // namespace
}  // namespace olrank
