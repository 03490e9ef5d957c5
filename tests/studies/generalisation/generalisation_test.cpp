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

TEST(GeneralisationTheory, PenaltyMinimisesTheBoundItComesFromAndTheRegularisedBoundIsAbove) {
  for (const std::int64_t n : {1, 10, 200, 1000}) {
    const auto bound = [&](double lambda) {
      const double slope = 5.0 * lambda + 2.0;
      return 0.5 * lambda * 25.0 + 4.0 * slope * slope / (lambda * static_cast<double>(n));
    };
    const double best = theorem_penalty(2.0, 5.0, n);
    EXPECT_LT(bound(best), bound(0.99 * best));
    EXPECT_LT(bound(best), bound(1.01 * best));
    EXPECT_GE(regularised_bound(2.0, 5.0, n), bound(best));
    EXPECT_LE(regularised_bound(2.0, 5.0, n), 2.0 * bound(best));
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

double score_of(std::span<const float> row, std::span<const double> w) {
  double score = 0.0;
  for (std::size_t k = 0; k < w.size(); ++k) score += w[k] * double{row[k]};
  return score;
}

/// ListNet's loss of one query, term by term.
double obvious_listnet(const FeatureMatrix& docs, std::span<const std::uint8_t> grades,
                       std::span<const double> w) {
  double score_sum = 0.0;
  double grade_sum = 0.0;
  std::vector<double> scores;
  for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
    scores.push_back(score_of(docs.doc(doc), w));
    score_sum += std::exp(scores.back());
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

  const ListRecipe recipe{.docs = 4, .features = 3};
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
  const double gap = std::exp(0.3 * static_cast<double>(seed)) * std::pow(m, b) * std::pow(n, c);
  StudiedRow one{'A', seed, {{{"noise", "query"}, {"loss", "listnet"}}, {}}};
  one.row.values = {{"m", m},           {"n", n},      {"gap", gap},
                    {"plain_gap", gap}, {"slopes", 2}, {"radius_share", 0.5}};
  for (const char* bound : {"bound", "regularised_bound", "uniform_bound", "length_bound"})
    one.row.values[bound] = 1e6;
  return one;
}

std::vector<StudiedRow> planted_rows(std::int64_t seeds, const std::vector<double>& lengths, double b,
                                     double b_of_seed, double c) {
  std::vector<StudiedRow> rows;
  for (std::int64_t seed = 1; seed <= seeds; ++seed) {
    for (const double m : lengths) {
      for (const double n : {100.0, 1000.0})
        rows.push_back(planted(seed, m, n, b + b_of_seed * static_cast<double>(seed), c));
    }
  }
  return rows;
}

TEST(LogSlopes, RecoverWhatWasPlantedInEachSeed) {
  std::vector<StudiedRow> rows = planted_rows(3, {5.0, 50.0, 500.0}, 0.0, 0.1, -0.5);
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
  const struct {
    std::optional<double> at_most;
    bool is_difference;
    double mean, half_width;
    const char* verdict;
  } rows[] = {{{}, false, 0.0, 0.1, "–"},
              {0.0, false, -0.5, 0.2, "holds"},
              {0.0, false, -0.05, 0.02, "holds, reached"},
              {0.0, false, 0.04, 0.005, "holds, reached"},
              {0.0, false, 0.0, 0.2, "open"},
              {0.0, false, 0.3, 0.2, "above"},
              {0.0, true, 0.04, 0.005, "above"},
              {0.0, true, -0.04, 0.005, "holds"},
              {0.0, true, -0.04, 0.1, "open"}};
  for (const auto& [at_most, is_difference, mean, half_width, verdict] : rows) {
    TheoryClaim claim;
    claim.at_most = at_most;
    claim.is_difference = is_difference;
    claim.estimate.mean = mean;
    claim.estimate.half_width = half_width;
    EXPECT_EQ(claim.verdict(), verdict) << mean << " ± " << half_width;
  }
}

TEST(GeneralisationFindings, NameTheSlopesOfALoss) {
  const GeneralisationFindings found =
      find_generalisation(planted_rows(2, {50.0, 100.0, 500.0}, -0.02, 0.0, -0.7));
  const auto claim = std::find_if(found.claims.begin(), found.claims.end(), [](const TheoryClaim& one) {
    return one.subject == "listnet, noise by query" && one.quantity == "b: slope over m";
  });
  ASSERT_NE(claim, found.claims.end());
  EXPECT_NEAR(claim->estimate.mean, -0.02, 1e-9);
  EXPECT_EQ(claim->verdict(), "holds, reached");
  EXPECT_FALSE(found.figures.empty());
}

Dataset drawn(const ListRecipe& recipe, std::int64_t first, std::int64_t count) {
  return ListSource(recipe, study_key(3, StudyDraw::kSample)).queries(first, count);
}

/// The first documents of two queries are the same.
void expect_same_docs(const Dataset& a, std::int64_t query, const Dataset& b, std::int64_t other,
                      std::int64_t docs) {
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    EXPECT_EQ(a.grades_of(query)[doc], b.grades_of(other)[doc]);
    EXPECT_TRUE(std::ranges::equal(a.features_of(query).doc(doc), b.features_of(other).doc(doc)));
  }
}

TEST(ListSource, QueriesAreTheSameInAnyBlockAndBeginWithTheShortOnes) {
  for (const RowKind rows : {RowKind::kSphere, RowKind::kSigns, RowKind::kGraded}) {
    const Dataset all = drawn({.docs = 7, .rows = rows}, 0, 12);
    const Dataset late = drawn({.docs = 7, .rows = rows}, 5, 4);
    for (std::int64_t query = 0; query < 4; ++query) expect_same_docs(all, 5 + query, late, query, 7);
  }
  expect_same_docs(drawn({.docs = 5}, 2, 1), 0, drawn({.docs = 9}, 2, 1), 0, 5);
}

TEST(ListSource, RowsHaveTheirNorm) {
  for (const RowKind rows : {RowKind::kSphere, RowKind::kGraded, RowKind::kSigns}) {
    const Dataset data = drawn({.row_norm = 2.0, .rows = rows}, 0, 20);
    for (std::int64_t doc = 0; doc < data.docs(); ++doc) {
      double squares = 0.0;
      bool are_signs = true;
      for (const float value : data.all_features().doc(doc)) {
        squares += double{value} * double{value};
        are_signs = are_signs && std::abs(value) == 1.0F;
      }
      EXPECT_TRUE(rows == RowKind::kSigns ? are_signs : std::abs(std::sqrt(squares) - 2.0) <= 1e-6);
    }
  }
}

TEST(ListSource, GradesHaveTheirShares) {
  // 20,000 documents of the sphere: relevance is nearly normal, so that shares differ from 50, 25, 15, 7
  // and 3 % by less than 0.02, six standard deviations of a share.
  for (const PreferenceNoise noise : {PreferenceNoise::kDocument, PreferenceNoise::kQuery}) {
    const Dataset data = drawn({.noise = noise}, 0, 2000);
    const double expected[] = {0.5, 0.25, 0.15, 0.07, 0.03};
    for (std::uint8_t grade = 0; grade < 5; ++grade) {
      const auto count = std::count(data.all_grades().begin(), data.all_grades().end(), grade);
      EXPECT_NEAR(static_cast<double>(count) / 20000.0, expected[grade], 0.02) << int{grade};
    }
  }
}

TEST(ListSource, WithoutNoiseTheTrueDirectionGivesTheGrades) {
  const ListRecipe recipe{.rows = RowKind::kGraded, .noise_share = 0.0};
  const Dataset data = drawn(recipe, 0, 50);
  const std::vector<double> w = true_direction(recipe);
  for (std::int64_t doc = 0; doc < data.docs(); ++doc)
    EXPECT_NEAR(score_of(data.all_features().doc(doc), w),
                static_cast<double>(data.all_grades()[doc]) - 2.0, 1e-6);
}

TEST(ListSource, NoiseByQueryIsOneDirectionForAQuery) {
  // Without a share of w°, the grades of a query follow a direction of its own: a linear fit to one query
  // orders it perfectly, which errors of documents would not allow.
  const ListLossForm form = study_loss("ranksvm-mean", 4).form;
  const auto loss_with = [&](PreferenceNoise noise) {
    const Dataset one = drawn({.docs = 40, .features = 5, .noise = noise, .noise_share = 0.9}, 0, 1);
    return mean_loss(form, one, fit_regularised(form, one, 1e-6, 1e-3));
  };
  EXPECT_LT(loss_with(PreferenceNoise::kQuery), 1e-3);
  EXPECT_GT(loss_with(PreferenceNoise::kDocument), 0.1);
}

TEST(ListSource, ChoosesQueries) {
  const Dataset all = drawn({.docs = 3}, 0, 6);
  const Dataset chosen = chosen_queries(all, {4, 1, 4});
  ASSERT_EQ(chosen.queries(), 3);
  expect_same_docs(chosen, 1, all, 1, 3);
  expect_same_docs(chosen, 0, chosen, 2, 3);
  const Dataset first = first_queries(all, 2);
  ASSERT_EQ(first.docs(), 6);
  expect_same_docs(first, 1, all, 1, 3);
}

}  // namespace
}  // namespace olrank
