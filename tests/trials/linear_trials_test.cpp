// Linear rankers in whole trials: where models and simulation meet.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "models/ranker_factory.h"
#include "sim/trace.h"
#include "tests/sim/small_trial.h"
#include "tests/support/saved_state.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

constexpr std::int64_t kCutoff = 10;

const TrialData& data() {
  static const TrialData made = small_trial_data("synth:small?queries=40&test_queries=20");
  return made;
}

TrialSettings settings(std::int64_t rounds, std::int64_t eval_every) {
  return {.rounds = rounds, .cutoff = kCutoff, .eval_every = eval_every};
}

/// Rankers by name, each as its protocol has it.
RankerSettings ranker_settings(const std::string& name) {
  static const std::map<std::string, RankerKind> kinds = {
      {"pairrank", RankerKind::kPairRank},
      {"pairrank_reference", RankerKind::kPairRank},
      {"pairrank_theory", RankerKind::kPairRank},
      {"pairrank_sample", RankerKind::kPairRank},
      {"pairrank_ucb", RankerKind::kPairRank},
      {"p2linrank", RankerKind::kP2LinRank},
      {"pdgd", RankerKind::kPdgd},
      {"prpo", RankerKind::kPrpo},
      {"intervention_aware", RankerKind::kInterventionAware},
      {"dbgd", RankerKind::kDbgd},
      {"ranknet", RankerKind::kRankNet}};
  const RankerKind kind = kinds.at(name);
  const bool reference = name == "pairrank_reference";
  RankerSettings chosen;
  chosen.kind = kind;
  chosen.bandit.interleaving = Interleaving::kProbabilistic;
  RankerSettings made =
      RankerSettings::defaults(chosen, reference ? ProtocolName::kReference : ProtocolName::kRecommended);
  made.name = name;
  made.bandit.interleaving = Interleaving::kProbabilistic;
  made.network.network = NetworkForm::kLinear;
  if (reference) made.posterior.covariance = Covariance::kDiagonalOfInverse;
  if (name == "pairrank_sample") made.explore.list = ListRule::kSample;
  if (name == "pairrank_ucb") made.explore.list = ListRule::kUcb;
  if (name == "pairrank_theory") {
    made.explore.alpha_schedule = AlphaSchedule::kTheory;
    made.explore.c1 = 0.01;
  }
  return made;
}

std::unique_ptr<OnlineRanker> make(const RankerSettings& settings, const TrialKeys& keys,
                                   const TrialData& on = data()) {
  return make_ranker(settings, on.train.features(), keys, kCutoff);
}

class LinearTrialsTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<OnlineRanker> make_it(std::uint64_t seed = 1,
                                        const std::string& user = "navigational") const {
    return make(ranker_settings(GetParam()), TrialKeys::of(seed, 1, user));
  }
};

INSTANTIATE_TEST_SUITE_P(All, LinearTrialsTest,
                         testing::Values("pairrank", "pairrank_reference", "pairrank_theory",
                                         "pairrank_sample", "pairrank_ucb", "p2linrank", "pdgd", "prpo",
                                         "intervention_aware", "dbgd", "ranknet"),
                         [](const auto& info) { return info.param; });

TEST_P(LinearTrialsTest, ResumesFromAnyRoundToTheSameCurve) {
  std::vector<std::string> straight;
  const auto ranker = make_it();
  TrialStage whole(settings(33, 8), data(), *ranker);
  whole.play_to(33, true, straight);
  ASSERT_EQ(straight.size(), 6U);
  for (std::int64_t at = 0; at <= 33; ++at) {
    std::vector<std::string> lines;
    const auto first = make_it();
    TrialStage before(settings(33, 8), data(), *first);
    before.play_to(at, at % 2 == 0, lines);
    const std::string saved = before.state();
    const auto second = make_it();
    TrialStage after(settings(33, 8), data(), *second);
    if (at % 3 == 0) after.trial.play_round();  // what it played before is gone
    load_state(after.trial, saved);
    ASSERT_EQ(after.state(), saved) << at;
    after.play_to(33, true, lines);
    ASSERT_EQ(lines, straight) << "saved at " << at;
    ASSERT_EQ(after.state(), whole.state()) << "saved at " << at;
  }
}

/// log det A/det λI and α_t as they follow from the pairs, for two features.
TEST(LinearTheoryTest, CurveHasAlphaAndDeterminantOfTheLearnedPairs) {
  const TrialData two = small_trial_data("synth:realisable?features=2");
  RankerSettings made = ranker_settings("pairrank_theory");
  made.explore = {.alpha_schedule = AlphaSchedule::kTheory, .c1 = 2.0, .c2 = 3.0, .delta = 0.2};
  made.posterior.lambda = 0.5;
  const auto ranker = make(made, TrialKeys::of(1, 1, "informational"), two);
  TrialStage stage(settings(40, 40), two, *ranker, 1, "informational");
  double a = 0.5;
  double b = 0.0;
  double d = 0.5;
  while (!stage.trial.finished()) {
    const PlayedRound& round = stage.trial.play_round();
    const FeatureMatrix docs = two.train.features_of(round.query);
    for (const auto& [winner, loser] : round.learned.pairs) {
      const double x = double{docs.doc(winner)[0]} - double{docs.doc(loser)[0]};
      const double y = double{docs.doc(winner)[1]} - double{docs.doc(loser)[1]};
      a += x * x;
      b += x * y;
      d += y * y;
    }
  }
  const double log_det = std::log((a * d - b * b) / 0.25);
  EXPECT_GT(log_det, 1.0);
  std::map<std::string, double> figures;
  for (const RankerFigure& figure : stage.trial.evaluate().figures) figures[figure.name] = figure.value;
  EXPECT_NEAR(figures.at("log_det"), log_det, 1e-9 * log_det);
  const double alpha =
      2.0 * (TheoryAlpha::kClickNoise * std::sqrt(log_det - 2.0 * std::log(0.2)) + 3.0 * std::sqrt(0.5));
  EXPECT_NEAR(figures.at("alpha"), alpha, 1e-9 * alpha);
}

TEST(LabelTrialsTest, ResumesFromAnyRoundToTheSameCurve) {
  const LabelledQueries labels(data().train);
  for (const RankerKind kind : {RankerKind::kLambdaRankLabels, RankerKind::kRankNetOffline}) {
    for (const NetworkForm network : {NetworkForm::kLinear, NetworkForm::kMlp}) {
      RankerSettings made = RankerSettings::defaults(kind, ProtocolName::kRecommended);
      made.name = "labels";
      made.network.network = network;
      made.network.width = 6;
      made.trainer.epochs = 2;
      const auto make_it = [&] {
        return make_ranker(made, data().train.features(), TrialKeys::of(1, 1, "navigational"), kCutoff,
                           {.labels = &labels});
      };
      std::vector<std::string> straight;
      const auto ranker = make_it();
      TrialStage whole(settings(33, 8), data(), *ranker);
      whole.play_to(33, true, straight);
      ASSERT_EQ(straight.size(), 6U);
      std::vector<std::string> threaded;
      const auto other = make_it();
      TrialStage threads(settings(33, 8), data(), *other, 1, "navigational", 3);
      threads.play_to(33, true, threaded);
      EXPECT_EQ(threaded, straight);
      for (const std::int64_t at : {0, 1, 8, 20, 33}) {
        std::vector<std::string> lines;
        const auto first = make_it();
        TrialStage before(settings(33, 8), data(), *first);
        before.play_to(at, false, lines);
        const std::string saved = before.state();
        const auto second = make_it();
        TrialStage after(settings(33, 8), data(), *second);
        after.trial.play_round();  // gone after loading
        load_state(after.trial, saved);
        after.play_to(33, true, lines);
        EXPECT_EQ(lines, straight) << "saved at " << at;
        EXPECT_EQ(after.state(), whole.state()) << "saved at " << at;
      }
    }
  }
}

/// A user of habits: clicks by round and document, whatever the grades are.
class GradelessClicks : public ClickModel {
 public:
  void click(QueryGrades, std::span<const std::int32_t> shown, PhiloxKey key, std::uint32_t round,
             ClickLog& log) const override {
    log.clicks.clear();
    for (const std::int32_t doc : shown) {
      log.clicks.push_back(RngStream(key, round, static_cast<std::uint32_t>(doc)).uniform() < 0.4 ? 1 : 0);
    }
    log.examined.assign(shown.size(), 1);
  }
};

/// The same documents with every grade turned round.
Dataset with_other_grades(const Dataset& data) {
  struct Memory {
    std::shared_ptr<const void> before;
    std::vector<std::uint8_t> grades;
  };
  auto memory = std::make_shared<Memory>();
  memory->before = data.contents().memory;
  for (const std::uint8_t grade : data.all_grades()) {
    memory->grades.push_back(static_cast<std::uint8_t>(data.max_grade() - grade));
  }
  Dataset::Contents contents = data.contents();
  contents.grades = memory->grades;
  contents.memory = memory;
  return Dataset(std::move(contents));
}

const TrialData& other_grades() {
  static const TrialData made = {with_other_grades(data().train), with_other_grades(data().eval_set),
                                 data().max_grade};
  return made;
}

TEST_P(LinearTrialsTest, GradesReachRankersOnlyThroughClicks) {
  // Clicks that do not depend on grades: neither do lists, parameters and posterior.
  const GradelessClicks clicks;
  const TrialKeys keys = TrialKeys::of(4, 1, "habit");
  const UniformQueries queries(keys.key(Purpose::kQuery), data().train.queries());
  std::string states[2];
  std::vector<std::vector<std::int32_t>> lists[2];
  double ndcg[2];
  for (const int which : {0, 1}) {
    const auto ranker = make(ranker_settings(GetParam()), keys);
    ExecutionContext execution;
    Trial trial(settings(60, 20), which == 0 ? data() : other_grades(),
                {.queries = &queries, .clicks = &clicks}, keys, *ranker, execution);
    while (!trial.finished()) {
      if (trial.evaluation_due()) trial.evaluate();
      const PlayedRound& round = trial.play_round();
      lists[which].emplace_back(round.shown.begin(), round.shown.end());
    }
    states[which] = state_of(*ranker);
    ndcg[which] = trial.evaluate().online_ndcg;
  }
  EXPECT_EQ(states[0], states[1]);
  EXPECT_EQ(lists[0], lists[1]);
  EXPECT_NE(ndcg[0], ndcg[1]);  // the metrics did see them
  EXPECT_NE(states[0], state_of(*make(ranker_settings(GetParam()), keys)));
}

TEST_P(LinearTrialsTest, RecordedFeedbackTeachesTheSameForAnyGrades) {
  const TemporaryFolder folder;
  const auto taught = make_it(6);
  {
    TrialStage stage(settings(80, 40), data(), *taught, 6);
    Trace trace(folder / "trace", false, "{}");
    RoundDetail detail;
    while (!stage.trial.finished()) {
      const PlayedRound& round = stage.trial.play_round(&detail);
      trace.write(round, data().train.qid(round.query), detail);
    }
    trace.close();
  }
  std::string states[2];
  double ndcg[2];
  for (const int which : {0, 1}) {
    const TrialData& on = which == 0 ? data() : other_grades();
    const RecordedFeedback recorded = RecordedFeedback::read(folder / "trace", on.train);
    const auto ranker = make_it(6);
    ExecutionContext execution;
    Trial trial(settings(80, 40), on, {.recorded = &recorded}, TrialKeys::of(6, 1, "recorded"), *ranker,
                execution);
    while (!trial.finished()) trial.play_round();
    states[which] = state_of(*ranker);
    ndcg[which] = trial.evaluate().online_ndcg;
  }
  EXPECT_EQ(states[0], states[1]);
  // What rounds taught, their record teaches: learning depends on the feedback alone.
  EXPECT_EQ(states[0], state_of(*taught));
  EXPECT_NE(ndcg[0], ndcg[1]);
}

TEST_P(LinearTrialsTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  // More than 4,096 documents to score and more than 2,048 pairs to train on: several blocks of each.
  static const TrialData large = small_trial_data("synth:small?queries=600&test_queries=500&docs=20");
  ASSERT_GT(large.eval_set.docs(), 2 * 4096);
  RankerSettings all_pairs = ranker_settings(GetParam());
  all_pairs.feedback.pairs = PairRule::kAll;
  const TrialKeys keys = TrialKeys::of(2, 1, "informational");
  std::string first;
  std::vector<std::string> first_lines;
  for (const int threads : {1, 2, 4}) {
    const auto ranker = make(all_pairs, keys, large);
    TrialStage stage(settings(600, 200), large, *ranker, 2, "informational", threads);
    std::vector<std::string> lines;
    stage.play_to(600, true, lines);
    if (threads == 1) {
      first = stage.state();
      first_lines = lines;
      if (GetParam().starts_with("pairrank")) {
        EXPECT_GT(stage.trial.latest_point().pairs, 2 * 2048);
      }
    }
    EXPECT_EQ(fingerprint_of(stage.state()), fingerprint_of(first)) << threads;
    EXPECT_EQ(lines, first_lines) << threads;
  }
}

}  // namespace
}  // namespace olrank
