#include "studies/generalisation/list_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "studies/generalisation/study_losses.h"

namespace olrank {
namespace {

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
