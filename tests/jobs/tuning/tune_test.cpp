#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/error.h"
#include "jobs/settings/configuration.h"
#include "jobs/tuning/sweep.h"
#include "jobs/tuning/tuning.h"
#include "tests/jobs/settings/configuration_text.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

const std::string kTwoRankers =
    "[[ranker]]\nname = \"full\"\nkind = \"pairrank\"\n[[ranker]]\nname = \"b.2\"\nkind = \"pdgd\"\n";

std::vector<std::string> names_of(const std::vector<GridPoint>& grid) {
  std::vector<std::string> names;
  for (const GridPoint& point : grid) names.push_back(point.settings.name);
  return names;
}

TrialResults trial(const std::string& ranker, const std::string& user, std::int64_t fold, std::int64_t seed,
                   double offline_area, double online_area) {
  TrialResults trial;
  trial.identity = {ranker, user, fold, seed};
  trial.finished = true;
  trial.offline_area = offline_area;
  trial.online_area = online_area;
  trial.last[Measure::kOfflineNdcg] = offline_area + 0.125;
  trial.last[Measure::kDiscountedNdcg] = 100 * online_area;
  return trial;
}

TEST(SweepTest, ErrorsNameLocationAndNearestName) {
  expect_cases("jobs/tuning/tune_test.txt", "sweep",
               [](const std::string& text) { return refusal_of(text); });
}

TEST(SweepTest, GridsThatCannotBeAreRefused) {
  expect_cases("jobs/tuning/tune_test.txt", "grid", [](const std::string& text) {
    return message_of<InvalidArgument>([&] { grid_of(from_text(text)); });
  });
}

TEST(SweepTest, GridHasEveryCombination) {
  const Configuration configuration = from_text(kTwoRankers +
                                                "[sweep]\n"
                                                "steps = [10, 20]\n"
                                                "alpha = [0.5, 0.25]\n"
                                                "learning_rate = [3, 4]\n"
                                                "[sweep.full]\n"
                                                "lambda = [1e-5]\n"
                                                "steps = [7]\n");
  const std::vector<GridPoint> grid = grid_of(configuration);
  EXPECT_EQ(names_of(grid), (std::vector<std::string>{"full+steps=7+alpha=0.5+lambda=1e-05",
                                                      "full+steps=7+alpha=0.25+lambda=1e-05",
                                                      "b.2+learning_rate=3", "b.2+learning_rate=4"}));
  EXPECT_EQ(grid[1].ranker, "full");
  EXPECT_EQ(grid[1].settings.trainer.steps, 7);
  EXPECT_EQ(grid[1].settings.explore.alpha, 0.25);
  EXPECT_EQ(grid[1].settings.posterior.lambda, 1e-5);
  EXPECT_EQ(grid[3].settings.trainer.learning_rate_decay, 0.999977);
}

const std::string kRanges =
    "[[ranker]]\nname = \"full\"\nkind = \"pairrank\"\n[[ranker]]\nname = \"b\"\nkind = \"olranknet\"\n"
    "[sweep]\nalpha = { from = 0.01, to = 10, scale = \"log\" }\n"
    "[sweep.b]\nwidth = { from = 4, to = 7 }\nlist = [\"certain\", \"blocks\"]\n";

TEST(RandomSearch, DrawsFromRangesAndLists) {
  const Configuration configuration = from_text(kRanges, {parse_override("search.draws=400")});
  const std::vector<GridPoint> grid = grid_of(configuration);
  int points = 0;
  int below_one_tenth = 0;
  std::map<std::int64_t, int> widths;
  std::map<ListRule, int> lists;
  for (const GridPoint& point : grid) {
    const double alpha = point.settings.explore.alpha;
    EXPECT_TRUE(alpha >= 0.01 && alpha <= 10.0) << alpha;
    EXPECT_LE(fmt::format("{}", alpha).size(), 6U) << "three digits: " << alpha;
    if (point.ranker == "full") continue;
    ++points;
    below_one_tenth += alpha < 0.1 ? 1 : 0;
    ++widths[point.settings.network.width];
    ++lists[point.settings.explore.list];
  }
  // A third of the range's logarithm, with a deviation of 9.4: four of them.
  EXPECT_NEAR(below_one_tenth, points / 3, 38);
  EXPECT_EQ(widths.size(), 4U);
  for (const auto& [width, count] : widths) EXPECT_NEAR(count, points / 4, 35) << width;  // deviation 8.7
  EXPECT_NEAR(lists[ListRule::kBlocks], points / 2, 40);                                  // deviation 10
}

TEST(RandomSearch, IsReproducibleAndGrows) {
  const auto values = [](const std::string& text, const std::vector<SettingOverride>& overrides) {
    std::vector<double> alphas;
    for (const GridPoint& point : grid_of(from_text(text, overrides))) {
      if (point.ranker == "full") alphas.push_back(point.settings.explore.alpha);
    }
    return alphas;
  };
  const std::vector<double> ten = values(kRanges, {parse_override("search.draws=10")});
  EXPECT_EQ(ten.size(), 10U);
  EXPECT_EQ(values(kRanges, {parse_override("search.draws=10")}), ten);
  EXPECT_NE(values(kRanges, {parse_override("search.draws=10"), parse_override("search.seed=2")}), ten);
  // Neither more draws nor further axes change the first ones.
  std::vector<double> more = values(kRanges + "[sweep.full]\nlambda = { from = 1, to = 2 }\n",
                                    {parse_override("search.draws=15")});
  more.resize(10);
  EXPECT_EQ(more, ten);
}

TEST(SweepTest, PointNamesAreUniqueFolderNames) {
  const std::string long_name(95, 'x');
  const Configuration configuration = from_text("[[ranker]]\nkind = \"pairrank\"\nname = \"" + long_name +
                                                "\"\n[sweep]\nalpha = [1, 2, 3]\nlambda = [1, 2]\n");
  const std::vector<GridPoint> grid = grid_of(configuration);
  std::set<std::string> names;
  for (const GridPoint& point : grid) {
    EXPECT_LE(point.settings.name.size(), 100U);
    names.insert(point.settings.name);
  }
  EXPECT_EQ(names.size(), 6U);

  const std::vector<GridPoint> clashing =
      grid_of(from_text("[[ranker]]\nkind = \"pairrank\"\nname = \"a\"\n[[ranker]]\nkind = "
                        "\"pairrank\"\nname = \"a+alpha=1\"\n"
                        "[sweep.a]\nalpha = [1]\nlambda = [2]\n[sweep.\"a+alpha=1\"]\nlambda = [2]\n"));
  EXPECT_EQ(names_of(clashing), (std::vector<std::string>{"a+alpha=1+lambda=2", "a+alpha=1+lambda=2+2"}));
}

/// Two points of one ranker on two folds, with two users and two seeds. All numbers are sums of powers of
/// two, so the means are exact.
class ChoiceTest : public ::testing::Test {
 protected:
  ChoiceTest() : grid_(grid_of(configuration_)) {
    for (const std::int64_t fold : {1, 2}) {
      for (const std::string user : {"perfect", "informational"}) {
        for (const std::int64_t seed : {1, 2}) {
          const double spread = seed == 1 ? 0.0625 : -0.0625;
          // The second point is better only on fold 2 with the noisy user, and worse on average.
          const bool odd = fold == 2 && user == "informational";
          trials_.push_back(trial("full+alpha=1", user, fold, seed, 0.5 + spread, 0.25 - spread));
          trials_.push_back(
              trial("full+alpha=2", user, fold, seed, (odd ? 0.75 : 0.25) + spread, 0.5 + spread));
        }
      }
    }
  }

  std::vector<TriedPoint> choose_by(SweepCriterion by) const {
    return choose(grid_, finished_trials(trials_), matrix_of(configuration_), by);
  }

  Configuration configuration_ =
      from_text(kTwoRankers +
                "[sweep.full]\nalpha = [1, 2]\n[data]\nfolds = [1, 2]\n[protocol]\nseeds = [1, 2]\n"
                "[clicks]\nmodels = [\"perfect\", \"informational\"]\n");
  std::vector<GridPoint> grid_;
  std::vector<TrialResults> trials_;
};

TEST_F(ChoiceTest, ChoosesTheLargestMeanArea) {
  const auto offline = choose_by(SweepCriterion::kOffline);
  ASSERT_EQ(offline.size(), 2U);
  EXPECT_EQ(offline[0].moments.trials, 8);
  EXPECT_EQ(offline[0].moments.offline_area.mean, 0.5);
  EXPECT_EQ(offline[1].moments.offline_area.mean, 0.375);
  EXPECT_EQ(offline[1].moments.discounted_ndcg.mean, 50.0);
  // Eight values at a distance of 1/16 from their mean: 8/256/7.
  EXPECT_DOUBLE_EQ(offline[0].moments.offline_area.deviation, std::sqrt(8.0 / 256.0 / 7.0));
  EXPECT_TRUE(offline[0].chosen);
  EXPECT_FALSE(offline[1].chosen);
  const auto online = choose_by(SweepCriterion::kOnline);
  EXPECT_FALSE(online[0].chosen);
  EXPECT_TRUE(online[1].chosen);
}

TEST_F(ChoiceTest, ChoosesTheBestWorstCase) {
  // Random orders have 0.125. The first point ends at 0.625 ± 1/16 everywhere. The second one has the
  // better mean, but ends below random on fold 2 with the noisy user.
  for (TrialResults& one : trials_) {
    one.last[Measure::kRandomOfflineNdcg] = 0.125;
    const bool odd = one.identity.fold == 2 && one.identity.user == "informational";
    if (one.identity.ranker == "full+alpha=2") one.last[Measure::kOfflineNdcg] = odd ? 0.0625 : 1.0;
  }
  const auto tried = choose_by(SweepCriterion::kWorst);
  EXPECT_TRUE(tried[0].chosen);
  // Two seeds at 0.5625 and 0.6875: the 10th percentile is 0.575. The best mean is 1 where that is
  // smallest.
  EXPECT_DOUBLE_EQ(tried[0].worst_gain, (0.575 - 0.125) / (1.0 - 0.125));
  EXPECT_DOUBLE_EQ(tried[1].worst_gain, (0.0625 - 0.125) / (0.625 - 0.125));
  const auto winners = winners_of(configuration_, grid_, tried);
  EXPECT_TRUE(
      contains(winners_text(configuration_, winners, SweepCriterion::kWorst), "worst gain on vali"));
  EXPECT_TRUE(
      contains(winners_json(configuration_, winners, SweepCriterion::kWorst), "\"worst_gain\": 0.51428"));
}

TEST_F(ChoiceTest, WorstCaseNeedsTheFiguresOfRandomOrders) {
  EXPECT_THROW(choose_by(SweepCriterion::kWorst), Error);
}

TEST_F(ChoiceTest, TakesTheFirstOfEqualPointsAndSkipsThoseWithoutAllTheirAreas) {
  const std::vector<TrialResults> whole = trials_;
  const auto first_is_chosen = [&] { return choose_by(SweepCriterion::kOffline)[0].chosen; };
  for (TrialResults& one : trials_) one.offline_area = 0.5;
  EXPECT_TRUE(first_is_chosen());
  trials_ = whole;
  for (TrialResults& one : trials_) {
    if (one.identity.ranker == "full+alpha=1") one.offline_area = std::numeric_limits<double>::quiet_NaN();
  }
  EXPECT_FALSE(first_is_chosen());
  trials_ = whole;
  trials_.erase(trials_.begin());  // a trial of the better point
  EXPECT_FALSE(first_is_chosen());
  std::erase_if(trials_, [](const TrialResults& one) { return one.identity.seed == 2; });
  EXPECT_THROW(first_is_chosen(), Error);
  trials_ = whole;  // with trials that are not in the matrix
  trials_.push_back(trial("full+alpha=2", "perfect", 1, 3, 99.0, 99.0));
  trials_.push_back(trial("full+alpha=2", "perfect", 3, 1, 99.0, 99.0));
  trials_.push_back(trial("full+alpha=2", "navigational", 1, 1, 99.0, 99.0));
  trials_.push_back(trial("full+alpha=9", "perfect", 1, 1, 99.0, 99.0));
  EXPECT_TRUE(first_is_chosen());
}

TEST_F(ChoiceTest, TablesShowTriedAndChosenPoints) {
  const auto tried = choose_by(SweepCriterion::kOffline);
  const std::string table = tuning_csv(configuration_, grid_, tried);
  EXPECT_EQ(table.substr(0, table.find('\n')),
            "ranker,point,alpha,trials,offline_area,offline_area_sd,online_area,online_area_sd,"
            "offline_ndcg@10,offline_ndcg@10_sd,cndcg@10,cndcg@10_sd,chosen,worst_gain");
  EXPECT_TRUE(contains(table, "\nfull,full+alpha=1,1,8,0.5,"));
  EXPECT_TRUE(contains(table, ",1,\nfull,full+alpha=2,2,8,0.375,"));

  std::vector<Winner> winners = winners_of(configuration_, grid_, tried);
  const TrialResults tested = trial("full", "perfect", 1, 1, 0.5, 0.25);
  winners[0].test = trial_moments({&tested}, "full");
  winners[1].test = trial_moments({}, "b.2");
  EXPECT_EQ(winners_csv(configuration_, winners),
            "ranker,alpha,trials,offline_area,offline_area_sd,online_area,online_area_sd,"
            "offline_ndcg@10,offline_ndcg@10_sd,cndcg@10,cndcg@10_sd\n"
            "full,1,1,0.5,,0.25,,0.625,,25,\n"
            "b.2,,0,,,,,,,,\n");
  const std::string text = winners_text(configuration_, winners, SweepCriterion::kOffline);
  EXPECT_TRUE(contains(text, "alpha = 1"));
  EXPECT_TRUE(contains(text, "0.6250"));
}

TEST(EdgeNotesTest, NotesValuesAtTheEdgeOfThreeOrMore) {
  const Configuration configuration = from_text(
      "[[ranker]]\nkind = \"olranknet\"\nname = \"a\"\n[sweep]\n"
      "alpha = [0.5, 1, 0.1]\nlambda = [1, 2]\nsteps = [5, 10, 20]\n"
      "list = [\"certain\", \"blocks\", \"greedy\"]\n");
  const std::vector<SweepAxis> axes = axes_of(configuration.sweep, configuration.rankers.front());
  const std::vector<GridPoint> grid = grid_of(configuration);
  const auto point_with = [&](double alpha, std::int64_t steps) {
    for (const GridPoint& point : grid) {
      if (point.settings.explore.alpha == alpha && point.settings.trainer.steps == steps) return point;
    }
    return GridPoint{};
  };
  using Notes = std::vector<std::string>;
  EXPECT_EQ(edge_notes(point_with(0.5, 10), axes), Notes{});
  EXPECT_EQ(edge_notes(point_with(1, 10), axes), Notes{"alpha = 1 is the largest value tried"});
  EXPECT_EQ(edge_notes(point_with(0.1, 20), axes),
            (Notes{"alpha = 0.1 is the smallest value tried", "steps = 20 is the largest value tried"}));
}

}  // namespace
}  // namespace olrank
