#include "sim/trial.h"

#include <memory>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/metrics/external_metric.h"
#include "sim/curve.h"
#include "tests/sim/small_trial.h"
#include "tests/support/message_of.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

const TrialData& data() {
  static const TrialData made = small_trial_data("synth:small?queries=30&test_queries=20");
  return made;
}

/// 23 is no multiple of 5: the last evaluation is none of the regular ones.
TrialSettings settings() {
  return {.rounds = 23, .cutoff = 10, .eval_every = 5, .discount = 0.9};
}

TEST(TrialTest, EvaluatesAtTheStartEveryERoundsAndAtTheEnd) {
  StubRanker ranker(data().train.features());
  TrialStage stage(settings(), data(), ranker);
  std::vector<std::int64_t> rounds;
  EXPECT_TRUE(stage.trial.evaluation_due());
  for (;;) {
    if (stage.trial.evaluation_due()) {
      rounds.push_back(stage.trial.evaluate().round);
      EXPECT_FALSE(stage.trial.evaluation_due());
    }
    if (stage.trial.finished()) break;
    stage.trial.play_round();
  }
  EXPECT_EQ(rounds, (std::vector<std::int64_t>{0, 5, 10, 15, 20, 23}));
  const auto line = nlohmann::json::parse(curve_line(stage.trial.latest_point(), &stage.trial.clock()));
  EXPECT_GT(line.at("seconds").at("score"), 0.0);
  EXPECT_GT(line.at("seconds").at("eval"), 0.0);
  // Where E divides the rounds, the last is evaluated once.
  TrialSettings even = settings();
  even.rounds = 10;
  StubRanker other(data().train.features());
  TrialStage whole(even, data(), other);
  std::vector<std::string> lines;
  whole.play_to(10, true, lines);
  EXPECT_EQ(lines.size(), 3U);
  EXPECT_TRUE(whole.trial.finished());
}

TEST(TrialTest, AddedMetricsChangeNothingElse) {
  StubRanker ranker(data().train.features());
  TrialStage plain(settings(), data(), ranker);
  std::vector<std::string> lines;
  plain.play_to(23, true, lines);
  TrialSettings with = settings();
  with.metrics = {*metric_named("ndcg@5"), *metric_named("ndcg@10"), *metric_named("map")};
  StubRanker again(data().train.features());
  TrialStage stage(with, data(), again);
  std::vector<std::string> more;
  stage.play_to(23, true, more);
  EXPECT_EQ(more, lines);  // what fingerprints cover
  const CurvePoint& point = stage.trial.latest_point();
  auto line = nlohmann::ordered_json::parse(curve_line(point, &stage.trial.clock()));
  EXPECT_EQ(line["metrics"]["ndcg@10"], line["offline"]["ndcg@10"]);
  EXPECT_EQ(line["random"]["metrics"]["ndcg@10"], line["random"]["offline"]["ndcg@10"]);
  EXPECT_GT(line["metrics"]["map"], 0.0);
  EXPECT_NE(line["metrics"]["ndcg@5"], line["metrics"]["ndcg@10"]);
  line.erase("metrics");
  line["random"].erase("metrics");
  EXPECT_EQ(line,
            nlohmann::ordered_json::parse(curve_line(plain.trial.latest_point(), &stage.trial.clock())));
  EXPECT_EQ(stage.state(), plain.state());
  EXPECT_EQ(stage.trial.queries_csv(), plain.trial.queries_csv());
}

TEST(TrialTest, AMetricOfAProgramIsMeasuredInEachEvaluation) {
  double value = 0.0;
  register_metric("spread", "of a test", [&](const ScoredPart& part) {
    EXPECT_EQ(part.offsets.size(), 21U);
    EXPECT_EQ(part.grades.size(), part.scores.size());
    return value + static_cast<double>(part.round);
  });
  TrialSettings with = settings();
  with.metrics = parse_metrics(std::vector<std::string>{"map", "spread", "ndcg@10"}, "a test");
  StubRanker ranker(data().train.features());
  TrialStage stage(with, data(), ranker);
  std::vector<std::string> lines;
  stage.play_to(10, true, lines);
  const CurvePoint& point = stage.trial.latest_point();
  auto line = nlohmann::ordered_json::parse(curve_line(point, &stage.trial.clock()));
  EXPECT_EQ(line["metrics"]["spread"], 10.0);
  EXPECT_EQ(line["metrics"]["ndcg@10"], line["offline"]["ndcg@10"]);
  EXPECT_FALSE(line["random"]["metrics"].contains("spread"));
  value = std::nan("");
  EXPECT_EQ(message_of<InvalidArgument>([&] { stage.trial.evaluate(); }),
            "Metric 'spread' is nan after round 10: return a finite number.");
  const auto refused = [](const std::string& name, const std::string& about = "of a test") {
    return message_of<InvalidArgument>(
        [&] { register_metric(name, about, [](const ScoredPart&) { return 0.0; }); });
  };
  EXPECT_EQ(refused("spread"),
            "There is a registered metric 'spread' already: choose another name, or unregister it.");
  EXPECT_EQ(refused("map"), "The metric 'map' is built in: choose another name.");
  EXPECT_TRUE(contains(refused("a/b"), "A metric cannot be named 'a/b'"));
  EXPECT_EQ(refused("x", ""), "The description of metric 'x' must be one line.");
  unregister_metric("spread");
  EXPECT_TRUE(contains(
      message_of<InvalidArgument>([&] { parse_metrics(std::vector<std::string>{"spread"}, "a test"); }),
      "Unknown metric 'spread'"));
}

TEST(TrialTest, FirstPointIsUntrainedRanker) {
  StubRanker ranker(data().train.features());
  TrialStage stage(settings(), data(), ranker);
  const CurvePoint point = stage.trial.evaluate();
  double sum = 0.0;
  for (std::int64_t query = 0; query < data().eval_set.queries(); ++query) {
    const auto grades = data().eval_set.grades_of(query);
    // All scores are zero, so documents stand in file order.
    sum += slow_ndcg({grades.begin(), grades.end()}, 10);
  }
  // Twenty quotients of sums of ten terms: a few units of 10⁻¹⁶ each.
  EXPECT_TRUE(std::fabs(point.offline_ndcg - sum / static_cast<double>(data().eval_set.queries())) <=
              1e-14);
  EXPECT_EQ(point.round, 0);
  EXPECT_EQ(point.pairs, 0);
  EXPECT_EQ(point.online_ndcg, 0.0);
  EXPECT_EQ(point.discounted_ndcg, 0.0);
  EXPECT_EQ(point.regret, 0);
  EXPECT_FALSE(point.certain_share.has_value());
  EXPECT_FALSE(point.blocks.has_value());
  EXPECT_EQ(point.drift, 0.0);
}

TEST(TrialTest, ContinuesFromAnySavedRoundWithSameCurve) {
  expect_same_curve_from(every_round(23), settings(), data(),
                         [] { return std::make_unique<StubRanker>(data().train.features()); });
}

TEST(TrialTest, CheckpointsKeepBlockSizesThatFingerprintsDoNotCover) {
  StubRanker ranker(data().train.features());
  TrialStage whole(settings(), data(), ranker);
  StateWriter saved;
  for (int round = 0; round < 4; ++round) {
    if (round == 2) {
      whole.trial.save_beside(saved);
      whole.trial.save(saved);
    }
    whole.trial.play_round();
  }
  StubRanker other(data().train.features());
  TrialStage restored(settings(), data(), other);
  StateReader reader(saved.bytes(), "test");
  restored.trial.load_beside(reader);
  restored.trial.load(reader);
  for (int round = 0; round < 2; ++round) restored.trial.play_round();
  ASSERT_TRUE(whole.trial.evaluate().block_size[1].has_value());  // of rank 2
  EXPECT_EQ(restored.trial.evaluate().block_size, whole.trial.latest_point().block_size);
}

TEST(TrialTest, CurveHoldsExpectedFiguresOfRandomLists) {
  TrialSettings here = settings();
  here.cutoff = 4;
  StubRanker ranker(data().train.features());
  TrialStage stage(here, data(), ranker);
  const OnlineOptions options{.cutoff = 4, .discount = 0.9, .max_grade = data().max_grade};
  RandomOnline random(options);
  RandomOnline held_out(options);
  for (std::int64_t query = 0; query < data().eval_set.queries(); ++query)
    held_out.observe(data().eval_set.grades_of(query));
  for (std::uint32_t round = 1; round <= 23; ++round) {
    stage.trial.play_round();
    random.observe(data().train.grades_of(stage.queries.query_of(round)));
  }
  const CurvePoint point = stage.trial.evaluate();
  EXPECT_DOUBLE_EQ(point.random.offline_ndcg, held_out.mean_ndcg());
  EXPECT_EQ(point.random.online_ndcg, random.mean_ndcg());
  EXPECT_EQ(point.random.discounted_ndcg, random.discounted_ndcg());
  EXPECT_EQ(point.random.regret, random.regret());
  const auto line = nlohmann::json::parse(curve_line(point, &stage.trial.clock()));
  EXPECT_EQ(line.at("random").at("offline").at("ndcg@4"), point.random.offline_ndcg);
  EXPECT_EQ(line.at("random").at("online").at("cndcg@4"), point.random.discounted_ndcg);
  // A fingerprint covers what it covered before random lists were counted.
  EXPECT_FALSE(nlohmann::json::parse(curve_line(point, nullptr)).contains("random"));

  // They do not need to be saved.
  StubRanker other(data().train.features());
  TrialStage restored(here, data(), other);
  StateReader reader(stage.state(), "test");
  restored.trial.load(reader);
  EXPECT_EQ(restored.trial.evaluate().random.online_ndcg, point.random.online_ndcg);
}

TEST(TrialTest, FiguresMatchRoundByRoundCounts) {
  for (const std::int64_t cutoff : {1, 4, 10}) {
    TrialSettings here = settings();
    here.rounds = 200;
    here.eval_every = 40;
    here.cutoff = cutoff;
    StubRanker ranker(data().train.features());
    TrialStage stage(here, data(), ranker, 3);
    double ndcg_sum = 0.0;
    double discounted = 0.0;
    double weight = 1.0;
    std::int64_t regret = 0;
    std::int64_t examined_regret = 0;
    ClickLog log;
    std::int64_t pairs = 0;
    double shares = 0.0;
    std::int64_t share_rounds = 0;
    std::int64_t blocks = 0;
    std::array<std::int64_t, ListCertainty::kBlockRanks.size()> sizes{};
    std::array<std::int64_t, ListCertainty::kBlockRanks.size()> size_rounds{};
    for (std::uint32_t number = 1; number <= 200; ++number) {
      const PlayedRound& round = stage.trial.play_round();
      ASSERT_EQ(round.round, number);
      ASSERT_EQ(round.query, stage.queries.query_of(number));
      const auto grades = data().train.grades_of(round.query);
      const std::vector<std::int32_t>& list = ranker.latest_list();
      std::vector<int> in_order;
      for (const std::int32_t doc : list) in_order.push_back(grades[doc]);
      ASSERT_EQ(round.shown.size(), std::min(list.size(), static_cast<std::size_t>(cutoff)));
      ASSERT_TRUE(std::equal(round.shown.begin(), round.shown.end(), list.begin()));
      ASSERT_EQ(round.clicks.size(), round.shown.size());
      const double ndcg = slow_ndcg(in_order, static_cast<std::size_t>(cutoff));
      ASSERT_TRUE(std::fabs(round.ndcg - ndcg) <= 1e-14);
      ndcg_sum += ndcg;
      discounted += weight * ndcg;
      weight *= 0.9;
      for (std::size_t above = 0; above < in_order.size(); ++above) {
        for (std::size_t below = above + 1; below < in_order.size(); ++below) {
          regret += in_order[above] < in_order[below] ? 1 : 0;
        }
      }
      // The user's coins are the same again.
      stage.clicks->click({grades}, round.shown, stage.keys.key(Purpose::kClick), number, log);
      for (std::size_t above = 0; above < log.examined.size(); ++above) {
        for (std::size_t below = above + 1; below < log.examined.size(); ++below) {
          const bool both = log.examined[above] != 0 && log.examined[below] != 0;
          examined_regret += both && in_order[above] < in_order[below] ? 1 : 0;
        }
      }
      pairs += std::ssize(round.learned.pairs);
      const ListCertainty certainty = StubRanker::certainty_of(number, std::ssize(list));
      if (certainty.shown_pairs > 0) {
        shares += static_cast<double>(certainty.certain_pairs) / static_cast<double>(certainty.shown_pairs);
        ++share_rounds;
      }
      blocks += certainty.blocks;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        sizes[i] += certainty.block_size[i];
        size_rounds[i] += certainty.block_size[i] > 0 ? 1 : 0;
      }
      if (!stage.trial.evaluation_due()) continue;
      const CurvePoint& point = stage.trial.evaluate();
      // Sums of at most 200 numbers up to 1, each to 10⁻¹⁴.
      ASSERT_TRUE(std::fabs(point.online_ndcg - ndcg_sum / number) <= 1e-13);
      ASSERT_TRUE(std::fabs(point.discounted_ndcg - discounted) <= 1e-12);
      ASSERT_EQ(point.regret, regret);
      ASSERT_EQ(point.examined_regret, examined_regret);
      ASSERT_EQ(cutoff > 1, examined_regret > 0);
      ASSERT_LT(examined_regret, regret);
      ASSERT_EQ(point.pairs, pairs);
      ASSERT_TRUE(std::fabs(*point.certain_share - shares / static_cast<double>(share_rounds)) <= 1e-13);
      ASSERT_TRUE(std::fabs(*point.blocks - static_cast<double>(blocks) / 40.0) <= 1e-13);
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        ASSERT_EQ(point.block_size[i].has_value(), size_rounds[i] > 0);
        if (size_rounds[i] == 0) continue;
        ASSERT_TRUE(std::fabs(*point.block_size[i] - static_cast<double>(sizes[i]) /
                                                         static_cast<double>(size_rounds[i])) <= 1e-13);
      }
      ASSERT_EQ(point.cutoff, cutoff);
      ASSERT_EQ(point.figures.size(), 1U);
      // Means of certain orders restart after each evaluation.
      shares = 0.0;
      share_rounds = blocks = 0;
      sizes = size_rounds = {};
    }
    EXPECT_EQ(pairs > 20, cutoff > 1);  // one document has no neighbour
  }
}

TEST(CurveTest, LineHasEveryDocumentedField) {
  CurvePoint point;
  point.round = 20;
  point.pairs = 31;
  point.offline_ndcg = 0.1;
  point.online_ndcg = 0.25;
  point.discounted_ndcg = 2.5;
  point.regret = 7;
  point.examined_regret = 3;
  point.random = {0.2, 0.3, 0.4, 8.5};
  point.certain_share = 0.5;
  point.blocks = 3.5;
  for (std::size_t place = 0; place < 11; ++place)
    point.block_size[place] = static_cast<double>(place) + 0.5;
  point.cosine = 0.75;
  point.width_ratio = {1.25, 1.5, 1.75};
  point.drift = 1e-10;
  point.figures = {{"optimality_gap", 0.25}};
  const StageClock clock;
  EXPECT_EQ(
      curve_line(point, &clock),
      R"({"round":20,"pairs":31,"offline":{"ndcg@10":0.1},"online":{"ndcg@10":0.25,"cndcg@10":2.5,"regret":7,)"
      R"("examined_regret":3},"certain_share":0.5,"blocks":3.5,"block_size":{"1":0.5,"2":1.5,"3":2.5,"4":3.5,)"
      R"("5":4.5,"6":5.5,"7":6.5,"8":7.5,"9":8.5,"10":9.5,"15":10.5},"cosine":0.75,"width_ratio":{"median":1.25,)"
      R"("p10":1.5,"p90":1.75},"drift":1e-10,"optimality_gap":0.25,"random":{"offline":{"ndcg@10":0.2},"online":)"
      R"({"ndcg@10":0.3,"cndcg@10":0.4,"regret":8.5}},"seconds":{"score":0,"width":0,"rank":0,"click":0,)"
      R"("observe":0,"train":0,"eval":0}})"
      "\n");
  // Fingerprints cover less.
  EXPECT_EQ(
      curve_line(point, nullptr),
      R"({"round":20,"pairs":31,"offline":{"ndcg@10":0.1},"online":{"ndcg@10":0.25,"cndcg@10":2.5,"regret":7},)"
      R"("certain_share":0.5,"blocks":3.5,"block_size":{"1":0.5,"5":4.5,"10":9.5},"cosine":0.75,"width_ratio":)"
      R"({"median":1.25,"p10":1.5,"p90":1.75},"drift":1e-10,"optimality_gap":0.25})"
      "\n");
}

TEST(CurveTest, UnknownValuesAreNull) {
  CurvePoint point;
  point.cutoff = 5;
  point.offline_ndcg = std::nan("");  // every query was skipped
  point.figures = {{"gradient_norm", std::numeric_limits<double>::infinity()}};
  EXPECT_EQ(
      curve_line(point, nullptr),
      R"({"round":0,"pairs":0,"offline":{"ndcg@5":null},"online":{"ndcg@5":0,"cndcg@5":0,"regret":null},)"
      R"("certain_share":null,"blocks":null,"block_size":{"1":null,"5":null,"10":null},"cosine":null,)"
      R"("width_ratio":null,"drift":null,"gradient_norm":null})"
      "\n");
}

TEST(TrialTest, NoCertainShareWithoutCertainOrders) {
  StubRanker ranker(data().train.features(), false);
  TrialStage stage(settings(), data(), ranker);
  for (int round = 0; round < 5; ++round) stage.trial.play_round();
  const CurvePoint& point = stage.trial.evaluate();
  EXPECT_FALSE(point.certain_share.has_value());
  EXPECT_FALSE(point.blocks.has_value());
  EXPECT_FALSE(point.block_size[0].has_value());
}

}  // namespace
}  // namespace olrank
