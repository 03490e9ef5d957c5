#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "core/io/state_archive.h"
#include "recommend/ranking_figures.h"
#include "recommend/recommender.h"
#include "recommend/trees/factor_tree.h"
#include "recommend/trees/interview.h"
#include "recommend/trees/tree_growth.h"
#include "recommend/trees/tree_model.h"
#include "tests/recommend/trees/tree_world.h"

namespace olrank {
namespace {

std::string trained_bytes(const RecommenderKindRow& kind, const RecommendSettings& settings,
                          const TrainingData& data, int threads) {
  ExecutionContext context(threads);
  const auto training = kind.start(settings, data);
  while (!training->finished()) training->advance(context);
  StateWriter state;
  training->save(state);
  return state.bytes();
}

/// A world with the model of one pass of fact.
struct TrainedFact {
  explicit TrainedFact(std::int64_t seed)
      : world(seed), training(kFactKind.start(small_fact(1), world.data)) {
    ExecutionContext context;
    training->advance(context);
  }
  const TreeRecommender& model() const { return dynamic_cast<const TreeRecommender&>(training->model()); }
  const TreeModel& trees() const { return model().trees(); }

  TreeWorld world;
  std::unique_ptr<RecommenderTraining> training;
};

TEST(FactTrainingTest, SameTreesOnAnyNumberOfThreadsAndAfterAPause) {
  const TreeWorld world(31);
  for (const RecommenderKind kind : {RecommenderKind::kFact, RecommenderKind::kFmf}) {
    RecommendSettings settings = small_fact(2);
    settings.kind = kind;
    const RecommenderKindRow& row = recommender_kind(kind);
    const std::string one = trained_bytes(row, settings, world.data, 1);
    EXPECT_EQ(one, trained_bytes(row, settings, world.data, 2));
    EXPECT_EQ(one, trained_bytes(row, settings, world.data, 4));
    ExecutionContext context;
    const auto first = row.start(settings, world.data);
    first->advance(context);
    StateWriter pause;
    first->save(pause);
    const auto second = row.start(settings, world.data);
    StateReader resume(pause.bytes(), "pause");
    second->load(resume);
    second->advance(context);
    StateWriter state;
    second->save(state);
    EXPECT_EQ(one, state.bytes());
  }
}

TEST(FactTrainingTest, FindsThePlantedRootInNineOfTenSeeds) {
  ExecutionContext context;
  int found = 0;
  for (std::int64_t seed = 1; seed <= 10; ++seed) {
    const PlantedTrees planted = {.users = 400, .items = 200, .reviews = 6000, .seed = seed};
    const Reviews reviews = make_tree_reviews(context, planted);
    const TrainingData data = training_on_all(reviews);
    RecommendSettings settings = small_fact(1);
    settings.factors.dimension = 10;
    settings.trees.user_depth = 1;
    settings.trees.item_depth = 0;
    settings.trees.start_passes = 10;
    const auto training = kFactKind.start(settings, data);
    training->advance(context);
    const TreeNode& root =
        dynamic_cast<const TreeRecommender&>(training->model()).trees().user_tree.node(0);
    if (root.feature >= 0 && reviews.names.features[root.feature] == planted_root(planted)) ++found;
  }
  // By chance it would be one of 100 features.
  EXPECT_GE(found, 9);
}

TEST(FactTrainingTest, LossFallsFromPassToPass) {
  const TreeWorld world(33);
  ExecutionContext context;
  const auto training = kFactKind.start(small_fact(4), world.data);
  const double first = training->advance(context).losses.front().second;
  double last = first;
  while (!training->finished()) last = training->advance(context).losses.front().second;
  EXPECT_LT(last, first);
}

TEST(FactTrainingTest, RefusesTreesDeeperThanTheDataAllows) {
  const TreeWorld world(37);
  const TrainingData data = make_training_data(world.reviews, {0, 1, 2});
  RecommendSettings settings = small_fact(1);
  for (const RecommenderKind kind : {RecommenderKind::kFact, RecommenderKind::kFmf}) {
    settings.kind = kind;
    // One user wrote the first reviews.
    settings.trees.user_depth = 1;
    EXPECT_THROW(recommender_kind(kind).start(settings, data), InvalidArgument);
    settings.trees.user_depth = 0;
    settings.trees.item_depth = 2;
    EXPECT_NO_THROW(recommender_kind(kind).start(settings, data));
  }
}

// Evaluates the predicates of an explanation again, from its JSON and the JSON of the tree alone.
std::int32_t walk_again(const nlohmann::ordered_json& path, const nlohmann::ordered_json& tree) {
  std::int32_t node = 0;
  for (const auto& step : path) {
    EXPECT_EQ(step["node"], node);
    const auto& asked = tree["nodes"][node];
    EXPECT_EQ(asked["feature"], step["feature"]);
    std::string answer = "unknown";
    if (!step["value"].is_null())
      answer = step["value"].get<float>() >= asked["threshold"].get<float>() ? "at_least" : "below";
    EXPECT_EQ(step["branch"], answer);
    node = asked[answer];
  }
  EXPECT_FALSE(tree["nodes"][node].contains("feature"));
  return node;
}

TEST(TreeExplanationTest, PredicatesEvaluatedAgainLeadToTheSameLeaf) {
  const TrainedFact fact(35);
  const TreeWorld& world = fact.world;
  const TreeModel& trees = fact.trees();
  const auto user_tree = tree_json(trees.user_tree, world.reviews.names.features);
  const auto item_tree = tree_json(trees.item_tree, world.reviews.names.features);
  bool shared_somewhere = false;
  for (std::int64_t user = 0; user < 40; ++user) {
    const std::int64_t item = user * 2;
    const auto explanation = fact.model().explain(user, item, world.reviews.names);
    ASSERT_TRUE(explanation);
    const auto& details = explanation->details;
    EXPECT_EQ(walk_again(details["user_path"], user_tree), trees.user_leaf[user]);
    EXPECT_EQ(walk_again(details["item_path"], item_tree), trees.item_leaf[item]);
    EXPECT_EQ(details["user_leaf"], trees.user_leaf[user]);
    bool was_shared = true;
    for (const auto& reason : details["reasons"]) {
      const bool shared = reason["shared"];
      EXPECT_TRUE(was_shared || !shared);  // shared ones first
      was_shared = shared;
      shared_somewhere = shared_somewhere || shared;
      EXPECT_EQ(shared, !reason["user"].is_null() && !reason["item"].is_null());
      for (const char* side : {"user", "item"}) {
        if (!reason[side].is_null()) {
          EXPECT_NE(reason[side]["branch"], "unknown");
        }
      }
    }
    EXPECT_FALSE(explanation->sentences.empty());
    EXPECT_LE(explanation->sentences.size(), 3U);
  }
  EXPECT_TRUE(shared_somewhere);
}

TEST(TreeModelTest, NobodyKnownAnswersUnknownEverywhere) {
  const TrainedFact fact(36);
  const TreeWorld& world = fact.world;
  const TreeModel& trees = fact.trees();
  std::int32_t node = 0;
  while (!trees.user_tree.node(node).is_leaf()) node = trees.user_tree.node(node).children[2];
  std::vector<float> scores(trees.items.rows());
  fact.model().score(19, scores);
  EXPECT_NEAR(scores[3], factor_product(trees.users.row(19), trees.items.row(3)), 1e-5);
  fact.model().score_new_user({}, scores);
  for (std::int64_t item = 0; item < 10; ++item)
    EXPECT_NEAR(scores[item], factor_product(trees.user_tree.factor(node), trees.items.row(item)), 1e-5);
  // All reviews of a user lead to the user's own leaf.
  std::vector<KnownReview> known;
  for (std::int64_t review = 0; review < world.reviews.size(); ++review) {
    if (world.reviews.user[review] == 5)
      known.push_back(
          {world.reviews.item[review], world.reviews.rating[review], world.reviews.mentions_of(review)});
  }
  const Profiles profile =
      profile_of_reviews(known, TreeQuestions::kFeatures, trees.user_profiles.features);
  EXPECT_EQ(trees.user_tree.leaf_of(profile.row(0)), trees.user_leaf[5]);
}

// Squared error of all ratings under the factors of leaves, by the slow formula.
double slow_squared_error(const TreeWorld& world, const GrownTree& grown) {
  double sum = 0.0;
  for (std::int64_t user = 0; user < world.data.by_user.rows(); ++user)
    sum += squared_error_of(world, user, grown.tree.factor(grown.tree.leaf_of(world.profiles.row(user))));
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

TEST(InterviewTest, UnderstandsPlainWords) {
  const auto fact = TreeQuestions::kFeatures;
  for (const char* text : {"1", ">=", "≥", "a lot", "A lot.", " yes ", "it matters a lot"})
    EXPECT_EQ(read_answer(text, fact), TreeBranch::kAtLeast) << text;
  for (const char* text : {"2", "<", "a little", "no", "It matters a little"})
    EXPECT_EQ(read_answer(text, fact), TreeBranch::kBelow) << text;
  for (const char* text : {"3", "?", "", "unknown", "don't know", "I never think of it\r"})
    EXPECT_EQ(read_answer(text, fact), TreeBranch::kUnknown) << text;
  for (const char* text : {"4", "perhaps", "12", "≤"}) EXPECT_FALSE(read_answer(text, fact)) << text;
  EXPECT_EQ(read_answer("I do not like it", TreeQuestions::kItems), TreeBranch::kBelow);
  EXPECT_FALSE(read_answer("I do not like it", fact));
}

TEST(InterviewTest, WalksToALeafAndListsWhatItsFactorPrefers) {
  const TrainedFact fact(41);
  Interview interview(fact.model(), fact.world.reviews.names, 5);
  ASSERT_FALSE(interview.finished());
  EXPECT_EQ(interview.question(), "How much does " + std::string(interview.subject()) + " matter to you?");
  int questions = 0;
  while (!interview.finished()) {
    const std::vector<InterviewItem> before = interview.list();
    interview.answer(questions == 0 ? TreeBranch::kAtLeast : TreeBranch::kBelow);
    ++questions;
    const auto factor = fact.trees().user_tree.factor(interview.node());
    for (std::size_t rank = 0; rank < interview.list().size(); ++rank) {
      const InterviewItem& item = interview.list()[rank];
      EXPECT_NEAR(item.score, factor_product(factor, fact.trees().items.row(item.item)), 1e-5);
      if (rank > 0) {
        EXPECT_GE(interview.list()[rank - 1].score, item.score);
      }
      const auto place = std::ranges::find(before, item.item, &InterviewItem::item);
      EXPECT_EQ(item.rank_before, place == before.end() ? -1 : place - before.begin());
    }
  }
  EXPECT_GE(questions, 1);
  EXPECT_LE(questions, 3);
  EXPECT_EQ(std::ssize(fact.trees().user_tree.path_to(interview.node())), questions);
}

TEST(InterviewTest, ChangesAreSaidFromTheOldRankToTheNew) {
  EXPECT_EQ(change_text({.rank_before = -1}, 0), "new");
  EXPECT_EQ(change_text({.rank_before = 4}, 1), "up 3");
  EXPECT_EQ(change_text({.rank_before = 1}, 4), "down 3");
  EXPECT_EQ(change_text({.rank_before = 2}, 2), "");
}

}  // namespace
}  // namespace olrank
