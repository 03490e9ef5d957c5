#include "recommend/trees/squared_sums.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/random/rng_stream.h"
#include "tests/recommend/trees/tree_world.h"

namespace olrank {
namespace {

// The slow formula.
double ridge_objective(const TreeWorld& world, std::int64_t user, const std::vector<double>& x,
                       double lambda, const std::vector<double>& anchor) {
  double sum = 0.0;
  const auto rated = world.data.by_user.others_of(user);
  const auto ratings = world.data.by_user.ratings_of(user);
  for (std::size_t place = 0; place < rated.size(); ++place) {
    double error = ratings[place];
    for (std::size_t k = 0; k < x.size(); ++k) error -= x[k] * world.items.row(rated[place])[k];
    sum += error * error;
  }
  for (std::size_t k = 0; k < x.size(); ++k) sum += lambda * (x[k] - anchor[k]) * (x[k] - anchor[k]);
  return sum;
}

TEST(SquaredSumsTest, ClosedFormIsWhereDescentEnds) {
  const TreeWorld world(7);
  const std::vector<double> sums = squared_sums_of_rows(world.data.by_user, world.items);
  const std::int64_t size = squared_sums_size(TreeWorld::kDimension);
  RidgeSolver solver(TreeWorld::kDimension);
  const double lambda = 0.7;
  for (std::int64_t user = 0; user < 10; ++user) {
    const std::vector<double> anchor = {0.3, -0.2, 0.5, 0.1};
    const std::span<const double> of_user(sums.data() + user * size, static_cast<std::size_t>(size));
    std::vector<double> closed(TreeWorld::kDimension);
    solver.minimise(of_user, lambda, anchor, closed);
    // Plain descent with numerical gradients of the slow formula.
    std::vector<double> x = anchor;
    double curvature = lambda;
    for (const std::int32_t item : world.data.by_user.others_of(user)) {
      for (const float v : world.items.row(item)) curvature += static_cast<double>(v) * v;
    }
    for (int step = 0; step < 3000; ++step) {
      std::vector<double> gradient(x.size());
      for (std::size_t k = 0; k < x.size(); ++k) {
        std::vector<double> ahead = x;
        std::vector<double> behind = x;
        ahead[k] += 1e-4;
        behind[k] -= 1e-4;
        gradient[k] = (ridge_objective(world, user, ahead, lambda, anchor) -
                       ridge_objective(world, user, behind, lambda, anchor)) /
                      2e-4;
      }
      for (std::size_t k = 0; k < x.size(); ++k) x[k] -= 0.5 * gradient[k] / curvature;
    }
    // Central differences of a quadratic are exact but for rounding, 1e-13 · 100 / 1e-4 of a slope.
    for (std::size_t k = 0; k < x.size(); ++k) EXPECT_NEAR(closed[k], x[k], 1e-5);
    const double fall = ridge_objective(world, user, anchor, lambda, anchor) -
                        ridge_objective(world, user, closed, lambda, anchor);
    EXPECT_NEAR(solver.reduction(of_user, lambda, anchor), fall, 1e-9 * (1.0 + fall));
    EXPECT_NEAR(squared_error(of_user, closed), ridge_objective(world, user, closed, 0.0, anchor), 1e-9);
  }
}

TEST(SquaredSumsTest, GradientIsThatOfTheError) {
  const TreeWorld world(8);
  const std::vector<double> sums = squared_sums_of_rows(world.data.by_user, world.items);
  const std::span<const double> first(sums.data(), squared_sums_size(TreeWorld::kDimension));
  const std::vector<double> x = {0.4, -0.3, 0.2, 0.9};
  std::vector<double> gradient(x.size(), 0.0);
  add_squared_error_gradient(first, x, gradient);
  for (std::size_t k = 0; k < x.size(); ++k) {
    std::vector<double> ahead = x;
    std::vector<double> behind = x;
    ahead[k] += 1e-4;
    behind[k] -= 1e-4;
    EXPECT_NEAR(gradient[k], (squared_error(first, ahead) - squared_error(first, behind)) / 2e-4, 1e-6);
  }
}

}  // namespace
}  // namespace olrank
