#include "core/feedback/examination.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/error.h"
#include "core/math/any_cpu.h"
#include "core/random/rng_stream.h"

namespace olrank {
namespace {

/// All that a list tells, by going through every rank at which the user can have stopped and every subset
/// of the reached documents that were looked at. Users who look at each rank with a probability of its own
/// reach them all.
struct Enumerated {
  double likelihood = 0.0;
  std::vector<double> examined;
  std::vector<double> went_on;  // expected, by rank
  std::vector<double> stopped;
};

Enumerated enumerate(const Examination& habits, bool by_ranks, const std::vector<double>& attraction,
                     const std::vector<std::uint8_t>& clicks) {
  const std::size_t shown = clicks.size();
  Enumerated sum{0.0, std::vector<double>(shown), std::vector<double>(shown), std::vector<double>(shown)};
  for (std::size_t last = by_ranks ? shown - 1 : 0; last < shown; ++last) {
    for (std::size_t looks = 0; looks < std::size_t{1} << (last + 1); ++looks) {
      double p = 1.0;
      for (std::size_t rank = 0; rank < shown; ++rank) {
        const bool looked = rank <= last && (looks >> rank & 1U) != 0;
        if (clicks[rank] != 0 && !looked) p = 0.0;
        if (rank > last) continue;
        const double look = by_ranks ? habits.looks_by_rank(rank) : habits.looks(rank);
        p *= looked ? look : 1.0 - look;
        if (looked) p *= clicks[rank] != 0 ? attraction[rank] : 1.0 - attraction[rank];
        const double on = by_ranks ? 1.0 : habits.goes_on(clicks[rank] != 0);
        if (rank < last) p *= on;
        if (rank == last && rank + 1 < shown) p *= 1.0 - on;
      }
      sum.likelihood += p;
      for (std::size_t rank = 0; rank <= last; ++rank) {
        if ((looks >> rank & 1U) != 0) sum.examined[rank] += p;
        (rank < last ? sum.went_on : sum.stopped)[rank] += p;
      }
    }
  }
  for (auto* values : {&sum.examined, &sum.went_on, &sum.stopped}) {
    for (double& value : *values) value /= sum.likelihood;
  }
  return sum;
}

TEST(ExaminationTest, IsWhatAllStopPointsSay) {
  Examination habits;
  double odds = 1.0;  // of reading by ranks
  std::vector<std::vector<double>> looks_by_rank;
  RngStream draws(make_key({.seed = 3, .purpose = Purpose::kProbe}), 0);
  double after_click[2] = {1.0, 1.0};
  double after_skip[2] = {4.0, 1.0};
  for (int list = 0; list < 40; ++list) {
    const std::size_t shown = 1 + draws.index(5);
    std::vector<double> attraction;
    std::vector<std::uint8_t> clicks;
    for (std::size_t rank = 0; rank < shown; ++rank) {
      attraction.push_back(0.02 + 0.96 * draws.uniform());
      clicks.push_back(draws.uniform() < 0.4 ? 1 : 0);
    }
    const Enumerated expected = enumerate(habits, false, attraction, clicks);
    const Enumerated by_rank = enumerate(habits, true, attraction, clicks);
    Examination::Reading reading;
    habits.learn(attraction, clicks, reading);
    const double likelihood = (expected.likelihood + odds * by_rank.likelihood) / (1.0 + odds);
    EXPECT_NEAR(reading.log_likelihood, std::log(likelihood), 1e-12);
    odds *= by_rank.likelihood / expected.likelihood;
    const double share = odds / (1.0 + odds);
    EXPECT_NEAR(habits.by_rank_share(), share, 1e-12);
    for (std::size_t rank = 0; rank < shown; ++rank) {
      EXPECT_NEAR(reading.examined[rank],
                  (1.0 - share) * expected.examined[rank] + share * by_rank.examined[rank], 1e-12)
          << list << ' ' << rank;
      if (looks_by_rank.size() == rank)
        looks_by_rank.push_back({16.0 / static_cast<double>(rank + 1), 16.0});
      looks_by_rank[rank][0] += by_rank.examined[rank];
      looks_by_rank[rank][1] += 1.0;
      EXPECT_NEAR(habits.looks_by_rank(rank), looks_by_rank[rank][0] / looks_by_rank[rank][1], 1e-12);
      if (rank + 1 == shown) continue;
      double* counts = clicks[rank] != 0 ? after_click : after_skip;
      counts[0] += expected.went_on[rank];
      counts[1] += expected.stopped[rank];
    }
    EXPECT_NEAR(habits.goes_on(true), after_click[0] / (after_click[0] + after_click[1]), 1e-12);
    EXPECT_NEAR(habits.goes_on(false), after_skip[0] / (after_skip[0] + after_skip[1]), 1e-12);
  }
}

TEST(ExaminationTest, FindsWhetherUsersReadByRanks) {
  const std::vector<double> attraction = {0.4, 0.6, 0.5, 0.7};
  for (const bool by_ranks : {false, true}) {
    Examination habits;
    Examination::Reading reading;
    RngStream draws(make_key({.seed = 5, .purpose = Purpose::kProbe}), 0);
    for (int list = 0; list < 500; ++list) {
      std::vector<std::uint8_t> clicks(4, 0);
      for (std::size_t rank = 0; rank < 4; ++rank) {
        if (by_ranks && draws.uniform() >= 1.0 / static_cast<double>(rank + 1)) continue;
        clicks[rank] = draws.uniform() < attraction[rank] ? 1 : 0;
        if (!by_ranks && clicks[rank] != 0) break;
      }
      habits.learn(attraction, clicks, reading);
    }
    if (by_ranks) {
      EXPECT_GT(habits.by_rank_share(), 0.999);
      EXPECT_NEAR(habits.looks_by_rank(3), 0.25, 0.05);
    } else {
      EXPECT_LT(habits.by_rank_share(), 0.001);
    }
  }
}

TEST(ExaminationTest, ForgetsWhatItLearned) {
  Examination habits;
  Examination::Reading reading;
  for (int list = 0; list < 50; ++list)
    habits.learn(std::vector{0.5, 0.5}, std::vector<std::uint8_t>{1, 0}, reading);
  EXPECT_LT(habits.goes_on(true), 0.45);
  habits.forget(1.0);
  EXPECT_EQ(habits.goes_on(true), Examination().goes_on(true));
  EXPECT_EQ(habits.looks(1), Examination().looks(1));
  EXPECT_EQ(habits.looks_by_rank(1), Examination().looks_by_rank(1));
  EXPECT_EQ(habits.by_rank_share(), 0.5);
}

TEST(ExaminationTest, HasTheSameBitsOnAnyCpuIfAskedFor) {
  const auto likelihoods = [] {
    Examination habits;
    Examination::Reading reading;
    RngStream draws(make_key({.seed = 6, .purpose = Purpose::kProbe}), 0);
    std::uint64_t bits = 0;
    for (int list = 0; list < 2000; ++list) {
      habits.forget(0.1);  // so that neither way to read wins
      habits.learn(std::vector{draws.uniform(), draws.uniform(), draws.uniform()},
                   std::vector<std::uint8_t>{draws.uniform() < 0.4, draws.uniform() < 0.3, 0}, reading);
      bits = 3 * bits + std::bit_cast<std::uint64_t>(reading.log_likelihood);
    }
    return bits;
  };
  own_functions = true;
  EXPECT_EQ(likelihoods(), 5'802'708'708'791'697'002U);
  own_functions = false;
}

TEST(ExaminationTest, StaysFiniteWithLongListsAndTakesEmptyOnes) {
  Examination habits;
  Examination::Reading reading;
  const std::vector<double> attraction(2000, 0.999);
  for (const std::uint8_t click : {0, 1, 1, 1, 0, 0}) {
    habits.learn(attraction, std::vector<std::uint8_t>(2000, click), reading);
    EXPECT_TRUE(std::isfinite(reading.log_likelihood));
    for (const double examined : reading.examined) ASSERT_TRUE(examined >= 0.0 && examined <= 1.0);
  }
  habits.learn({}, {}, reading);
  EXPECT_EQ(reading.log_likelihood, 0.0);
  EXPECT_TRUE(reading.examined.empty());
}

/// Lists of ten documents that users click with the probabilities `of_users`, while `predicted` were
/// predicted.
struct Lists {
  explicit Lists(std::uint64_t seed) : draws(make_key({.seed = seed, .purpose = Purpose::kProbe}), 0) {}

  /// Whether the alarm rings within as many lists, and after how many.
  int ring(ChangeAlarm& alarm, int lists, double (*of_users)(double)) {
    std::vector<double> predicted(10);
    std::vector<std::uint8_t> clicks(10);
    for (int list = 1; list <= lists; ++list) {
      for (std::size_t rank = 0; rank < predicted.size(); ++rank) {
        predicted[rank] = 0.05 + 0.9 * draws.uniform();
        clicks[rank] = draws.uniform() < of_users(predicted[rank]) ? 1 : 0;
      }
      if (alarm.learn(predicted, clicks)) return list;
    }
    return 0;
  }

  RngStream draws;
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
