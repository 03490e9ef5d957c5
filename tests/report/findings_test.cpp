#include "report/findings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>
#include <string>

#include "core/error.h"
#include "core/statistics/t_tests.h"

namespace olrank {
namespace {

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

UserFindings findings_in(const Report& report) {
  const DataResults& data = report.data.front();
  const UserResults& user = data.users.front();
  return findings_of(report, data, user, final_table(user, data.cutoff));
}

std::vector<double> below(std::vector<double> values, const std::vector<double>& differences) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= differences[i];
  return values;
}

bool has_words(const UserFindings& findings, const std::string& words) {
  for (const std::string& sentence : findings.sentences) {
    if (sentence.find(words) != std::string::npos) return true;
  }
  return false;
}

std::string all_of(const UserFindings& findings) {
  std::string text = findings.headline;
  for (const std::string& sentence : findings.sentences) text += "\n" + sentence;
  return text;
}

const std::vector<double> kFive = {0.50, 0.51, 0.52, 0.53, 0.54};

TEST(Findings, NameAClearWinnerAndByHowMuch) {
  // The means' interval is 2.776 × 0.01581 / √5, that of the differences 2.776 × 0.00707 / √5.
  const UserFindings findings =
      findings_in(report_of({{"a", {kFive}}, {"b", {below(kFive, {0.10, 0.11, 0.09, 0.10, 0.10})}}}));
  EXPECT_EQ(findings.headline, "a is best offline and online.");
  ASSERT_EQ(findings.sentences.size(), 2U);
  EXPECT_EQ(findings.sentences[0],
            "Offline, a is best: NDCG@10 0.5200 ± 0.0196, which is 0.1000 ± 0.0088 above b.");
  EXPECT_EQ(findings.sentences[1],
            "Online, a is best: discounted NDCG@10 5.2 ± 0.2, which is 1.0 ± 0.1 above b.");
}

TEST(Findings, SayWhichTrialsADifferenceIsOver) {
  ExperimentResults results =
      experiment_of({{"a", {kFive}}, {"b", {below(kFive, {0.10, 0.11, 0.09, 0.10, 0.10})}}});
  results.trials.back().finished = false;  // the fifth seed of b
  std::vector<ExperimentResults> experiments;
  experiments.push_back(std::move(results));
  const UserFindings findings = findings_in(compare_experiments(std::move(experiments)));
  EXPECT_TRUE(has_words(findings, "which is 0.1000 ± 0.0130 above b on 4 seeds that both finished."))
      << all_of(findings);
}

TEST(Findings, NameTheClosestOfSeveralLosers) {
  const UserFindings findings =
      findings_in(report_of({{"a", {below(kFive, {0.10, 0.11, 0.09, 0.10, 0.10})}},
                             {"b", {kFive}},
                             {"c", {below(kFive, {0.20, 0.21, 0.19, 0.20, 0.20})}}}));
  EXPECT_TRUE(has_words(findings, "above a, the next; both others are significantly worse."))
      << all_of(findings);
}

TEST(Findings, SayWhoIsNotDistinguishableAndHowManySeedsWouldTell) {
  // A mean difference of half its deviation: 34 pairs give a power of 0.8 (G*Power 3.1).
  const UserFindings findings =
      findings_in(report_of({{"a", {kFive}}, {"b", {below(kFive, {0.03, -0.01, 0.01, 0.03, -0.01})}}}));
  EXPECT_EQ(findings.headline, "5 seeds separate no rankers offline or online.");
  ASSERT_EQ(findings.sentences.size(), 3U);
  EXPECT_EQ(findings.sentences[0],
            "Offline, a has the highest NDCG@10, 0.5200 ± 0.0196, but 5 seeds do not distinguish it from b "
            "(0.0100 ± 0.0248 lower).");
  EXPECT_EQ(findings.sentences[2],
            "About 34 seeds would show the difference of 0.0100 between a and b offline, if it is real. "
            "About 34 seeds would show the difference of 0.1 between a and b online, if it is real.");
}

TEST(Findings, SeparateTiesFromLosers) {
  const UserFindings findings =
      findings_in(report_of({{"a", {kFive}},
                             {"b", {below(kFive, {0.03, -0.01, 0.01, 0.03, -0.01})}},
                             {"c", {below(kFive, {0.20, 0.21, 0.19, 0.20, 0.20})}},
                             {"d", {below(kFive, {0.30, 0.31, 0.29, 0.30, 0.30})}}}));
  EXPECT_EQ(findings.headline, "a and b share the lead offline and online.");
  EXPECT_TRUE(has_words(findings, "Significantly worse: c and d.")) << all_of(findings);
}

TEST(Findings, CorrectForAllPairs) {
  // Each difference alone is significant (p = 0.037, an interval without 0), the three of them are not.
  const std::vector<double> lower = {0.02, 0.02 - 0.0205, 0.02 + 0.0205, 0.02, 0.02};
  const UserFindings findings =
      findings_in(report_of({{"a", {kFive}}, {"b", {below(kFive, lower)}}, {"c", {below(kFive, lower)}}}));
  EXPECT_TRUE(has_words(findings, "but 5 seeds do not distinguish it, corrected for 3 pairs, from b "))
      << all_of(findings);
}

TEST(Findings, SayThatTwoSeedsAreFew) {
  // The variances of the pairs' differences are 0.0002, 0.00045 and 0.00005; the upper limit of
  // their mean counts, with 2 degrees of freedom.
  const UserFindings findings =
      findings_in(report_of({{"a", {{0.60, 0.62}}}, {"b", {{0.58, 0.58}}}, {"c", {{0.57, 0.56}}}}));
  EXPECT_EQ(findings.headline, "2 seeds separate no rankers offline or online.") << all_of(findings);
  EXPECT_TRUE(has_words(findings, "2 seeds are few: ")) << all_of(findings);
  const auto seeds = sample_size(0.03, planning_deviation(std::sqrt(0.0007 / 3.0), 2.0), 0.05 / 3.0);
  ASSERT_TRUE(seeds);
  EXPECT_TRUE(has_words(findings, fmt::format("About {} seeds would show the difference of 0.0300 between "
                                              "a and b offline, if it is real.",
                                              *seeds)))
      << all_of(findings);
}

TEST(Findings, SayThatOneSeedCannotTell) {
  const UserFindings findings = findings_in(report_of({{"a", {{0.5}}}, {"b", {{0.6}}}}));
  EXPECT_EQ(findings.headline, "One seed cannot tell rankers apart.");
  EXPECT_EQ(findings.sentences.front(),
            "Offline, b has the highest NDCG@10, 0.6000; the next is a with 0.5000.");
  EXPECT_TRUE(has_words(findings, "with five there are intervals and tests.")) << all_of(findings);
}

TEST(Findings, NeverCallASkylineBest) {
  const UserFindings findings =
      findings_in(report_of({{"a", {kFive}},
                             {"b", {below(kFive, {0.10, 0.11, 0.09, 0.10, 0.10})}},
                             {"labels", {below(kFive, {-0.2, -0.2, -0.2, -0.2, -0.2})}}},
                            "labels"));
  EXPECT_EQ(findings.headline, "a is best offline and online.");
  EXPECT_TRUE(has_words(findings, "above b. labels, trained on true grades, has 0.7200."))
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
  const UserFindings some = findings_in(report_of({{"a", a}, {"b", b}}));
  EXPECT_TRUE(has_words(some, "4 folds do not distinguish it from b")) << all_of(some);
  EXPECT_TRUE(has_words(some, "About 35 seeds in each fold would show")) << all_of(some);
  // Without their scatter, the folds' own variance of 0.00013 is more than that.
  for (std::vector<double>& fold : b) fold = {fold[0] + 0.019, fold[0] + 0.021};
  const UserFindings none = findings_in(report_of({{"a", a}, {"b", b}}));
  EXPECT_TRUE(has_words(none, "the 4 folds themselves disagree")) << all_of(none);
}

TEST(Findings, CoverUnfinishedExperiments) {
  EXPECT_EQ(findings_in(report_of({{"a", {{}}}, {"b", {{}}}})).headline, "No trial has finished yet.");
  const UserFindings alone = findings_in(report_of({{"a", {kFive}}}));
  EXPECT_EQ(alone.headline, "a is the only ranker with results.");
  ASSERT_FALSE(alone.sentences.empty());
  EXPECT_EQ(alone.sentences.front(), "Offline, a has NDCG@10 0.5200 ± 0.0196.");
}

TEST(FindingsText, FitsATerminal) {
  const Report report =
      report_of({{"a", {kFive}}, {"b", {below(kFive, {0.03, -0.01, 0.01, 0.03, -0.01})}}});
  std::istringstream lines(findings_text(report, 60));
  std::string first;
  std::getline(lines, first);
  EXPECT_EQ(first.rfind("perfect user: 5 seeds separate no rankers", 0), 0U) << first;
  std::size_t count = 1;
  for (std::string line; std::getline(lines, line); ++count) {
    std::size_t columns = 0;
    for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xC0U) != 0x80 ? 1 : 0;
    EXPECT_LE(columns, 60U) << line;
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
  try {
    report_of(heights, "", "pdgt");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "--baseline must be pairrank or pdgd, not 'pdgt'. Did you mean 'pdgd'?");
  }
}

}  // namespace
}  // namespace olrank
