#include "core/data/synthetic_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "core/data/synthetic.h"
#include "core/runtime/execution_context.h"

namespace olrank {
namespace {

// Features are stored as floats: each is off by at most 2⁻²⁵, and no target here multiplies that by 10.
constexpr double kRounding = 1e-6;

double dot(const std::array<double, 3>& a, std::span<const float> b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/// The θ with θ·x = score for three documents, by Cramer's rule.
std::array<double, 3> theta_through(const FeatureMatrix& docs, const std::array<double, 3>& scores) {
  const auto determinant = [](const std::array<std::array<double, 3>, 3>& m) {
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
           m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
           m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
  };
  std::array<std::array<double, 3>, 3> rows{};
  for (int i = 0; i < 3; ++i) std::copy_n(docs.doc(i).begin(), 3, rows[i].begin());
  std::array<double, 3> theta{};
  for (int k = 0; k < 3; ++k) {
    auto replaced = rows;
    for (int i = 0; i < 3; ++i) replaced[i][k] = scores[i];
    theta[k] = determinant(replaced) / determinant(rows);
  }
  return theta;
}

TEST(RealisableTarget, EveryQueryHasOneDocumentOfEachGradeOnTheUnitSphere) {
  ExecutionContext context;
  for (const std::string source :
       {"synth:realisable", "synth:realisable?units=4&docs=7&features=5&gap=0.3"}) {
    const SyntheticSource parsed = parse_synthetic_source(source);
    const RealisableTarget target(parsed);
    const Dataset train = make_synthetic(source, context).train;
    const std::vector<double> relevance = synthetic_relevance(source, SyntheticPart::kTrain, context);
    std::vector<std::uint8_t> first_grades;
    for (std::int64_t query = 0; query < train.queries(); ++query) {
      const FeatureMatrix docs = train.features_of(query);
      const auto grades = train.grades_of(query);
      ASSERT_EQ(docs.docs, parsed.docs);
      for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
        const std::vector<double> x(docs.doc(doc).begin(), docs.doc(doc).end());
        double length_sq = 0.0;
        for (const double value : x) length_sq += value * value;
        EXPECT_NEAR(length_sq, 1.0, kRounding);
        const double level = (grades[doc] - 0.5 * static_cast<double>(parsed.docs - 1)) * parsed.gap;
        EXPECT_NEAR(target.at(x), level, kRounding) << source << ", query " << query;
        EXPECT_EQ(relevance[train.offset(query) + doc], level);
      }
      first_grades.push_back(grades[0]);
      std::vector<std::uint8_t> sorted(grades.begin(), grades.end());
      std::sort(sorted.begin(), sorted.end());
      for (std::int64_t grade = 0; grade < parsed.docs; ++grade) EXPECT_EQ(sorted[grade], grade);
    }
    // In some order: of 20 queries, all would begin with the same grade once in 4¹⁹ seeds.
    EXPECT_NE(*std::ranges::min_element(first_grades), *std::ranges::max_element(first_grades));
  }
}

TEST(RealisableTarget, OneThetaScoresAllDocumentsOfALinearTargetAndOfNoNetwork) {
  ExecutionContext context;
  for (const std::string units : {"0", "4"}) {
    const SyntheticParts parts = make_synthetic("synth:realisable?units=" + units, context);
    const auto score_of = [](int grade) { return (grade - 1.5) * 0.6; };
    const auto grades = parts.train.grades_of(0);
    const std::array<double, 3> theta = theta_through(
        parts.train.features_of(0), {score_of(grades[0]), score_of(grades[1]), score_of(grades[2])});
    double worst = 0.0;
    for (const Dataset* part : {&parts.train, &parts.vali, &parts.test}) {
      for (std::int64_t doc = 0; doc < part->docs(); ++doc)
        worst = std::max(worst, std::fabs(dot(theta, part->all_features().doc(doc)) -
                                          score_of(part->all_grades()[doc])));
    }
    if (units == "0") {
      // The three documents may be close to one plane, so that θ magnifies their rounding.
      EXPECT_LE(worst, 1e-4);
      // The highest level, .9, is nine tenths of ‖θ*‖.
      EXPECT_NEAR(std::sqrt(theta[0] * theta[0] + theta[1] * theta[1] + theta[2] * theta[2]), 1.0, 1e-4);
    } else {
      EXPECT_GE(worst, 0.1);
    }
  }
}

}  // namespace
}  // namespace olrank
