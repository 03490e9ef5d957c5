#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "studies/generalisation/generalisation_findings.h"
#include "studies/generalisation/list_source.h"
#include "studies/generalisation/study_losses.h"

namespace olrank {
namespace {

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
  EXPECT_EQ(found.seeds, 2U);
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
