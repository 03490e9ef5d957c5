#include "serve/arm_ledger.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/error.h"
#include "core/feedback/preference_pairs.h"
#include "core/random/rng_stream.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

TEST(ArmPlanTest, ReadsArmsWithTheirShares) {
  const ArmPlan plan = ArmPlan::parse("learner=20,incumbent=70,old=10,keep_top=1,max_displacement=3");
  EXPECT_EQ(plan.names, (std::vector<std::string>{"learner", "incumbent", "old"}));
  EXPECT_EQ(plan.shares, (std::vector<double>{20, 70, 10}));
  EXPECT_EQ(plan.model_names(), std::vector<std::string>{"old"});
  EXPECT_EQ(plan.baseline(), 1U);
  EXPECT_EQ(plan.keep_top, 1);
  EXPECT_EQ(ArmPlan::parse("promote=auto").shares, (std::vector<double>{0, 100}));
  EXPECT_NE(plan.id(), ArmPlan::parse("learner=20,incumbent=70,old=10,keep_top=1").id());
}

TEST(ArmPlanTest, RefusesWhatCannotBeShown) {
  expect_cases("serve/refusals.txt", "arms", [](const std::string& arms) {
    return message_of<InvalidArgument>([&] { ArmPlan::parse(arms); });
  });
}

TEST(ArmPlanTest, DealsBucketsBySharesAndUsersByChance) {
  std::vector<int> counts(3);
  for (std::int64_t bucket = 0; bucket < ArmPlan::kBuckets; ++bucket)
    ++counts[ArmPlan::arm_of(bucket, std::vector<double>{1, 0, 99})];
  EXPECT_EQ(counts, (std::vector<int>{100, 0, 9900}));
  // χ² of 100,000 users in 10 parts: above 33.7 with a probability of 1e-4.
  std::vector<double> users(10);
  for (int user = 0; user < 100'000; ++user)
    ++users[ArmPlan::bucket_of("plan", fmt::format("user{}", user)) * 10 / ArmPlan::kBuckets];
  double chi = 0.0;
  for (const double count : users) chi += (count - 10'000) * (count - 10'000) / 10'000;
  EXPECT_LT(chi, 33.7);
  EXPECT_EQ(ArmPlan::bucket_of("plan", "anna"), ArmPlan::bucket_of("plan", "anna"));
}

TEST(LimitedListTest, KeepsItsLimitsAndIsTheListWhereItMay) {
  RngStream random(make_key({.seed = 3, .purpose = Purpose::kProbe}), 1);
  for (int trial = 0; trial < 500; ++trial) {
    const std::int64_t docs = 1 + random.index(12);
    std::vector<std::int32_t> list(docs);
    std::iota(list.begin(), list.end(), 0);
    std::vector<std::int32_t> incumbent = list;
    for (std::vector<std::int32_t>* order : {&list, &incumbent}) {
      for (std::int64_t rank = docs - 1; rank > 0; --rank)
        std::swap((*order)[rank], (*order)[random.index(static_cast<std::uint32_t>(rank + 1))]);
    }
    const std::int64_t top = random.index(4);
    const std::int64_t most = random.index(4);
    const std::vector<std::int32_t> limited = limited_list(list, incumbent, top, most);
    ASSERT_TRUE(std::is_permutation(limited.begin(), limited.end(), list.begin(), list.end()));
    for (std::int64_t rank = 0; rank < docs; ++rank) {
      const auto place = std::find(incumbent.begin(), incumbent.end(), limited[rank]) - incumbent.begin();
      EXPECT_TRUE(rank >= top || place == rank);
      EXPECT_TRUE(most == 0 || std::abs(place - rank) <= most);
    }
    EXPECT_TRUE(top > 0 || most > 0 || limited == list);
    EXPECT_EQ(limited_list(incumbent, incumbent, top, most), incumbent);
  }
}

/// A simulated service: users who differ and come back, and arms whose lists get so many clicks.
struct Simulation {
  using Rate = std::function<double(std::string_view arm, std::int64_t list)>;

  Simulation(const std::string& arms, std::uint32_t seed)
      : ledger(ArmPlan::parse(arms)), random(make_key({.seed = seed, .purpose = Purpose::kProbe}), seed) {}

  /// Up to three clicks, each with this probability for the average user.
  void show(const Rate& rate) {
    FeedbackRecord record;
    const std::uint32_t user = random.index(5000);
    const double factor = 0.5 + static_cast<double>(name_number(fmt::format("{}", user)) % 1000) / 1000.0;
    record.experiment = id;
    record.bucket = ArmPlan::bucket_of(id, fmt::format("{}", user));
    record.arm = ledger.plan().names[ArmPlan::arm_of(record.bucket, shares)];
    record.round = ++list;
    const double probability = factor * rate(record.arm, list);
    for (int doc = 0; doc < 3; ++doc) record.clicks.push_back(random.uniform() < probability ? 1 : 0);
    clicks += std::accumulate(record.clicks.begin(), record.clicks.end(), 0.0);
    incumbent_clicks += 3.0 * factor * rate("incumbent", list);
    if (ledger.observe(record)) shares = ledger.report().shares();
  }

  double share() const { return shares[0]; }

  ArmLedger ledger;
  RngStream random;
  std::string id = ledger.plan().id();
  std::vector<double> shares = ledger.report().shares();
  std::int64_t list = 0;
  double clicks = 0.0;
  double incumbent_clicks = 0.0;  // as expected if all lists were the incumbent's
};

TEST(PromotionTest, AWorseLearnerCostsLessThanAHundredthOfTheClicks) {
  for (std::uint32_t seed = 1; seed <= 10; ++seed) {
    Simulation run("promote=auto", seed);
    double expected = 0.0;  // free of the noise of single clicks
    while (run.list < 10'000) {
      const auto rate = [](std::string_view arm, std::int64_t list) {
        return arm == "learner" && list <= 2000 ? 0.15 : 0.3;
      };
      run.show(rate);
      const double share = run.share() / 100.0;
      expected += share * rate("learner", run.list) + (1.0 - share) * 0.3;
    }
    EXPECT_GT(expected, 0.99 * 0.3 * 10'000) << "seed " << seed;
    RecordProperty(fmt::format("cost_of_seed_{}", seed), fmt::format("{:.3f}", 100.0 - expected / 30.0));
  }
}

TEST(PromotionTest, ABetterLearnerHasAllThatTheHoldoutLeavesWithin20000Lists) {
  int there = 0;
  for (std::uint32_t seed = 1; seed <= 10; ++seed) {
    Simulation run("promote=auto", seed);
    while (run.list < 20'000 && run.share() < 95.0)
      run.show([](std::string_view arm, std::int64_t) { return arm == "learner" ? 0.345 : 0.3; });
    there += run.share() == 95.0 ? 1 : 0;
    RecordProperty(fmt::format("lists_of_seed_{}", seed), static_cast<int>(run.list));
  }
  EXPECT_GE(there, 9);
}

TEST(PromotionTest, ALearnerThatGoesWrongFallsBackWithin2000Lists) {
  for (std::uint32_t seed = 1; seed <= 10; ++seed) {
    Simulation run("promote=auto", seed);
    while (run.list < 60'000 && run.share() < 95.0)
      run.show([](std::string_view arm, std::int64_t) { return arm == "learner" ? 0.36 : 0.3; });
    ASSERT_EQ(run.share(), 95.0) << "seed " << seed;
    const std::int64_t promoted = run.list + 5000;
    while (run.list < promoted)
      run.show([](std::string_view arm, std::int64_t) { return arm == "learner" ? 0.36 : 0.3; });
    ASSERT_EQ(run.share(), 95.0) << "seed " << seed;
    while (run.list < promoted + 5000 && run.share() > 0.0)
      run.show([](std::string_view arm, std::int64_t) { return arm == "learner" ? 0.15 : 0.3; });
    EXPECT_LE(run.list, promoted + 2000) << "seed " << seed;
    EXPECT_EQ(run.ledger.report().rollbacks, 1);
    RecordProperty(fmt::format("lists_of_seed_{}", seed), static_cast<int>(run.list - promoted));
  }
}

TEST(PromotionTest, AnEqualLearnerIsSeldomCalledWorse) {
  int rollbacks = 0;
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    Simulation run("promote=auto", seed);
    while (run.list < 20'000) run.show([](std::string_view, std::int64_t) { return 0.3; });
    rollbacks += static_cast<int>(run.ledger.report().rollbacks);
  }
  EXPECT_LE(rollbacks, 2);
}

TEST(ArmLedgerTest, ComparesEachArmWithTheBaseline) {
  Simulation run("learner=40,incumbent=40,old=20", 1);
  for (int list = 0; list < 20'000; ++list)
    run.show([](std::string_view arm, std::int64_t) { return arm == "learner" ? 0.36 : 0.3; });
  const ArmReport report = run.ledger.report();
  ASSERT_EQ(report.arms.size(), 3U);
  EXPECT_EQ(report.baseline, 1U);
  EXPECT_FALSE(report.arms[1].difference);
  ASSERT_TRUE(report.arms[0].difference && report.arms[2].difference);
  EXPECT_GT(report.arms[0].difference->low, 0.0);
  EXPECT_NEAR(report.arms[0].difference->value, 0.18, 0.05);
  EXPECT_LT(report.arms[2].difference->low, 0.0);
  EXPECT_GT(report.arms[2].difference->high, 0.0);
  EXPECT_EQ(report.arms[0].lists + report.arms[1].lists + report.arms[2].lists, 20'000);
  EXPECT_TRUE(report.changes.empty());
}

TEST(ArmLedgerTest, CountsWhoseDocumentsWonAnInterleavedList) {
  ArmLedger ledger(ArmPlan::parse("learner=50,incumbent=50,interleave=true"));
  FeedbackRecord record;
  record.experiment = ledger.plan().id();
  record.arm = ArmPlan::kDrafted;
  record.teams = "ABB";
  for (std::int64_t list = 0; list < 300; ++list) {
    record.bucket = list;
    record.clicks = list % 3 == 0   ? std::vector<std::uint8_t>{1, 0, 0}
                    : list % 3 == 1 ? std::vector<std::uint8_t>{1, 1, 1}
                                    : std::vector<std::uint8_t>{1, 1, 0};
    ledger.observe(record);
  }
  const ArmReport report = ledger.report();
  EXPECT_EQ(report.wins, (std::array<std::int64_t, 2>{100, 100}));
  EXPECT_EQ(report.ties, 100);
  ASSERT_TRUE(report.preference);
  EXPECT_EQ(report.preference->value, 0.0);
}

TEST(ArmLedgerTest, CountsOnlyListsOfItsPlan) {
  ArmLedger ledger(ArmPlan::parse("learner=50,incumbent=50"));
  FeedbackRecord record;
  record.arm = "learner";
  record.bucket = 1;
  record.clicks = {1};
  for (const std::string& id : std::vector<std::string>{"", "another", ledger.plan().id()}) {
    record.experiment = id;
    ledger.observe(record);
  }
  record.bucket = ArmPlan::kBuckets;  // of no service
  ledger.observe(record);
  EXPECT_EQ(ledger.report().arms[0].lists, 1);
}

TEST(ArmLedgerTest, ContinuesFromItsStateToTheSameReport) {
  const auto rate = [](std::string_view arm, std::int64_t list) {
    return arm == "learner" && list < 9000 ? 0.4 : 0.3;
  };
  Simulation whole("promote=auto,observe=200", 1);
  Simulation resumed("promote=auto,observe=200", 1);
  while (whole.list < 12'000) {
    whole.show(rate);
    resumed.show(rate);
    if (whole.list % 1700 != 0) continue;
    StateWriter writer;
    resumed.ledger.save(writer);
    resumed.ledger = ArmLedger(ArmPlan::parse("promote=auto,observe=200"));
    StateReader reader(writer.bytes(), "state");
    ASSERT_TRUE(resumed.ledger.load(reader));
    reader.require_end();
    ArmLedger other(ArmPlan::parse("promote=auto,observe=201"));
    StateReader again(writer.bytes(), "state");
    EXPECT_FALSE(other.load(again));
  }
  EXPECT_GT(whole.ledger.report().changes.size(), 2U);
  EXPECT_EQ(resumed.ledger.report().json(), whole.ledger.report().json());
  EXPECT_EQ(resumed.ledger.report().metrics(), whole.ledger.report().metrics());
}

}  // namespace
}  // namespace olrank
