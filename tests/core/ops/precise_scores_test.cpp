#include "core/ops/precise_scores.h"

#include <gtest/gtest.h>

#include "tests/core/ops/network_fixture.h"

namespace olrank {
namespace {

TEST(PreciseScoresTest, MatchSlowFormula) {
  std::vector<NetworkShape> shapes = test_shapes();
  shapes.push_back(linear_shape(19));
  shapes.push_back(ntk_shape(136, 100, 2));
  Scratch scratch;
  for (const NetworkShape& shape : shapes) {
    const std::vector<float> narrow = random_theta(shape, 3);
    const std::vector<double> theta(narrow.begin(), narrow.end());
    for (const std::int64_t count : {0, 1, 31, 255, 256, 257, 600}) {
      const std::vector<float> docs = random_numbers(count * shape.inputs, 5);
      std::vector<double> scores(count);
      precise_scores(scratch, shape, theta, {docs.data(), count, shape.inputs}, scores);
      for (std::int64_t doc = 0; doc < count; ++doc) {
        const SlowScore slow = slow_score(shape, theta, docs.data() + doc * shape.inputs);
        // A few hundred additions of double terms that cancel to no less than 10⁻³ of their size.
        EXPECT_NEAR(scores[doc], slow.score, 1e-12 * std::max(1.0, slow.magnitude));
      }
    }
  }
}

TEST(PreciseScoresTest, SymmetricNetworksScoreZeroInitially) {
  Scratch scratch;
  for (const NetworkShape& shape :
       {ntk_shape(46, 100, 2), ntk_shape(46, 34, 3), standard_shape(46, 100, 2)}) {
    std::vector<float> narrow(shape.parameters());
    initialise(shape, Initialisation::kSymmetric, test_key(5), narrow);
    const std::vector<double> theta(narrow.begin(), narrow.end());
    const std::vector<float> docs = random_numbers(300 * shape.inputs, 6);
    std::vector<double> scores(300, 1.0);
    precise_scores(scratch, shape, theta, {docs.data(), 300, shape.inputs}, scores);
    for (const double score : scores) EXPECT_EQ(score, 0.0);
  }
}

}  // namespace
}  // namespace olrank
