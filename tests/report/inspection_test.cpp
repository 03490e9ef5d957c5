#include "report/inspection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "core/data/synthetic.h"
#include "core/error.h"
#include "core/random/rng_stream.h"

namespace olrank {
namespace {

struct Made {
  std::vector<float> values;
  std::vector<std::uint8_t> grades;
  std::vector<std::int64_t> offsets;
};

Dataset dataset_of(std::vector<float> values, std::vector<std::uint8_t> grades, std::int64_t features) {
  const auto made = std::make_shared<Made>();
  made->values = std::move(values);
  made->grades = std::move(grades);
  made->offsets = {0, std::ssize(made->grades)};
  Dataset::Contents contents;
  contents.memory = made;
  contents.values = made->values;
  contents.grades = made->grades;
  contents.offsets = made->offsets;
  contents.features = features;
  contents.qids = {"1"};
  return Dataset(std::move(contents));
}

/// Three grades whose means form a triangle, with correlated noise; a constant feature; and one of another
/// scale.
std::vector<float> triangle(const std::vector<std::uint8_t>& grades, double scale) {
  const double means[3][2] = {{0.0, 0.0}, {1.0, 0.5}, {1.5, -1.0}};
  RngStream noise(make_key({.seed = 3, .purpose = Purpose::kProbe}), 0);
  std::vector<float> values;
  for (const std::uint8_t grade : grades) {
    const double a = noise.normal();
    const double b = noise.normal();
    values.push_back(static_cast<float>(means[grade][0] + a));
    values.push_back(7.0F);
    values.push_back(static_cast<float>(scale * (means[grade][1] + 0.6 * a + 0.5 * b)));
  }
  return values;
}

std::vector<std::uint8_t> some_grades(std::size_t docs) {
  std::vector<std::uint8_t> grades(docs);
  for (std::size_t doc = 0; doc < docs; ++doc) grades[doc] = doc % 7 < 4 ? 0 : doc % 7 < 6 ? 1 : 2;
  return grades;
}

struct Spread {
  double between = 0.0;
  double within = 0.0;
};

/// Variance of values between the means of three grades, and within them.
Spread spread_of(const std::vector<double>& values, const std::vector<std::uint8_t>& grades) {
  double sums[3] = {};
  double counts[3] = {};
  double sum = 0.0;
  for (std::size_t doc = 0; doc < values.size(); ++doc) {
    sums[grades[doc]] += values[doc];
    counts[grades[doc]] += 1.0;
    sum += values[doc];
  }
  const auto docs = static_cast<double>(values.size());
  Spread spread;
  for (std::size_t doc = 0; doc < values.size(); ++doc) {
    const double mean = sums[grades[doc]] / counts[grades[doc]];
    spread.between += (mean - sum / docs) * (mean - sum / docs) / docs;
    spread.within += (values[doc] - mean) * (values[doc] - mean) / docs;
  }
  return spread;
}

std::vector<double> coordinate(const Discriminant& found, std::size_t axis) {
  std::vector<double> values;
  for (const auto& at : found.docs) values.push_back(at[axis]);
  return values;
}

// The ridge changes variances by a millionth; features are floats.
TEST(DiscriminantTest, NoOtherDirectionSeparatesGradesBetter) {
  ExecutionContext context;
  const std::vector<std::uint8_t> grades = some_grades(3000);
  const std::vector<float> values = triangle(grades, 1000.0);
  const Discriminant found = linear_discriminant(dataset_of(values, grades, 3), context);
  double best = 0.0;
  for (int step = 0; step < 3600; ++step) {
    const double angle = std::numbers::pi * step / 3600.0;
    std::vector<double> along;
    for (std::size_t doc = 0; doc < grades.size(); ++doc)
      along.push_back(std::cos(angle) * values[3 * doc] + std::sin(angle) * values[3 * doc + 2] / 1000.0);
    const Spread spread = spread_of(along, grades);
    best = std::max(best, spread.between / spread.within);
  }
  const Spread first = spread_of(coordinate(found, 0), grades);
  const Spread second = spread_of(coordinate(found, 1), grades);
  EXPECT_NEAR(first.within, 1.0, 1e-5);
  EXPECT_NEAR(second.within, 1.0, 1e-5);
  EXPECT_NEAR(first.between, found.separation[0], 1e-5);
  EXPECT_NEAR(second.between, found.separation[1], 1e-5);
  EXPECT_GT(found.separation[0], found.separation[1]);
  EXPECT_NEAR(found.separation[0], best, 1e-5 * best);
  // The two coordinates are uncorrelated within grades: the sum's variance is the sum of variances.
  std::vector<double> sum = coordinate(found, 0);
  for (std::size_t doc = 0; doc < sum.size(); ++doc) sum[doc] += found.docs[doc][1];
  EXPECT_NEAR(spread_of(sum, grades).within, 2.0, 1e-4);
}

TEST(DiscriminantTest, ScalesOfFeaturesAndThreadsChangeNothing) {
  ExecutionContext one;
  ExecutionContext three(3);
  const std::vector<std::uint8_t> grades = some_grades(2000);
  const Discriminant found = linear_discriminant(dataset_of(triangle(grades, 1.0), grades, 3), one);
  const Discriminant scaled = linear_discriminant(dataset_of(triangle(grades, 4096.0), grades, 3), three);
  EXPECT_EQ(found.docs, scaled.docs);  // by a power of two
  double trend = 0.0;
  for (std::size_t doc = 0; doc < grades.size(); ++doc) trend += found.docs[doc][0] * (grades[doc] - 0.5);
  EXPECT_GT(trend, 0.0);
}

TEST(DiscriminantTest, FeaturesThatAreSumsOfOthersDoNoHarm) {
  ExecutionContext context;
  const Dataset data = make_synthetic("synth:mslr-like?queries=20&docs=20", context).train;
  const Discriminant found = linear_discriminant(data, context);
  EXPECT_GT(found.separation[0], found.separation[1]);
  EXPECT_GT(found.separation[1], 0.0);
  for (const auto& at : found.docs) ASSERT_TRUE(std::isfinite(at[0]) && std::isfinite(at[1]));
}

TEST(DiscriminantTest, RefusesGradesWithoutAPlane) {
  ExecutionContext context;
  std::vector<std::uint8_t> grades = some_grades(100);
  for (std::uint8_t& grade : grades) grade = grade > 0 ? 1 : 0;
  EXPECT_THROW(linear_discriminant(dataset_of(triangle(grades, 1.0), grades, 3), context), InvalidArgument);
}

}  // namespace
}  // namespace olrank
