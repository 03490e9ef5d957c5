#include "sim/trial_figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/sim/small_trial.h"

namespace olrank {
namespace {

const TrialData& fairness_data() {
  static const TrialData made = [] {
    TrialData data = small_trial_data("synth:small?queries=30&test_queries=20&docs=14");
    for (std::int64_t doc = 0; doc < data.train.docs(); ++doc)
      data.groups.push_back(doc % 3 == 0 ? DocGroup::kA : DocGroup::kB);
    return data;
  }();
  return made;
}

std::unique_ptr<ClickModel> user_of(const std::string& name, ClickKind kind, double noise = 0.0) {
  ClickSettings clicks = ClickSettings::defaults(ProtocolName::kRecommended);
  clicks.kind = kind;
  clicks.noise = noise;
  return make_user(name, clicks, {}, fairness_data().max_grade);
}

/// The same user without its formula.
class Unknown : public ClickModel {
 public:
  explicit Unknown(const ClickModel& user) : user_(user) {}
  void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key, std::uint32_t round,
             ClickLog& log) const override {
    user_.click(grades, shown, key, round, log);
  }

 private:
  const ClickModel& user_;
};

// 40,000 lists: a standard error of at most 0.0025, and five of them is a false alarm below 1e-6.
TEST(ExaminationTest, FormulasAgreeWithLists) {
  for (const ClickKind kind :
       {ClickKind::kDependent, ClickKind::kCascade, ClickKind::kDynamicBayesian, ClickKind::kPosition}) {
    for (const double noise : {0.0, 0.2}) {
      const auto user = user_of("informational", kind, noise);
      const Examination exact = examination_of(*user, fairness_data().train, 10, 1, 1, "u");
      const Examination estimated =
          examination_of(Unknown(*user), fairness_data().train, 10, 40'000, 1, "u");
      EXPECT_EQ(exact.lists, 0);
      EXPECT_EQ(estimated.lists, 40'000);
      EXPECT_EQ(exact.by_rank.front(), 1.0);
      for (std::size_t rank = 0; rank < 10; ++rank)
        EXPECT_NEAR(exact.by_rank[rank], estimated.by_rank[rank], 0.0125) << rank;
    }
  }
}

/// All orders of four documents, one by one.
TEST(ExaminationTest, IsTheMeanOverAllOrders) {
  const auto user = user_of("informational", ClickKind::kDependent);
  const auto law = user->examination_law(4);
  ASSERT_TRUE(law.has_value());
  const std::vector<std::uint8_t> grades = {0, 2, 4, 1};
  std::vector<int> order = {0, 1, 2, 3};
  std::vector<double> sums(4, 0.0);
  do {
    double examined = 1.0;
    for (int rank = 0; rank < 4; ++rank) {
      sums[rank] += examined / 24.0;
      examined *= law->goes_on[grades[order[rank]]];
    }
  } while (std::next_permutation(order.begin(), order.end()));
  Dataset::Contents contents;
  static const std::vector<float> values(4, 0.0F);
  static const std::vector<std::int64_t> offsets = {0, 4};
  contents.values = values;
  contents.grades = grades;
  contents.offsets = offsets;
  contents.features = 1;
  contents.qids = {"1"};
  const Examination found = examination_of(*user, Dataset(std::move(contents)), 4, 1, 1, "u");
  for (int rank = 0; rank < 4; ++rank) EXPECT_NEAR(found.by_rank[rank], sums[rank], 1e-12);
}

struct FairStage {
  FairStage(OnlineRanker& ranker, std::int64_t rounds, ExposureKind exposure)
      : keys(TrialKeys::of(1, 1, "navigational")),
        queries(keys.key(Purpose::kQuery), fairness_data().train.queries()),
        clicks(user_of("navigational", ClickKind::kDependent)),
        fairness{{{1.0, 0.7, 0.5, 0.4, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1}, {0.9}, 2.0}, exposure},
        trial({.rounds = rounds, .cutoff = 10, .eval_every = 5}, fairness_data(),
              {.queries = &queries, .clicks = clicks.get(), .fairness = &fairness}, keys, ranker,
              execution) {}

  TrialKeys keys;
  ExecutionContext execution{1};
  UniformQueries queries;
  std::unique_ptr<ClickModel> clicks;
  TrialFairness fairness;
  Trial trial;
};

TEST(TrialFairnessTest, AddsUpTheExposureOfShownLists) {
  StubRanker ranker(fairness_data().train.features());
  FairStage stage(ranker, 20, ExposureKind::kPosition);
  double a = 0.0;
  double b = 0.0;
  int fair = 0;
  while (!stage.trial.finished()) {
    const PlayedRound& round = stage.trial.play_round();
    for (std::size_t rank = 0; rank < round.shown.size(); ++rank) {
      const bool is_a = round.groups[round.shown[rank]] == DocGroup::kA;
      (is_a ? a : b) += stage.fairness.rule.examination[rank];
    }
    EXPECT_NEAR(*round.unfairness, a - 0.9 * b, 1e-9);
    fair += std::abs(a - 0.9 * b) <= 2.0 ? 1 : 0;
  }
  const CurvePoint& point = stage.trial.evaluate();
  ASSERT_TRUE(point.fairness.has_value());
  EXPECT_NEAR(point.fairness->unfairness, a - 0.9 * b, 1e-9);
  EXPECT_NEAR(point.fairness->exposure[0], a, 1e-9);
  EXPECT_NEAR(point.fairness->exposure[1], b, 1e-9);
  EXPECT_NEAR(point.fairness->fair_share, fair / 20.0, 1e-12);
  EXPECT_FALSE(point.fairness->violations.has_value()) << "the stub knows no orders";
}

TEST(TrialFairnessTest, ExaminedExposureIsWholeNumbers) {
  StubRanker ranker(fairness_data().train.features());
  FairStage stage(ranker, 20, ExposureKind::kExamined);
  while (!stage.trial.finished()) stage.trial.play_round();
  const FairnessPoint point = *stage.trial.evaluate().fairness;
  EXPECT_EQ(point.exposure[0], std::round(point.exposure[0]));
  EXPECT_EQ(point.exposure[1], std::round(point.exposure[1]));
  EXPECT_GT(point.exposure[0] + point.exposure[1], 20.0);
}

TEST(TrialFairnessTest, RestoredTrialsGoOnWithTheSameBits) {
  StubRanker ranker(fairness_data().train.features());
  FairStage whole(ranker, 20, ExposureKind::kPosition);
  StateWriter half;
  while (!whole.trial.finished()) {
    whole.trial.play_round();
    if (whole.trial.rounds_played() != 10) continue;
    whole.trial.save_beside(half);
    whole.trial.save(half);
  }
  StubRanker again(fairness_data().train.features());
  FairStage restored(again, 20, ExposureKind::kPosition);
  StateReader state(half.bytes(), "test");
  restored.trial.load_beside(state);
  restored.trial.load(state);
  while (!restored.trial.finished()) restored.trial.play_round();
  StateWriter one;
  StateWriter other;
  whole.trial.save(one);
  restored.trial.save(other);
  EXPECT_EQ(one.bytes(), other.bytes());
}

}  // namespace
}  // namespace olrank
