#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "studies/generalisation/generalisation_findings.h"
#include "studies/generalisation/generalisation_plan.h"
#include "studies/generalisation/study_losses.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

// Rows of cells against slow, obvious computations, and the constants of the theorems.

TEST(GeneralisationTheory, CountsTheMostPairs) {
  for (const int most_grade : {1, 2, 4}) {
    for (std::int64_t docs = 1; docs <= 12; ++docs) {
      std::int64_t pairs = 0;  // with the grades spread evenly
      for (std::int64_t i = 0; i < docs; ++i) {
        for (std::int64_t j = 0; j < i; ++j) pairs += i % (most_grade + 1) != j % (most_grade + 1) ? 1 : 0;
      }
      EXPECT_EQ(most_pairs(docs, most_grade), pairs) << docs << " " << most_grade;
    }
  }
  EXPECT_EQ(theorem_slopes(study_loss("listnet", 4).form, 100), 2.0);
  EXPECT_EQ(theorem_slopes(study_loss("ranksvm", 1).form, 100), 2.0 * 50 * 50);
  EXPECT_EQ(theorem_slopes(study_loss("ranksvm-mean", 4).form, 100), 2.0);
}

TEST(GeneralisationTheory, PenaltyMinimisesTheBoundItComesFrom) {
  const double g = 2.0;
  const double w = 5.0;
  const double n = 200.0;
  const auto bound = [&](double lambda) {
    return 0.5 * lambda * w * w + 4.0 * (lambda * w + g) * (lambda * w + g) / (lambda * n);
  };
  const double best = theorem_penalty(g, w, 200);
  EXPECT_LT(bound(best), bound(0.99 * best));
  EXPECT_LT(bound(best), bound(1.01 * best));
}

TEST(GeneralisationTheory, RegularisedBoundIsAboveTheLeastThatThePenaltyGives) {
  for (const std::int64_t n : {1, 10, 1000}) {
    const auto count = static_cast<double>(n);
    const double lambda = theorem_penalty(2.0, 5.0, n);
    const double least =
        0.5 * lambda * 25.0 + 4.0 * (5.0 * lambda + 2.0) * (5.0 * lambda + 2.0) / (lambda * count);
    EXPECT_GE(regularised_bound(2.0, 5.0, n), least);
    EXPECT_LE(regularised_bound(2.0, 5.0, n), 2.0 * least);
  }
}

TEST(GeneralisationTheory, UniformBoundIsThatOfThePaper) {
  const double b = std::log(30.0) + 2.0 * 5.0;
  const double log_2 = std::log(3.0 * 30 * 400) / std::log(2.0);
  EXPECT_NEAR(uniform_bound(study_loss("listnet", 4).form, 30, 2.0, 5.0, 400),
              20.0 * 2.0 * 5.0 * std::sqrt(log_2 / 400.0) *
                  std::log(6.0 * b * 20.0 / (5.0 * 2.0 * 5.0 * std::sqrt(log_2))),
              1e-9);
}

TEST(GeneralisationTheory, LossesInTheBallStayBelowTheirMost) {
  RngStream random(study_key(3, StudyDraw::kSample), 0);
  Scratch scratch;
  for (const char* name :
       {"listnet", "smooth-dcg", "smooth-dcg-10", "ranksvm", "ranksvm-mean", "ranknet", "listmle"}) {
    const ListLossForm form = study_loss(name, 4).form;
    for (int draw = 0; draw < 200; ++draw) {
      std::vector<double> scores(12);
      std::vector<std::uint8_t> grades(12);
      for (double& score : scores) score = random.uniform() < 0.5 ? -2.0 : 2.0;
      for (std::uint8_t& grade : grades) grade = static_cast<std::uint8_t>(random.index(5));
      std::vector<double> slopes(12);
      EXPECT_LE(list_loss(form, scores, grades, scratch, slopes),
                most_loss(form, 12, theorem_slopes(form, 12), 2.0))
          << name;
    }
  }
}

TEST(GeneralisationTheory, SmoothStepIsThatOfThePaper) {
  const double h = 1.5;
  const double w = 2.5;
  const double risk = 0.2;
  const double n = 300.0;
  const double step = smooth_step(h, w, risk, 300);
  EXPECT_NEAR(step, w / (4 * h * w + 2 * std::sqrt(4 * h * h * w * w + 2 * h * risk * n)), 1e-12);
  EXPECT_NEAR(smooth_step(h, w, 0.0, 300), 1.0 / (8.0 * h), 1e-12);
}

/// ListNet's loss of one query, term by term.
double obvious_listnet(const FeatureMatrix& docs, std::span<const std::uint8_t> grades,
                       std::span<const double> w) {
  double score_sum = 0.0;
  double grade_sum = 0.0;
  std::vector<double> scores;
  for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
    double score = 0.0;
    for (std::size_t k = 0; k < w.size(); ++k) score += w[k] * double{docs.doc(doc)[k]};
    scores.push_back(score);
    score_sum += std::exp(score);
    grade_sum += std::exp(static_cast<double>(grades[doc]));
  }
  double loss = 0.0;
  for (std::size_t doc = 0; doc < scores.size(); ++doc)
    loss -= std::exp(static_cast<double>(grades[doc])) / grade_sum * (scores[doc] - std::log(score_sum));
  return loss;
}

double obvious_mean(const Dataset& data, std::span<const double> w) {
  double sum = 0.0;
  for (std::int64_t query = 0; query < data.queries(); ++query)
    sum += obvious_listnet(data.features_of(query), data.grades_of(query), w);
  return sum / static_cast<double>(data.queries());
}

/// Gradient descent on mean loss + λ/2 ‖w‖² with differences in place of gradients.
std::vector<double> obvious_fit(const Dataset& data, double penalty) {
  std::vector<double> w(data.features(), 0.0);
  const auto objective = [&] {
    double squares = 0.0;
    for (const double entry : w) squares += entry * entry;
    return obvious_mean(data, w) + 0.5 * penalty * squares;
  };
  for (int step = 0; step < 400; ++step) {
    std::vector<double> gradient(w.size());
    for (std::size_t k = 0; k < w.size(); ++k) {
      const double at = w[k];
      w[k] = at + 1e-5;
      const double above = objective();
      w[k] = at - 1e-5;
      gradient[k] = (above - objective()) / 2e-5;
      w[k] = at;
    }
    for (std::size_t k = 0; k < w.size(); ++k) w[k] -= gradient[k] / (1.0 + penalty);
  }
  return w;
}

TEST(GeneralisationCells, GapsAreThoseOfAnObviousComputation) {
  GeneralisationSizes sizes;
  sizes.features = 3;
  sizes.queries = {4, 8};
  sizes.held_out = 100;
  sizes.held_out_docs = 500;
  const std::vector<CellRow> rows = list_length_rows(sizes, 4, "query", 7);
  EXPECT_EQ(rows.size(), 12U);  // six losses, two numbers of queries

  ListRecipe recipe;
  recipe.docs = 4;
  recipe.features = 3;
  for (const std::int64_t n : {4, 8}) {
    const Dataset a = ListSource(recipe, study_key(7, StudyDraw::kSample)).queries(0, n);
    const Dataset b = ListSource(recipe, study_key(7, StudyDraw::kTwin)).queries(0, n);
    const double penalty = std::sqrt(4.0 * 2.0 * 2.0 / static_cast<double>(n)) /
                           std::sqrt(25.0 / 2.0 + 100.0 / static_cast<double>(n));
    const std::vector<double> of_a = obvious_fit(a, penalty);
    const std::vector<double> of_b = obvious_fit(b, penalty);
    const double gap = 0.5 * (obvious_mean(b, of_a) - obvious_mean(a, of_a) + obvious_mean(a, of_b) -
                              obvious_mean(b, of_b));
    double risk = 0.0;
    for (const CellRow& row : rows) {
      if (row.label("loss") != "listnet" || row.value("n") != static_cast<double>(n)) continue;
      // The fits end at a gradient of 2e-4, which leaves of the gap's differences at most about
      // 2e-4 · ‖w_A − w_B‖ ≈ 1e-4.
      EXPECT_NEAR(row.value("gap"), gap, 2e-4);
      EXPECT_NEAR(row.value("bound"), 2.0 * 5.0 * std::sqrt(2.0 / static_cast<double>(n)), 1e-12);
      const auto held_out = static_cast<std::int64_t>(row.value("held_out"));
      risk = obvious_mean(ListSource(recipe, study_key(7, StudyDraw::kHeldOut)).queries(0, held_out), of_a);
      EXPECT_NEAR(row.value("plain_gap"), risk - obvious_mean(a, of_a), 5e-4);
      EXPECT_GT(row.value("held_out_error"), 0.0);
    }
    EXPECT_NE(risk, 0.0);
  }
}

TEST(GeneralisationCells, ExcessRiskIsNeverNegative) {
  GeneralisationSizes sizes = GeneralisationSizes::small();
  sizes.population = 300;
  sizes.online = {20, 200};
  const auto rows = excess_risk_rows(sizes, "listnet", 2);
  EXPECT_EQ(rows.size(), 8U);
  for (const CellRow& row : rows) EXPECT_GT(row.value("excess"), -1e-7) << row.label("algorithm");
}

TEST(GeneralisationCells, PairsOfLongListsAreLeftOutWhereTheyCostTooMuch) {
  GeneralisationSizes sizes = GeneralisationSizes::small();
  sizes.most_pair_work = 50.0 * 5 * 5;
  std::map<std::string, int> rows;
  for (const CellRow& row : list_length_rows(sizes, 5, "document", 1)) ++rows[row.label("loss")];
  EXPECT_EQ(rows["listnet"], 2);
  EXPECT_EQ(rows["ranksvm"], 1);
}

TEST(WorkCells, ReadBackWhatTheyWrote) {
  const TemporaryFolder folder;
  const WorkCells store(folder.path(), {"olrank bench generalisation", "recipe",
                                        [](std::string_view name) { return name.starts_with("B-"); }});
  WorkCell cell{"B-m5-seed4", "of these sizes"};
  EXPECT_FALSE(store.has_any());
  const std::vector<CellRow> written = {
      {{{"loss", "listnet"}}, {{"m", 5.0}, {"gap", 0.1 + 0.2}, {"none", std::nan("")}}}};
  store.write(cell, cell_json('B', "m5", 4, cell.recipe, written));
  EXPECT_TRUE(store.has(cell));
  const std::vector<CellRow> rows = rows_of(store.read(cell));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].label("loss"), "listnet");
  EXPECT_EQ(rows[0].value("gap"), 0.1 + 0.2);
  EXPECT_TRUE(std::isnan(rows[0].value("none")));
  cell.recipe = "of other sizes";
  EXPECT_THROW(store.read(cell), InvalidArgument);
  write_file_atomically(folder / "cells/B-m5-seed4.json", "[");
  EXPECT_THROW(store.read(cell), IoError);
  write_file_atomically(folder / "cells/mine.json", "{}");
  store.clear();
  EXPECT_FALSE(store.has(cell));
  EXPECT_TRUE(std::filesystem::exists(folder / "cells/mine.json"));
}

StudiedRow planted(std::int64_t seed, double m, double n, double b, double c) {
  StudiedRow one;
  one.experiment = 'A';
  one.seed = seed;
  one.row.labels = {{"noise", "query"}, {"loss", "listnet"}};
  const double gap = std::exp(0.3 * static_cast<double>(seed)) * std::pow(m, b) * std::pow(n, c);
  one.row.values = {{"m", m},
                    {"n", n},
                    {"gap", gap},
                    {"plain_gap", gap},
                    {"bound", 1e6},
                    {"regularised_bound", 1e6},
                    {"uniform_bound", 1e6},
                    {"slopes", 2},
                    {"length_bound", 1e6},
                    {"radius_share", 0.5}};
  return one;
}

TEST(LogSlopes, RecoverWhatWasPlantedInEachSeed) {
  std::vector<StudiedRow> rows;
  for (const std::int64_t seed : {1, 2, 3}) {
    for (const double m : {5.0, 50.0, 500.0}) {
      for (const double n : {100.0, 1000.0})
        rows.push_back(planted(seed, m, n, 0.1 * static_cast<double>(seed), -0.5));
    }
  }
  rows.push_back(planted(1, 5.0, 10.0, 0.0, 0.0));
  rows.back().row.values["gap"] = -1.0;  // has no logarithm
  const auto slopes = log_slopes(rows, "gap", {"m", "n"});
  ASSERT_EQ(slopes.size(), 2U);
  EXPECT_EQ(slopes[0].units, 3U);
  EXPECT_NEAR(slopes[0].mean, 0.2, 1e-12);
  // t_{0.975} of 2 degrees of freedom, times the deviation 0.1, over √3.
  EXPECT_NEAR(slopes[0].half_width, 4.302652729911275 * 0.1 / std::sqrt(3.0), 1e-9);
  EXPECT_NEAR(slopes[1].mean, -0.5, 1e-12);
  EXPECT_NEAR(slopes[1].half_width, 0.0, 1e-9);
}

TEST(TheoryClaim, ComparesIntervalsWithBounds) {
  TheoryClaim claim;
  const auto verdict = [&](double mean, double half) {
    claim.estimate.mean = mean;
    claim.estimate.half_width = half;
    return claim.verdict();
  };
  EXPECT_EQ(verdict(0.0, 0.1), "–");
  claim.at_most = 0.0;
  EXPECT_EQ(verdict(-0.5, 0.2), "holds");
  EXPECT_EQ(verdict(-0.05, 0.02), "holds, reached");
  EXPECT_EQ(verdict(0.04, 0.005), "holds, reached");
  EXPECT_EQ(verdict(0.0, 0.2), "open");
  EXPECT_EQ(verdict(0.3, 0.2), "above");
  claim.is_difference = true;
  EXPECT_EQ(verdict(0.04, 0.005), "above");
  EXPECT_EQ(verdict(-0.04, 0.005), "holds");
  EXPECT_EQ(verdict(-0.04, 0.1), "open");
}

TEST(GeneralisationFindings, NameTheSlopesOfALoss) {
  std::vector<StudiedRow> rows;
  for (const std::int64_t seed : {1, 2}) {
    for (const double m : {50.0, 100.0, 500.0}) {
      for (const double n : {100.0, 1000.0}) rows.push_back(planted(seed, m, n, -0.02, -0.7));
    }
  }
  const GeneralisationFindings found = find_generalisation(rows);
  const auto claim = std::find_if(found.claims.begin(), found.claims.end(), [](const TheoryClaim& one) {
    return one.subject == "listnet, noise by query" && one.quantity == "b: slope over m";
  });
  ASSERT_NE(claim, found.claims.end());
  EXPECT_NEAR(claim->estimate.mean, -0.02, 1e-9);
  EXPECT_EQ(claim->verdict(), "holds, reached");
  EXPECT_FALSE(found.figures.empty());
}

ListSource source(const ListRecipe& recipe, std::int64_t seed = 3) {
  return ListSource(recipe, study_key(seed, StudyDraw::kSample));
}

double norm_of(std::span<const float> row) {
  double squares = 0.0;
  for (const float value : row) squares += double{value} * double{value};
  return std::sqrt(squares);
}

TEST(ListSource, QueriesAreTheSameInAnyBlock) {
  for (const RowKind rows : {RowKind::kSphere, RowKind::kSigns, RowKind::kGraded}) {
    ListRecipe recipe;
    recipe.docs = 7;
    recipe.rows = rows;
    const Dataset all = source(recipe).queries(0, 12);
    const Dataset late = source(recipe).queries(5, 4);
    for (std::int64_t query = 0; query < 4; ++query) {
      EXPECT_TRUE(std::ranges::equal(all.grades_of(5 + query), late.grades_of(query)));
      for (std::int64_t doc = 0; doc < 7; ++doc)
        EXPECT_TRUE(
            std::ranges::equal(all.features_of(5 + query).doc(doc), late.features_of(query).doc(doc)));
    }
  }
}

TEST(ListSource, LongListsBeginWithTheShortOnes) {
  ListRecipe recipe;
  recipe.docs = 5;
  const Dataset small = source(recipe).queries(2, 1);
  recipe.docs = 9;
  const Dataset large = source(recipe).queries(2, 1);
  for (std::int64_t doc = 0; doc < 5; ++doc) {
    EXPECT_EQ(small.grades_of(0)[doc], large.grades_of(0)[doc]);
    EXPECT_TRUE(std::ranges::equal(small.features_of(0).doc(doc), large.features_of(0).doc(doc)));
  }
}

TEST(ListSource, RowsHaveTheirNorm) {
  ListRecipe recipe;
  recipe.row_norm = 2.0;
  recipe.rows = RowKind::kSphere;
  Dataset data = source(recipe).queries(0, 20);
  for (std::int64_t doc = 0; doc < data.docs(); ++doc)
    EXPECT_NEAR(norm_of(data.all_features().doc(doc)), 2.0, 1e-6);
  recipe.rows = RowKind::kGraded;
  data = source(recipe).queries(0, 20);
  for (std::int64_t doc = 0; doc < data.docs(); ++doc)
    EXPECT_NEAR(norm_of(data.all_features().doc(doc)), 2.0, 1e-6);
  recipe.rows = RowKind::kSigns;
  data = source(recipe).queries(0, 20);
  for (std::int64_t doc = 0; doc < data.docs(); ++doc) {
    for (const float value : data.all_features().doc(doc)) EXPECT_EQ(std::abs(value), 1.0F);
  }
}

TEST(ListSource, GradesHaveTheirShares) {
  // 20,000 documents of the sphere: relevance is nearly normal, so that shares differ from 50, 25, 15, 7
  // and 3 % by less than 0.02, six standard deviations of a share.
  for (const PreferenceNoise noise : {PreferenceNoise::kDocument, PreferenceNoise::kQuery}) {
    ListRecipe recipe;
    recipe.noise = noise;
    const Dataset data = source(recipe).queries(0, 2000);
    const double expected[] = {0.5, 0.25, 0.15, 0.07, 0.03};
    for (std::uint8_t grade = 0; grade < 5; ++grade) {
      const auto count = std::count(data.all_grades().begin(), data.all_grades().end(), grade);
      EXPECT_NEAR(static_cast<double>(count) / 20000.0, expected[grade], 0.02) << int{grade};
    }
  }
}

TEST(ListSource, WithoutNoiseTheTrueDirectionGivesTheGrades) {
  ListRecipe recipe;
  recipe.rows = RowKind::kGraded;
  recipe.noise_share = 0.0;
  const Dataset data = source(recipe).queries(0, 50);
  const std::vector<double> w = true_direction(recipe);
  for (std::int64_t doc = 0; doc < data.docs(); ++doc) {
    double score = 0.0;
    const auto row = data.all_features().doc(doc);
    for (std::size_t k = 0; k < w.size(); ++k) score += w[k] * double{row[k]};
    EXPECT_NEAR(score, static_cast<double>(data.all_grades()[doc]) - 2.0, 1e-6);
  }
}

TEST(ListSource, NoiseByQueryIsOneDirectionForAQuery) {
  // Without a share of w°, the grades of a query follow a direction of its own: a linear fit to one query
  // orders it perfectly, which errors of documents would not allow.
  ListRecipe recipe;
  recipe.docs = 40;
  recipe.features = 5;
  recipe.noise_share = 0.9;
  recipe.noise = PreferenceNoise::kQuery;
  const StudyLoss loss = study_loss("ranksvm-mean", 4);
  const Dataset one = source(recipe).queries(0, 1);
  EXPECT_LT(mean_loss(loss.form, one, fit_regularised(loss.form, one, 1e-6, 1e-3)), 1e-3);
  recipe.noise = PreferenceNoise::kDocument;
  const Dataset scattered = source(recipe).queries(0, 1);
  EXPECT_GT(mean_loss(loss.form, scattered, fit_regularised(loss.form, scattered, 1e-6, 1e-3)), 0.1);
}

TEST(ListSource, ChoosesQueries) {
  ListRecipe recipe;
  recipe.docs = 3;
  const Dataset all = source(recipe).queries(0, 6);
  const Dataset chosen = chosen_queries(all, {4, 1, 4});
  ASSERT_EQ(chosen.queries(), 3);
  EXPECT_TRUE(std::ranges::equal(chosen.features_of(1).doc(2), all.features_of(1).doc(2)));
  EXPECT_TRUE(std::ranges::equal(chosen.grades_of(0), chosen.grades_of(2)));
  const Dataset first = first_queries(all, 2);
  ASSERT_EQ(first.docs(), 6);
  EXPECT_TRUE(std::ranges::equal(first.grades_of(1), all.grades_of(1)));
}

}  // namespace
}  // namespace olrank
