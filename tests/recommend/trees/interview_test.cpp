#include "recommend/trees/interview.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "recommend/trees/fact_training.h"
#include "tests/recommend/trees/tree_world.h"

namespace olrank {
namespace {

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
  const TreeWorld world(41);
  ExecutionContext context;
  const auto training = start_fact(small_fact(1), world.data);
  training->advance(context);
  const auto& recommender = dynamic_cast<const TreeRecommender&>(training->model());
  Interview interview(recommender, world.reviews.names, 5);
  ASSERT_FALSE(interview.finished());
  EXPECT_EQ(interview.question(), "How much does " + std::string(interview.subject()) + " matter to you?");
  int questions = 0;
  while (!interview.finished()) {
    const std::vector<InterviewItem> before = interview.list();
    interview.answer(questions == 0 ? TreeBranch::kAtLeast : TreeBranch::kBelow);
    ++questions;
    const auto factor = recommender.trees().user_tree.factor(interview.node());
    for (std::size_t rank = 0; rank < interview.list().size(); ++rank) {
      const InterviewItem& item = interview.list()[rank];
      EXPECT_NEAR(item.score, factor_product(factor, recommender.trees().items.row(item.item)), 1e-5);
      if (rank > 0) {
        EXPECT_GE(interview.list()[rank - 1].score, item.score);
      }
      const auto place = std::ranges::find(before, item.item, &InterviewItem::item);
      EXPECT_EQ(item.rank_before, place == before.end() ? -1 : place - before.begin());
    }
  }
  EXPECT_GE(questions, 1);
  EXPECT_LE(questions, 3);
  EXPECT_EQ(std::ssize(recommender.trees().user_tree.path_to(interview.node())), questions);
}

TEST(InterviewTest, ChangesAreSaidFromTheOldRankToTheNew) {
  EXPECT_EQ(change_text({.rank_before = -1}, 0), "new");
  EXPECT_EQ(change_text({.rank_before = 4}, 1), "up 3");
  EXPECT_EQ(change_text({.rank_before = 1}, 4), "down 3");
  EXPECT_EQ(change_text({.rank_before = 2}, 2), "");
}

}  // namespace
}  // namespace olrank
