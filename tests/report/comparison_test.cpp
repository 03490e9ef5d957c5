#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/runtime/progress.h"
#include "core/statistics/t_tests.h"
#include "core/text/text_table.h"
#include "report/experiment_results.h"
#include "report/final_measures.h"
#include "report/outputs.h"
#include "report/report.h"
#include "report/study.h"
#include "sim/curve.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

TEST(PairedComparison, IsCorrectedWithItsFamily) {
  std::vector<PairedComparison> pairs = {compared(0, 1, {{0.1, 0.2, 0.15}}, "ndcg"),
                                         compared(0, 2, {{0.3, 0.31, 0.32}}, "ndcg"),
                                         compared(1, 2, {{0.2}}, "ndcg")};
  EXPECT_FALSE(pairs[1].significant());  // not before the correction
  correct(pairs);
  const std::vector<double> t_holm =
      holm_adjusted(std::vector<double>{pairs[0].test.t_p, pairs[1].test.t_p, pairs[2].test.t_p});
  EXPECT_EQ(pairs[0].t_holm, t_holm[0]);
  EXPECT_EQ(pairs[1].t_holm, t_holm[1]);
  EXPECT_EQ(pairs[0].flip_holm, 0.5);  // a quarter of the sign patterns, twice
  EXPECT_TRUE(pairs[1].significant());
  EXPECT_FALSE(pairs[2].tested());  // one difference
  EXPECT_FALSE(pairs[2].significant());
  EXPECT_TRUE(std::isnan(pairs[2].deviation()));
}

TEST(PairedComparison, IsFoundAndReadInEitherOrder) {
  const std::vector<PairedComparison> pairs = {compared(0, 2, {{0.1, 0.3}})};
  const PairedComparison* pair = comparison_of(pairs, 2, 0);
  ASSERT_EQ(pair, &pairs[0]);
  EXPECT_EQ(comparison_of(pairs, 0, 1), nullptr);
  EXPECT_EQ(pair->difference_of(0).mean, 0.2);
  EXPECT_EQ(pair->difference_of(2).mean, -0.2);
  EXPECT_TRUE(std::isnan(pair->test.flip_p));  // Student's test alone
}

TEST(BestOf, IsTheFirstOfEqualMeansAndSkipsNaN) {
  const std::vector<double> means = {std::nan(""), 0.2, 0.4, 0.4, 0.1};
  EXPECT_EQ(best_of(means, true), 2U);
  EXPECT_EQ(best_of(means, false), 4U);
  EXPECT_EQ(best_of(std::vector<double>{std::nan("")}, true), 1U);
}

/// Owns trials with offline NDCG by round.
class Trials {
 public:
  const TrialResults* add(std::int64_t fold, std::int64_t seed, const Curve& curve) {
    TrialResults trial;
    trial.identity = {"x", "perfect", fold, seed};
    for (const auto& [round, value] : curve) {
      CurveEvaluation point;
      point.round = round;
      point.values[Measure::kOfflineNdcg] = value;
      trial.curve.points.push_back(point);
    }
    kept_.push_back(trial);
    return &kept_.back();
  }

 private:
  std::deque<TrialResults> kept_;
};

TEST(TrialCurves, AreThoseOfEachFoldAndSeed) {
  Trials trials;
  const auto* one = trials.add(1, 1, {{0, 0.1}, {10, 0.3}});
  const auto* two = trials.add(1, 2, {{0, 0.2}, {10, 0.5}});
  const auto* other = trials.add(2, 1, {{0, 0.7}});
  EXPECT_EQ(trial_curves({one, two, other}, Measure::kOfflineNdcg),
            (std::vector<Curve>{{{0, 0.1}, {10, 0.3}}, {{0, 0.2}, {10, 0.5}}, {{0, 0.7}}}));
  EXPECT_TRUE(trial_curves({one}, Measure::kRegret).empty());
}

TEST(DifferenceCurves, PairByFoldSeedAndRound) {
  // Levels differ by 10 between seeds, differences by 0.2: 1 ± 12.706 · 0.1414 / √2.
  Trials trials;
  const auto* a1 = trials.add(1, 1, {{0, 1.0}, {10, 11.1}, {20, 9.0}});
  const auto* a2 = trials.add(1, 2, {{0, 1.0}, {10, 20.9}});
  const auto* a3 = trials.add(1, 3, {{10, 55.0}});  // without a partner
  const auto* b1 = trials.add(1, 1, {{0, 1.0}, {10, 10.0}});
  const auto* b2 = trials.add(1, 2, {{0, 1.0}, {10, 20.0}});
  const DifferenceCurves found = difference_curves({a1, a2, a3}, {b1, b2}, Measure::kOfflineNdcg);
  ASSERT_EQ(found.mean.size(), 2U);
  EXPECT_EQ(found.mean[1].round, 10);
  EXPECT_NEAR(found.mean[1].estimate.mean, 1.0, 1e-12);
  EXPECT_NEAR(found.mean[1].estimate.half_width, 1.2706, 1e-4);
  ASSERT_EQ(found.trials.size(), 2U);
  EXPECT_NEAR(found.trials[0][1].second, 1.1, 1e-12);
  EXPECT_EQ(most_trials(found.mean), 2U);
}

CurvePoint point_at(std::int64_t round) {
  CurvePoint point;
  point.round = round;
  point.cutoff = 5;
  point.offline_ndcg = 0.25;
  point.online_ndcg = 0.125;
  point.discounted_ndcg = 3.5;
  point.regret = 17;
  point.certain_share = 0.75;
  point.blocks = 4.5;
  point.block_size = {1.0, 2.0, std::nullopt, std::nullopt, 5.0};
  point.cosine = 0.5;
  point.width_ratio = WidthRatio{1.5, 1.25, 2.0};
  point.random = {0.0625, 0.03125, 1.5, 20.5};
  return point;
}

RecordedCurve curve_in(const std::string& text) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "c", text);
  return read_curve(folder / "c");
}

TEST(CurveReader, ReadsTheLinesThatTrialsWrite) {
  StageClock clock;
  std::string text = curve_line(CurvePoint{}, &clock);
  clock.add("train", 0.5);
  clock.add("eval", 100.0);
  text += curve_line(point_at(250), &clock);
  const RecordedCurve curve = curve_in(text);
  ASSERT_EQ(curve.points.size(), 2U);
  EXPECT_EQ(curve.damage, "");
  EXPECT_EQ(curve.cutoff, 5);
  EXPECT_TRUE(std::isnan(curve.points[0].values[Measure::kCertainShare]));
  EXPECT_TRUE(std::isnan(curve.points[0].values[Measure::kMilliseconds]));
  EXPECT_EQ(curve.points[1].round, 250);
  const MeasureValues& values = curve.points[1].values;
  const std::pair<Measure, double> wanted[] = {{Measure::kOfflineNdcg, 0.25},
                                               {Measure::kOnlineNdcg, 0.125},
                                               {Measure::kDiscountedNdcg, 3.5},
                                               {Measure::kRegret, 17.0},
                                               {Measure::kRandomOfflineNdcg, 0.0625},
                                               {Measure::kRandomOnlineNdcg, 0.03125},
                                               {Measure::kRandomDiscountedNdcg, 1.5},
                                               {Measure::kRandomRegret, 20.5},
                                               {Measure::kCertainShare, 0.75},
                                               {Measure::kBlocks, 4.5},
                                               {block_size_at(1), 2.0},
                                               {block_size_at(4), 5.0},
                                               {Measure::kCosine, 0.5},
                                               {Measure::kWidthRatio, 1.5},
                                               {Measure::kWidthRatioLow, 1.25},
                                               {Measure::kWidthRatioHigh, 2.0}};
  for (const auto& [measure, value] : wanted) EXPECT_EQ(values[measure], value) << slug_of(measure);
  EXPECT_TRUE(std::isnan(values[block_size_at(2)]));      // absent
  EXPECT_DOUBLE_EQ(values[Measure::kMilliseconds], 2.0);  // excludes evaluation
}

TEST(CurveReader, ReadsAddedMetricsAndTheirRandomOrders) {
  CurvePoint point = point_at(100);
  point.metrics = {{"ndcg@10", 0.5, 0.25}, {"map", 0.375, std::nan("")}, {"future@3", 1.0, 0.0}};
  const StageClock clock;
  const RecordedCurve curve = curve_in(curve_line(point, &clock));
  ASSERT_EQ(curve.damage, "");
  const MeasureValues& values = curve.points.at(0).values;
  EXPECT_EQ(curve.cutoff, 5);
  EXPECT_EQ(values[Measure::kOfflineNdcg], 0.25);
  const NamedMetric ndcg{MetricKind::kNdcg, 10};
  const NamedMetric map{MetricKind::kMap, 0};
  EXPECT_EQ(values[measure_of(ndcg)], 0.5);
  EXPECT_EQ(values[random_measure_of(ndcg)], 0.25);
  EXPECT_EQ(values[measure_of(map)], 0.375);
  EXPECT_TRUE(std::isnan(values[random_measure_of(map)]));
  // A metric that this version does not know is taken as one of a program.
  const NamedMetric own = own_metric("future@3");
  EXPECT_EQ(values[measure_of(own)], 1.0);
  EXPECT_EQ(title_of(measure_of(own), 5), "Offline future@3");
  EXPECT_EQ(slug_of(measure_of(own)), "offline-future-at-3");
  EXPECT_EQ(values.added(), (std::vector{measure_of(ndcg), measure_of(map), measure_of(own),
                                         random_measure_of(ndcg), random_measure_of(own)}));
  EXPECT_EQ(title_of(measure_of(map), 5), "Offline MAP");
  EXPECT_EQ(slug_of(random_measure_of(ndcg)), "random-offline-ndcg-at-10");
  EXPECT_EQ(random_baseline(measure_of(ndcg)), random_measure_of(ndcg));
}

TEST(CurveReader, EndsBeforeTheFirstDamagedLine) {
  const std::string first = curve_line(point_at(0), nullptr);
  const std::string second = curve_line(point_at(100), nullptr);
  const std::string third = curve_line(point_at(200), nullptr);
  // A run may have been writing any proper prefix of the third line.
  for (std::size_t kept = 1; kept < third.size(); ++kept) {
    const RecordedCurve curve = curve_in(first + second + third.substr(0, kept));
    EXPECT_EQ(curve.points.size(), 2U) << kept;
    EXPECT_TRUE(contains(curve.damage, "c:3: This line is incomplete")) << kept;
  }
  for (const std::string& damaged :
       std::vector<std::string>{"\n", "[1]\n", "{\"round\":150}\n", "\xff\xfe\n", "{}{}\n", first}) {
    const RecordedCurve curve = curve_in(first + second + damaged + third);
    EXPECT_EQ(curve.points.size(), 2U) << damaged;
    EXPECT_TRUE(contains(curve.damage, "c:3:")) << damaged;
  }
  EXPECT_TRUE(curve_in("").points.empty());
  EXPECT_EQ(curve_in("").damage, "");
}

/// Offline NDCG by ranker, fold and seed; online values are ten times these.
using Heights = std::map<std::string, FoldedValues>;

ExperimentResults experiment_of(const Heights& heights, const std::string& skyline = "") {
  ExperimentResults results;
  results.folder = "runs/x";
  results.run.data = "made-up";
  results.run.users = {"perfect"};
  for (const auto& [name, folds] : heights) {
    results.run.rankers.push_back({name, name, name, name == skyline});
    for (std::size_t fold = 0; fold < folds.size(); ++fold) {
      for (std::size_t seed = 0; seed < folds[fold].size(); ++seed) {
        TrialResults trial;
        trial.identity = {name, "perfect", static_cast<std::int64_t>(fold + 1),
                          static_cast<std::int64_t>(seed + 1)};
        trial.finished = true;
        trial.cutoff = 10;
        trial.last[Measure::kOfflineNdcg] = folds[fold][seed];
        trial.last[Measure::kDiscountedNdcg] = 10.0 * folds[fold][seed];
        results.trials.push_back(trial);
      }
    }
  }
  return results;
}

Report report_of(const Heights& heights, const std::string& skyline = "",
                 const std::string& baseline = "") {
  std::vector<ExperimentResults> experiments;
  experiments.push_back(experiment_of(heights, skyline));
  return compare_experiments(std::move(experiments), baseline);
}

Findings findings_in(const Report& report) {
  return findings_of(views_of(report).front());
}

std::vector<double> below(std::vector<double> values, const std::vector<double>& differences) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= differences[i];
  return values;
}

bool has_words(const Findings& findings, const std::string& words) {
  return std::ranges::any_of(findings.sentences,
                             [&](const std::string& one) { return one.find(words) != std::string::npos; });
}

std::string all_of(const Findings& findings) {
  std::string text = findings.headline;
  for (const std::string& sentence : findings.sentences) text += "\n" + sentence;
  return text;
}

const std::vector<double> kFive = {0.50, 0.51, 0.52, 0.53, 0.54};

const std::vector<double> kLower = {0.10, 0.11, 0.09, 0.10, 0.10};   // than kFive, by far
const std::vector<double> kNear = {0.03, -0.01, 0.01, 0.03, -0.01};  // by less than the noise
const std::vector<double> kLowest = {0.20, 0.21, 0.19, 0.20, 0.20};

TEST(Findings, SayWhoIsBestByHowMuchAndWhatWouldTell) {
  // Each difference alone is significant (p = 0.037, an interval without 0), the three of them are not.
  const std::vector<double> corrected = {0.02, 0.02 - 0.0205, 0.02 + 0.0205, 0.02, 0.02};
  // The variances of the pairs' differences of two seeds are 0.0002, 0.00045 and 0.00005; the upper limit
  // of their mean counts, with 2 degrees of freedom.
  const auto few = sample_size(0.03, planning_deviation(std::sqrt(0.0007 / 3.0), 2.0), 0.05 / 3.0);
  ASSERT_TRUE(few);
  struct Row {
    Heights heights;
    std::string headline;  // empty: not looked at
    std::vector<std::string> words;
  };
  const Row rows[] = {
      // The means' interval is 2.776 × 0.01581 / √5, that of the differences 2.776 × 0.00707 / √5.
      {{{"a", {kFive}}, {"b", {below(kFive, kLower)}}},
       "a is best offline and online.",
       {"Offline, a is best: NDCG@10 0.5200 ± 0.0196, which is 0.1000 ± 0.0088 above b.",
        "Online, a is best: discounted NDCG@10 5.2 ± 0.2, which is 1.0 ± 0.1 above b."}},
      {{{"a", {below(kFive, kLower)}}, {"b", {kFive}}, {"c", {below(kFive, kLowest)}}},
       "",
       {"above a, the next; both others are significantly worse."}},
      // A mean difference of half its deviation: 34 pairs give a power of 0.8 (G*Power 3.1).
      {{{"a", {kFive}}, {"b", {below(kFive, kNear)}}},
       "5 seeds separate no rankers offline or online.",
       {"Offline, a has the highest NDCG@10, 0.5200 ± 0.0196, but 5 seeds do not distinguish it from b "
        "(0.0100 ± 0.0248 lower).",
        "About 34 seeds would show the difference of 0.0100 between a and b offline, if it is real. "
        "About 34 seeds would show the difference of 0.1 between a and b online, if it is real."}},
      {{{"a", {kFive}},
        {"b", {below(kFive, kNear)}},
        {"c", {below(kFive, kLowest)}},
        {"d", {below(kFive, {0.30, 0.31, 0.29, 0.30, 0.30})}}},
       "a and b share the lead offline and online.",
       {"Significantly worse: c and d."}},
      {{{"a", {kFive}}, {"b", {below(kFive, corrected)}}, {"c", {below(kFive, corrected)}}},
       "",
       {"but 5 seeds do not distinguish it, corrected for 3 pairs, from b "}},
      {{{"a", {{0.60, 0.62}}}, {"b", {{0.58, 0.58}}}, {"c", {{0.57, 0.56}}}},
       "2 seeds separate no rankers offline or online.",
       {"2 seeds are few: ",
        fmt::format("About {} seeds would show the difference of 0.0300 between a and b "
                    "offline, if it is real.",
                    *few)}},
      {{{"a", {{0.5}}}, {"b", {{0.6}}}},
       "One seed cannot tell rankers apart.",
       {"Offline, b has the highest NDCG@10, 0.6000; the next is a with 0.5000.",
        "with five there are intervals and tests."}},
      {{{"a", {{}}}, {"b", {{}}}}, "No trial has finished yet.", {}},
      {{{"a", {kFive}}}, "a is the only ranker with results.", {"Offline, a has NDCG@10 0.5200 ± 0.0196."}},
      {{{"a", {kFive}},
        {"b", {below(kFive, kLower)}},
        {"labels", {below(kFive, {-0.2, -0.2, -0.2, -0.2, -0.2})}}},
       "a is best offline and online.",
       {"above b. labels, trained on true grades, has 0.7200."}}};
  for (const Row& row : rows) {
    const Findings findings = findings_in(report_of(row.heights, "labels"));
    if (!row.headline.empty()) {
      EXPECT_EQ(findings.headline, row.headline);
    }
    for (const std::string& words : row.words) EXPECT_TRUE(has_words(findings, words)) << all_of(findings);
  }
}

TEST(Findings, SayWhichTrialsADifferenceIsOver) {
  ExperimentResults results = experiment_of({{"a", {kFive}}, {"b", {below(kFive, kLower)}}});
  results.trials.back().finished = false;  // the fifth seed of b
  std::vector<ExperimentResults> experiments;
  experiments.push_back(std::move(results));
  const Findings findings = findings_in(compare_experiments(std::move(experiments)));
  EXPECT_TRUE(has_words(findings, "which is 0.1000 ± 0.0130 above b on 4 seeds that both finished."))
      << all_of(findings);
}

TEST(Findings, SayHowManySeedsFoldsNeed) {
  // Fold means scatter by less than seeds explain, so only seeds count: their variance is 0.0008, and
  // 4 folds find a difference of 0.01 with a variance of (0.01 · 2 / (3.1824 + 0.9785))² = 2.31e-5.
  FoldedValues a;
  FoldedValues b;
  for (const double shift : {0.01, -0.01, 0.01, -0.01}) {
    a.push_back({0.50, 0.50});
    b.push_back({0.49 - shift - 0.02, 0.49 - shift + 0.02});
  }
  const Findings some = findings_in(report_of({{"a", a}, {"b", b}}));
  EXPECT_TRUE(has_words(some, "4 folds do not distinguish it from b")) << all_of(some);
  EXPECT_TRUE(has_words(some, "About 35 seeds in each fold would show")) << all_of(some);
  // Without their scatter, the folds' own variance of 0.00013 is more than that.
  for (std::vector<double>& fold : b) fold = {fold[0] + 0.019, fold[0] + 0.021};
  const Findings none = findings_in(report_of({{"a", a}, {"b", b}}));
  EXPECT_TRUE(has_words(none, "the 4 folds themselves disagree")) << all_of(none);
}

TEST(FindingsText, FitsATerminal) {
  const Report report = report_of({{"a", {kFive}}, {"b", {below(kFive, kNear)}}});
  std::istringstream lines(findings_text(report, 60));
  std::string first;
  std::getline(lines, first);
  EXPECT_EQ(first.rfind("perfect user: 5 seeds separate no rankers", 0), 0U) << first;
  std::size_t count = 1;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_LE(columns_of(line), 60) << line;
    EXPECT_EQ(line.rfind("  ", 0), 0U) << line;
  }
  EXPECT_GT(count, 4U);
}

TEST(Baseline, IsTheBestOfflineOrTheOneAskedFor) {
  const Heights heights = {{"pairrank", {kFive}}, {"pdgd", {below(kFive, {0.1, 0.1, 0.1, 0.1, 0.1})}}};
  const auto row_of = [&](const Report& report) {
    return baseline_row(report, final_table(report.data.front().users.front(), 10));
  };
  EXPECT_EQ(row_of(report_of(heights)), 0U);
  EXPECT_EQ(row_of(report_of(heights, "pairrank")), 1U);
  EXPECT_EQ(row_of(report_of(heights, "", "pdgd")), 1U);
  EXPECT_EQ(message_of<InvalidArgument>([&] { report_of(heights, "", "pdgt"); }),
            "--baseline must be pairrank or pdgd, not 'pdgt'. Did you mean 'pdgd'?");
}

TEST(MatchAlpha, InterpolatesOverLogAlphaBetweenPooledPointsAndStopsAtTheEnds) {
  const double none = std::nan("");
  const std::vector<CalibrationPoint> two = {{0.01, 0.4, 100}, {1.0, 0.2, 100}};
  struct Row {
    double target;
    std::vector<CalibrationPoint> points;
    double alpha;
    bool bracketed;
  };
  const Row rows[] = {
      // Halfway from 0.4 to 0.2 is halfway from 0.01 to 1 on a logarithmic axis.
      {0.3, {two[0], two[1], {10.0, 0.1, 100}}, 0.1, true},
      // 0.1 of 300 and 0.3 of 100 pool to 0.15, which the curve reaches at the first of the two.
      {0.15, {two[0], {0.1, 0.1, 300}, {1.0, 0.3, 100}}, 0.1, true},
      {0.5, two, 0.01, false},
      {0.1, two, 1.0, false},
      // Points without certain orders count for nothing; 7 is what the calibration had.
      {0.3, {{0.01, none, 0}, {1.0, none, 0}}, 7.0, false},
      {0.3, {{0.01, 0.4, 50}, {1.0, none, 0}}, 0.01, false},
      {none, two, 7.0, false}};
  for (const Row& row : rows) {
    Calibration calibration{"diagonal", row.target, 7.0, false, row.points};
    match_alpha(calibration);
    EXPECT_NEAR(calibration.alpha, row.alpha, 1e-12) << row.target;
    EXPECT_EQ(calibration.bracketed, row.bracketed) << row.target;
  }
}

TEST(WholeTrialShare, WeightsEvaluationsByTheirCounts) {
  RecordedCurve curve;
  curve.points.resize(3);
  curve.points[1].values[Measure::kFalseCertain] = 0.5;
  curve.points[1].certain_orders = 10.0;
  curve.points[2].values[Measure::kFalseCertain] = 0.1;
  curve.points[2].certain_orders = 30.0;
  EXPECT_NEAR(whole_trial_share(curve, Measure::kFalseCertain), (5.0 + 3.0) / 40.0, 1e-15);
  EXPECT_TRUE(std::isnan(whole_trial_share(curve, Measure::kDecisionsDiffer)));
}

}  // namespace
}  // namespace olrank
