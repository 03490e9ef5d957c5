#include "core/text/message_text.h"

#include <gtest/gtest.h>

namespace olrank {
namespace {

TEST(NearestTest, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("rum", "run"), 1);
  EXPECT_EQ(edit_distance("widht", "width"), 1);  // neighbours swapped
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("eval-every", "EVAL_every"), 0);
}

TEST(NearestTest, TakesFirstOnTies) {
  const std::vector<std::string> names = {"alpha", "alphb", "beta"};
  EXPECT_EQ(nearest_name("alph", names), "alpha");
  EXPECT_EQ(nearest_name("bet", names), "beta");
  EXPECT_EQ(nearest_name("x", {}), "");
}

TEST(NearestTest, LeadingWordsMayBeMissing) {
  const std::vector<std::string> flags = {"--max-memory", "--protocol-eval-every", "--seeds"};
  EXPECT_EQ(nearest_name("--eval-every", flags), "--protocol-eval-every");
  EXPECT_EQ(nearest_name("--every", flags), "--protocol-eval-every");
  EXPECT_EQ(nearest_name("--seed", flags), "--seeds");
  EXPECT_EQ(nearest_name("every", std::vector<std::string>{"very", "delivery"}), "very");  // no whole word
  EXPECT_EQ(nearest_name("--", flags), "--seeds");
}

TEST(NearestTest, EndsMayBeMissing) {
  EXPECT_EQ(nearest_name("exp", std::vector<std::string>{"linear", "exponential"}), "exponential");
  EXPECT_EQ(nearest_name("trec", std::vector<std::string>{"olrank", "trec_eval", "ranklib"}), "trec_eval");
  EXPECT_EQ(nearest_name("e", std::vector<std::string>{"err", "a"}), "a");
}

TEST(NearestTest, SuggestsOnlyWhatMayBeMeant) {
  const std::vector<std::string> flags = {"--alpha", "--c1", "--set", "--fold", "--protocol-eval-every"};
  EXPECT_EQ(near_name("--alpah", flags), "--alpha");
  EXPECT_EQ(near_name("--folds", flags), "--fold");
  EXPECT_EQ(near_name("--eval-every", flags), "--protocol-eval-every");
  EXPECT_EQ(near_name("--evla-every-round", flags), "");
  for (const char* other : {"--gpu", "--algo", "--k", "--zzzzqqq", "--"})
    EXPECT_EQ(near_name(other, flags), "");
  EXPECT_EQ(near_name("x", {}), "");
  const std::vector<std::string> fields = {"query", "k", "id"};
  for (const char* other : {"q", "j", "is", "kk"}) EXPECT_EQ(near_name(other, fields), "");
  EXPECT_EQ(near_name("ID", fields), "id");
  EXPECT_EQ(did_you_mean("banana", flags), "No known name is close to it.");
}

TEST(NearestTest, JoinsNames) {
  EXPECT_EQ(joined(std::vector<std::string>{}), "");
  EXPECT_EQ(joined(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(joined(std::vector<std::string>{"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(joined(std::vector<std::string>{"a", "b"}, " or "), "a or b");
}

TEST(MustBeOneOf, ListsTheChoicesAndSuggestsTheNearest) {
  const std::vector<std::string> choices = {"offline", "online", "both"};
  EXPECT_EQ(did_you_mean("onlin", choices), "Did you mean 'online'?");
  EXPECT_EQ(must_be_one_of("onlin", choices),
            "must be offline, online or both, not 'onlin'. Did you mean 'online'?");
  EXPECT_EQ(must_be_one_of("banana", choices), "must be offline, online or both, not 'banana'.");
}

}  // namespace
}  // namespace olrank
