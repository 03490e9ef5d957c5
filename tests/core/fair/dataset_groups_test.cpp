#include "core/fair/dataset_groups.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/data/synthetic.h"
#include "core/error.h"
#include "core/io/folder.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

Dataset small_train() {
  static ExecutionContext context(1);
  return make_synthetic("synth:small?queries=30&group_share=0.4&group_gap=0.5", context).train;
}

GroupRule rule_of(const std::string& settings, const Dataset& train) {
  return GroupRule(parse_group_settings(settings, "--groups"), train);
}

TEST(DatasetGroups, FollowTheThreshold) {
  const Dataset train = small_train();
  const GroupRule below = rule_of("feature=3,threshold=0.4,beta=2", train);
  EXPECT_EQ(below.beta().at(0), 2.0);
  for (std::int64_t doc = 0; doc < train.docs(); ++doc) {
    const bool is_above = train.all_features().doc(doc)[2] > 0.4;
    ASSERT_EQ(below.of_train().of_doc[doc], is_above ? DocGroup::kB : DocGroup::kA);
  }
}

TEST(DatasetGroups, SeveralThresholdsMakeSeveralGroups) {
  const Dataset train = small_train();
  const GroupRule below = rule_of("feature=3,quantile=[0.3,0.7]", train);
  const std::vector<double>& thresholds = below.thresholds();
  ASSERT_EQ(thresholds.size(), 2U);
  std::vector<double> sums(3, 0.0);
  for (std::int64_t doc = 0; doc < train.docs(); ++doc) {
    const double value = train.all_features().doc(doc)[2];
    const std::size_t group = value <= thresholds[0] ? 0 : value <= thresholds[1] ? 1 : 2;
    ASSERT_EQ(index_of(below.of_train().of_doc[doc]), group);
    sums[group] += train.all_grades()[doc];
  }
  const auto& groups = below.of_train().summaries;
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_NEAR(static_cast<double>(groups[1].docs) / static_cast<double>(train.docs()), 0.4, 0.02);
  ASSERT_EQ(below.beta().size(), 2U);
  for (std::size_t group = 1; group < 3; ++group) {
    EXPECT_NEAR(below.beta()[group - 1],
                sums[0] / static_cast<double>(groups[0].docs) /
                    (sums[group] / static_cast<double>(groups[group].docs)),
                1e-12);
  }
}

TEST(DatasetGroups, QuantileHoldsAtLeastItsShare) {
  const Dataset train = small_train();
  for (const double quantile : {0.1, 0.5, 0.65, 0.9}) {
    const GroupRule rule = rule_of(fmt::format("feature=1,quantile={}", quantile), train);
    std::int64_t below = 0;
    std::int64_t at_most = 0;
    for (std::int64_t doc = 0; doc < train.docs(); ++doc) {
      below += train.all_features().doc(doc)[0] < rule.thresholds().at(0) ? 1 : 0;
      at_most += train.all_features().doc(doc)[0] <= rule.thresholds().at(0) ? 1 : 0;
    }
    EXPECT_GE(at_most, quantile * train.docs());
    EXPECT_LT(below, quantile * train.docs());
    EXPECT_EQ(rule.of_train().summaries[0].docs, at_most);
  }
}

// Over 20,000 documents: a share has a standard error of 0.004, a difference of mean grades of about 0.016.
TEST(DatasetGroups, GeneratedGroupsHaveTheirShareAndGap) {
  ExecutionContext context(1);
  for (const auto& [share, gap] : {std::pair(0.35, 0.6), std::pair(0.65, -0.3), std::pair(0.5, 0.0)}) {
    const Dataset train = make_synthetic("synth:small?queries=2000&group_share=" + std::to_string(share) +
                                             "&group_gap=" + std::to_string(gap),
                                         context)
                              .train;
    const GroupRule rule = rule_of("feature=11,threshold=0.5", train);
    const auto& a = rule.of_train().summaries.at(0);
    const auto& b = rule.of_train().summaries.at(1);
    EXPECT_NEAR(static_cast<double>(a.docs) / static_cast<double>(train.docs()), share, 0.02);
    EXPECT_NEAR(a.mean_grade - b.mean_grade, gap, 0.08);
  }
}

TEST(DatasetGroups, RefusesWhatCannotBe) {
  expect_cases("core/refusals.txt", "groups", [](const std::string& text) {
    return message_of<InvalidArgument>([&] {
      const GroupSettings settings = parse_group_settings(text, "--groups");
      settings.check(10);
      const GroupRule rule(settings, small_train());
    });
  });
}

class GroupsFileTest : public testing::Test {
 protected:
  /// A file that names every document, with one line replaced by `text`, or added where it is −1.
  GroupSettings file_with(std::int64_t replaced, const std::string& text) {
    const Dataset train = small_train();
    const std::filesystem::path file = folder_.path() / "groups.csv";
    std::ofstream out(file);
    out << "qid,doc,group\n";
    std::int64_t line = 1;
    for (std::int64_t query = 0; query < train.queries(); ++query) {
      for (std::int64_t doc = 0; doc < train.docs_of(query); ++doc) {
        ++line;
        out << (line == replaced ? text : fmt::format("{},{},{}", train.qid(query), doc, "AB"[doc % 2]))
            << '\n';
      }
    }
    if (replaced < 0) out << text << '\n';
    GroupSettings settings;
    settings.file = file.string();
    return settings;
  }

  ScratchFolder folder_;
};

TEST_F(GroupsFileTest, NamesTheGroupOfEachDocument) {
  const Dataset train = small_train();
  const GroupRule rule(file_with(-1, "of-another-part,3,B"), train);
  for (std::int64_t query = 0; query < train.queries(); ++query) {
    for (std::int64_t doc = 0; doc < train.docs_of(query); ++doc)
      ASSERT_EQ(rule.of_train().of_doc[train.offset(query) + doc],
                doc % 2 == 0 ? DocGroup::kA : DocGroup::kB);
  }
}

TEST_F(GroupsFileTest, HasAsManyGroupsAsItsLastLetterSays) {
  const Dataset train = small_train();
  GroupSettings settings = file_with(4, std::string(train.qid(0)) + ",2,C");
  settings.beta = std::vector{1.0, 2.0};
  const GroupRule rule(settings, train);
  EXPECT_EQ(index_of(rule.of_train().of_doc[2]), 2U);
  ASSERT_EQ(rule.of_train().summaries.size(), 3U);
  EXPECT_EQ(rule.of_train().summaries[2].docs, 1);
  settings.beta.reset();
  try {
    EXPECT_EQ(GroupRule(settings, train).beta().size(), 2U);
  } catch (const InvalidArgument& failure) {  // the only document of C has grade 0
    EXPECT_TRUE(contains(std::string(failure.what()), "0 for C: set groups.beta to 2 numbers"));
  }
}

TEST_F(GroupsFileTest, RefusesWithTheLine) {
  expect_cases("core/refusals.txt", "lines of groups", [this](const std::string& line) {
    const std::string qid(small_train().qid(0));
    GroupSettings settings = file_with(4, line.empty() ? "" : qid + line);
    if (line == ",2,C") settings.beta = std::vector{1.0};
    return message_of([&] {
      settings.check(10);
      const GroupRule rule(settings, small_train());
    });
  });
}

}  // namespace
}  // namespace olrank
