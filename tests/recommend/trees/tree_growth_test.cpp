#include "recommend/trees/tree_growth.h"

#include <gtest/gtest.h>

#include "tests/recommend/trees/tree_world.h"

namespace olrank {
namespace {

// Squared error of all ratings under the factors of leaves, by the slow formula.
double slow_squared_error(const TreeWorld& world, const GrownTree& grown) {
  double sum = 0.0;
  for (std::int64_t user = 0; user < world.data.by_user.rows(); ++user) {
    const auto rated = world.data.by_user.others_of(user);
    for (std::size_t place = 0; place < rated.size(); ++place) {
      double error = world.data.by_user.ratings_of(user)[place];
      const auto leaf = grown.tree.factor(grown.tree.leaf_of(world.profiles.row(user)));
      for (std::size_t k = 0; k < leaf.size(); ++k)
        error -= static_cast<double>(leaf[k]) * world.items.row(rated[place])[k];
      sum += error * error;
    }
  }
  return sum;
}

TEST(TreeGrowthTest, LossNeverRisesWithALevelWithoutPairs) {
  const TreeWorld world(21);
  ExecutionContext context;
  for (const bool parent_factor : {true, false}) {
    double before = 0.0;
    std::int32_t nodes = 0;
    for (int depth = 0; depth <= 5; ++depth) {
      const GrownTree grown = grow_tree(context, world.split, world.rows, nullptr,
                                        {.depth = depth,
                                         .least_rows = 10,
                                         .penalty = 1.0,
                                         .parent_factor = parent_factor,
                                         .descent = {}});
      const double loss = slow_squared_error(world, grown) + grown.penalty;
      if (depth > 0) {
        EXPECT_LE(loss, before * (1.0 + 1e-6));  // factors are stored in float
        EXPECT_GE(grown.tree.size(), nodes);
      }
      if (depth == 1) {
        EXPECT_EQ(grown.tree.size(), 4);
        EXPECT_LT(loss, before);
      }
      EXPECT_LE(grown.tree.depth(), depth);
      before = loss;
      nodes = grown.tree.size();
    }
    EXPECT_GT(nodes, 13);
  }
}

TEST(TreeGrowthTest, ChildrenShareTheirParentsRows) {
  const TreeWorld world(22);
  ExecutionContext context;
  const GrownTree grown =
      grow_tree(context, world.split, world.rows, nullptr, {.depth = 4, .least_rows = 20, .descent = {}});
  std::vector<std::int64_t> in_leaf(grown.tree.size(), 0);
  for (const std::int32_t leaf : grown.leaf_of) ++in_leaf[leaf];
  EXPECT_EQ(grown.tree.node(0).rows, std::ssize(world.rows));
  for (std::int32_t number = 0; number < grown.tree.size(); ++number) {
    const TreeNode& node = grown.tree.node(number);
    if (node.is_leaf()) {
      EXPECT_EQ(node.rows, in_leaf[number]);
      continue;
    }
    EXPECT_GE(node.rows, 20);
    std::int64_t of_children = 0;
    for (const std::int32_t child : node.children) of_children += grown.tree.node(child).rows;
    EXPECT_EQ(of_children, node.rows);
  }
}

TEST(TreeGrowthTest, EmptyPartsKeepTheFactorOfTheirParent) {
  FactorTree tree(2);
  tree.factor(0)[0] = 0.5F;
  tree.split(0, 3, 0.25F);
  for (const std::int32_t child : tree.node(0).children) EXPECT_EQ(tree.factor(child)[0], 0.5F);
  EXPECT_EQ(tree.leaf_of({}), tree.node(0).children[2]);
  const std::vector<ProfileEntry> at = {{3, 0.25F}};
  EXPECT_EQ(tree.leaf_of(at), tree.node(0).children[0]);
  const std::vector<ProfileEntry> below = {{3, 0.24F}};
  EXPECT_EQ(tree.leaf_of(below), tree.node(0).children[1]);
}

}  // namespace
}  // namespace olrank
