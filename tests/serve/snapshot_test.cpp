#include "serve/snapshot.h"

#include <gtest/gtest.h>

#include <string>

#include "core/feedback/preference_pairs.h"
#include "models/ranker_kinds.h"
#include "serve/service_setup.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

struct Lists {
  std::vector<std::vector<float>> scores;
  std::vector<std::vector<std::int32_t>> lists;
  std::vector<std::vector<double>> propensities;

  friend bool operator==(const Lists&, const Lists&) = default;
};

Lists lists_of(const FrozenRanker& ranker) {
  Lists made;
  ExecutionContext context;
  Ranking ranking;
  for (int number = 1; number <= 20; ++number) {
    const FeedbackRecord query = liked_first_feature(number, 8);
    std::vector<std::int64_t> names(8);
    for (std::int64_t doc = 0; doc < 8; ++doc) names[doc] = name_number(query.docs[doc].text);
    RankingTask task{query.features(), 5, static_cast<std::uint32_t>(1000 + number), number % 2 == 0};
    task.identity = {name_number(query.query), names};
    ranker.rank(context, task, ranking);
    made.scores.push_back(ranking.scores);
    made.lists.push_back(ranking.list);
    made.propensities.push_back(ranking.propensity);
  }
  return made;
}

TEST(SnapshotTest, EveryKindMakesTheSameListsInAnotherProcess) {
  const std::string kinds = kinds_of_services() + "|";
  std::size_t begin = 0;
  int tried = 0;
  for (std::size_t end = kinds.find('|'); end != std::string::npos;
       begin = end + 1, end = kinds.find('|', begin)) {
    const std::string name = kinds.substr(begin, end - begin);
    const RankerKind kind = *value_named<RankerKind>(name);
    if (row_of(kind).needs_labels || name == "fairco") continue;  // its lists need groups
    SCOPED_TRACE(name);
    const TemporaryFolder folder;
    FileLog log(folder / "log", 10);
    for (int number = 1; number <= 40; ++number) log.append(liked_first_feature(number));
    Learner learner(make_served(kind), log, {folder / "checkpoint", "identity", 1000});
    const RankerSource::Snapshot before = learner.snapshot();
    const Lists first = lists_of(*learner.latest()->ranker);
    learner.learn_all();
    const RankerSource::Snapshot after = learner.snapshot();
    const Lists second = lists_of(*learner.latest()->ranker);
    EXPECT_EQ(before.round, 0U);
    EXPECT_EQ(after.round, 40U);

    SnapshotReader reader(make_served(kind), std::nullopt);
    const auto early = reader.read(before.bytes, "early");
    const auto late = reader.read(after.bytes, "late");
    EXPECT_EQ(early->round, 0U);
    EXPECT_EQ(late->round, 40U);
    EXPECT_EQ(late->pairs, learner.latest()->pairs);
    EXPECT_TRUE(lists_of(*late->ranker) == second);
    EXPECT_TRUE(lists_of(*early->ranker) == first);  // and the later one has not changed it
    EXPECT_FALSE(first.scores == second.scores);
    ++tried;
  }
  EXPECT_GE(tried, 6);
}

TEST(SnapshotTest, LeavesOutWhatOnlyLearningNeeds) {
  const TemporaryFolder folder;
  FileLog log(folder / "log", 10);
  Learner learner(make_served(RankerKind::kPairRank), log, {folder / "checkpoint", "identity", 1000});
  for (int number = 1; number <= 5; ++number) log.append(liked_first_feature(number));
  learner.learn_all();
  const std::size_t few = learner.snapshot().bytes.size();
  for (int number = 6; number <= 200; ++number) log.append(liked_first_feature(number, 40));
  learner.learn_all();
  learner.write_checkpoint();
  EXPECT_LT(learner.snapshot().bytes.size(), few + 200);  // figures vary
  EXPECT_GT(std::filesystem::file_size(folder / "checkpoint"), 2 * few);
}

TEST(SnapshotTest, RefusesOtherFormatsSettingsAndDamage) {
  const TemporaryFolder folder;
  FileLog log(folder / "log", 10);
  Learner learner(make_served(), log, {folder / "checkpoint", "identity", 1000});
  const std::string bytes = learner.snapshot().bytes;
  SnapshotReader reader(make_served(), std::nullopt);
  std::string cut = bytes;
  cut.resize(cut.size() / 2);
  EXPECT_THROW(reader.read(cut, "cut"), IoError);
  EXPECT_THROW(reader.read("", "empty"), IoError);
  SnapshotReader other(make_served(RankerKind::kPairRank), std::nullopt);
  EXPECT_THROW(other.read(bytes, "another kind"), IoError);
  StateWriter future;
  future.put("snapshot.format", std::int64_t{99});
  future.put_text("snapshot.version", "99.0");
  const std::string refusal = message_of<IoError>([&] { reader.read(future.bytes(), "the prefix"); });
  EXPECT_NE(refusal.find("olrank 99.0 made this model in format 99"), std::string::npos) << refusal;
  EXPECT_EQ(reader.read(bytes, "again")->round, 0U);
}

}  // namespace
}  // namespace olrank
