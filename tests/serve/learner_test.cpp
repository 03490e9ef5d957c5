#include "serve/learner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/io/atomic_file.h"
#include "core/io/state_archive.h"
#include "serve/api_error.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

using std::chrono::seconds;
constexpr int kRounds = 40;

LearnerSettings settings_in(const TemporaryFolder& folder, std::uint64_t every = 1000) {
  return {folder / "checkpoint", "identity", every};
}

void fill(FileLog& log, int first, int last) {
  for (int number = first; number <= last; ++number) log.append(liked_first_feature(number));
}

/// The state after learning a log of `rounds` rounds without interruption.
Learner::State uninterrupted(int rounds) {
  const TemporaryFolder folder;
  FileLog log(folder / "log", 1);
  fill(log, 1, rounds);
  Learner learner(make_served(), log, settings_in(folder));
  learner.learn_all();
  return learner.state();
}

/// A served ranker behind calls that a test may change.
class WrappedRanker : public OnlineRanker {
 public:
  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override {
    return ranker_->rank(context, query, round);
  }
  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
    return ranker_->learn(context, feedback);
  }
  void describe(const QueryDocs&, bool, RoundDetail&) override {}
  void score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const override {
    ranker_->score(context, docs, scores);
  }
  std::int64_t parameters() const override { return ranker_->parameters(); }
  ModelTensors model() const override { return ranker_->model(); }
  std::vector<RankerFigure> figures(ExecutionContext& context) const override {
    return ranker_->figures(context);
  }
  std::shared_ptr<const FrozenRanker> freeze() const override { return ranker_->freeze(); }
  void save(StateWriter& state) const override { ranker_->save(state); }
  void load(StateReader& state) override { ranker_->load(state); }

 private:
  std::unique_ptr<OnlineRanker> ranker_ = make_served();
};

/// Takes some time for each call, and may fail.
class SlowRanker : public WrappedRanker {
 public:
  struct Times {
    std::chrono::milliseconds figures{0}, freeze{0}, save{0}, learn{0};
    std::atomic<int> saved = 0, measured = 0, frozen = 0;
    std::atomic<bool> freeze_fails = false;
    bool stumbles = false;  // every tenth round
  };
  explicit SlowRanker(Times& times) : times_(&times) {}

  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
    if (times_->stumbles && feedback.round % 10 == 0) throw NumericError("The loss is inf.");
    std::this_thread::sleep_for(times_->learn);
    return WrappedRanker::learn(context, feedback);
  }
  std::vector<RankerFigure> figures(ExecutionContext& context) const override {
    ++times_->measured;
    std::this_thread::sleep_for(times_->figures);
    return WrappedRanker::figures(context);
  }
  std::shared_ptr<const FrozenRanker> freeze() const override {
    if (times_->freeze_fails) throw NumericError("The copy is inf.");
    ++times_->frozen;
    std::this_thread::sleep_for(times_->freeze);
    return WrappedRanker::freeze();
  }
  void save(StateWriter& state) const override {
    ++times_->saved;
    std::this_thread::sleep_for(times_->save);
    WrappedRanker::save(state);
  }

 private:
  Times* times_;
};

class LearnerTest : public testing::Test {
 protected:
  const TemporaryFolder folder;
  FileLog log{folder / "log", 1};
  SlowRanker::Times times;
};

TEST_F(LearnerTest, MatchesARankerFedDirectly) {
  fill(log, 1, kRounds);
  Learner learner(make_served(), log, settings_in(folder));
  learner.learn_all();

  const auto ranker = make_served();
  ExecutionContext execution;
  StageClock clock;
  RoundContext context{execution, clock};
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    const FeedbackRecord record = liked_first_feature(static_cast<int>(round));
    // Seven queries recur, each with the same five documents.
    std::vector<std::int64_t> numbers;
    std::vector<std::int32_t> shown;
    for (std::int32_t doc = 0; doc < 5; ++doc) {
      numbers.push_back(round % 7 * 10 + doc);
      shown.push_back(doc);
    }
    ranker->learn(context, {round, {round, 0, record.features(), numbers}, shown, record.clicks});
  }
  const auto expected = ranker->model().tensors.front().values;
  const auto learned = learner.latest()->ranker->model().tensors.front().values;
  ASSERT_EQ(learned.size(), expected.size());
  double moved = 0.0;
  const auto start = make_served()->model().tensors.front().values;
  for (std::size_t k = 0; k < learned.size(); ++k) {
    EXPECT_NEAR(learned[k], expected[k], 1e-4F);
    moved += std::abs(double{learned[k]} - double{start[k]});
  }
  EXPECT_GT(moved, 0.1);
}

TEST(Learner, LearnsWhatClicksAreWorthTheSameLiveAndFromTheLog) {
  const auto rewarded = [](int number) {
    FeedbackRecord record = liked_first_feature(number);
    if (number % 3 == 0) return record;  // what was done there is worth as much as clicks
    for (std::size_t rank = 0; rank < record.clicks.size(); ++rank)
      record.rewards.push_back(record.clicks[rank] * (2.5 + static_cast<double>(rank)));
    return record;
  };
  for (const RankerKind kind : {RankerKind::kPairRank, RankerKind::kOlRankNet, RankerKind::kP2NeurRank}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const TemporaryFolder folder;
    Learner::State live;
    {
      FileLog log(folder / "log", 1);
      Learner learner(make_served(kind), log, settings_in(folder, 7));
      learner.start();
      for (int number = 1; number <= kRounds; ++number) {
        log.append(rewarded(number));
        if (number % 9 == 0) learner.write_checkpoint();
        if (number % 5 == 0) learner.state();
      }
      wait_for_round(learner, kRounds);
      live = learner.state();
    }
    const TemporaryFolder other;
    FileLog log(folder / "log", 1);
    Learner again(make_served(kind), log, settings_in(other));
    again.learn_all();
    EXPECT_EQ(again.state().fingerprint, live.fingerprint);
    EXPECT_EQ(again.state().pairs, live.pairs);
    FileLog clicks_alone(other / "log", 1);
    fill(clicks_alone, 1, kRounds);
    Learner clicked(make_served(kind), clicks_alone, settings_in(other));
    clicked.learn_all();
    EXPECT_NE(clicked.state().fingerprint, live.fingerprint);
  }
}

TEST_F(LearnerTest, SpendsMostOfItsTimeLearningHoweverLargeTheState) {
  constexpr std::chrono::milliseconds kTime{10};
  times.freeze = times.save = kTime;
  Learner learner(std::make_unique<SlowRanker>(times), log, settings_in(folder, 1));
  times.frozen = times.saved = 0;
  const auto begin = std::chrono::steady_clock::now();
  learner.start();
  for (int number = 1; number <= 100; ++number) {
    fill(log, number, number);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  wait_until([&] { return times.frozen >= 2; });
  const int frozen = times.frozen;
  const int saved = times.saved;
  const auto took = std::chrono::steady_clock::now() - begin;
  // One at once, and then one in each tenfold of its time at most.
  EXPECT_LE(frozen, 2 + took / (10 * kTime));
  EXPECT_LE(saved, 2 + took / (10 * kTime));
  EXPECT_GE(frozen, 2);
  wait_for_round(learner, 100);
  fill(log, 101, 101);
  const std::uint64_t asked = learner.state().round;
  EXPECT_GE(asked, 100U);
  EXPECT_GE(learner.latest()->round,
            asked);  // a state comes with its lists; the thread may be further by now
  learner.stop(seconds(20));
  EXPECT_EQ(learner.latest()->round, 101U);
  Learner resumed(make_served(), log, settings_in(folder));
  EXPECT_EQ(resumed.restored_round(), 101U);
}

// It has published by 10 times 20 ms, its figures are due after 50 times 30 ms, the next copy 10 times 20
// ms after the first.
TEST_F(LearnerTest, WaitsForFiguresWithoutUsingAProcessor) {
  times.figures = std::chrono::milliseconds(30);
  times.freeze = std::chrono::milliseconds(20);
  Learner learner(std::make_unique<SlowRanker>(times), log, settings_in(folder));
  learner.start();
  fill(log, 1, 1);
  wait_for_round(learner, 1);
  const std::clock_t begin = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 0.05);
}

TEST_F(LearnerTest, TakesAFiftiethOfTheTimeForFigures) {
  times.figures = std::chrono::milliseconds(4);
  const auto begin = std::chrono::steady_clock::now();
  Learner learner(std::make_unique<SlowRanker>(times), log, settings_in(folder));
  learner.start();
  for (int round = 1; round <= 100 || (times.measured < 2 && round <= 2000); ++round) {
    fill(log, round, round);
    wait_for_round(learner, round);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const int measured = times.measured;
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(measured, 2);
  EXPECT_LE((measured - 1) * 50 * 4, taken.count());
}

TEST_F(LearnerTest, TakesATenthOfTheTimeForStatesThatAreAskedForWhileItLearns) {
  fill(log, 1, 150);
  times.learn = std::chrono::milliseconds(3);
  times.save = std::chrono::milliseconds(10);
  Learner learner(std::make_unique<SlowRanker>(times), log, settings_in(folder));
  const auto begin = std::chrono::steady_clock::now();
  learner.start();
  while (learner.state().round < 150) {
  }
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(times.saved, 2);
  EXPECT_LE((times.saved - 2) * 10 * 10, taken.count());  // the first and the last need not wait
  const int before = times.saved;
  EXPECT_EQ(learner.state().fingerprint, learner.state().fingerprint);
  EXPECT_EQ(times.saved, before);  // nothing has changed
}

TEST_F(LearnerTest, SavesADueCheckpointThoughNoFeedbackFollows) {
  times.save = std::chrono::milliseconds(20);
  Learner learner(std::make_unique<SlowRanker>(times), log, settings_in(folder, 1));
  learner.start();
  fill(log, 1, 1);
  wait_for_round(learner, 1);
  fill(log, 2, 2);
  wait_until([&] { return times.saved >= 2; });
  EXPECT_EQ(times.saved, 2);
}

TEST_F(LearnerTest, SavesTheLastCheckpointThoughItCannotPublish) {
  const ExpectedWarnings warnings;
  times.freeze = std::chrono::milliseconds(500);  // the next one is due after 4.5 s
  {
    Learner learner(std::make_unique<SlowRanker>(times), log, settings_in(folder));
    times.freeze_fails = true;
    learner.start();
    fill(log, 1, 1);
    learner.stop(seconds(20));
    EXPECT_EQ(warnings.count("The copy is inf."), 1);
    EXPECT_FALSE(learner.failure());
  }
  Learner resumed(make_served(), log, settings_in(folder));
  EXPECT_EQ(resumed.restored_round(), 1U);
}

TEST(Learner, SkipsAndCountsFeedbackThatCannotBeLearned) {
  const ExpectedWarnings warnings;
  const TemporaryFolder folder;
  SlowRanker::Times times;
  times.stumbles = true;
  Learner::State expected;
  {
    FileLog log(folder / "log", 1);
    fill(log, 1, kRounds);
    Learner learner(std::make_unique<SlowRanker>(times), log, settings_in(folder));
    learner.start();
    wait_for_round(learner, kRounds);
    EXPECT_FALSE(learner.failure());
    EXPECT_EQ(learner.latest()->skipped, 4U);
    expected = learner.write_checkpoint();
    EXPECT_EQ(expected.round, static_cast<std::uint64_t>(kRounds));
    EXPECT_EQ(expected.skipped, 4U);
    EXPECT_EQ(warnings.count("The loss is inf."), 3) << "the 1st, the 2nd and the 4th are told";
  }
  FileLog log(folder / "log", 1);
  Learner resumed(std::make_unique<SlowRanker>(times), log, settings_in(folder));
  EXPECT_EQ(resumed.restored_round(), static_cast<std::uint64_t>(kRounds));
  EXPECT_EQ(resumed.state().skipped, 4U);
  EXPECT_EQ(resumed.state().fingerprint, expected.fingerprint);
}

/// One list whose features are `scale` times those of all others.
FeedbackRecord scaled(int number, float scale) {
  FeedbackRecord record = liked_first_feature(number);
  record.query = "scaled";
  for (float& input : record.inputs) input *= scale;
  record.clicks = {1, 0, 1, 0, 1};
  return record;
}

TEST(Learner, OneListWithHugeFeaturesDoesNotStopLearning) {
  const ExpectedWarnings warnings;  // of digits that the covariance loses
  for (const RankerKind kind : {RankerKind::kP2NeurRank, RankerKind::kOlRankNet, RankerKind::kOlLambdaRank,
                                RankerKind::kPairRank, RankerKind::kP2LinRank, RankerKind::kPdgd}) {
    for (const float scale : {1e4F, 1e8F, 1e12F}) {
      SCOPED_TRACE(fmt::format("{} {}", static_cast<int>(kind), scale));
      const TemporaryFolder folder;
      FileLog log(folder / "log", 1);
      fill(log, 1, kRounds);
      log.append(scaled(kRounds + 1, scale));
      fill(log, kRounds + 2, 2 * kRounds);
      Learner learner(make_served(kind), log, settings_in(folder));
      learner.learn_all();
      EXPECT_EQ(learner.state().round, static_cast<std::uint64_t>(2 * kRounds));
      EXPECT_EQ(learner.state().skipped, 0U);
      for (const auto& tensor : learner.latest()->ranker->model().tensors) {
        for (const float value : tensor.values) EXPECT_LT(std::abs(value), 1e15F);
      }
    }
  }
}

TEST(Learner, ResumesFromACheckpointToTheSameBits) {
  const TemporaryFolder folder;
  std::uint64_t before = 0;
  for (const int stop : {3, 17, 18, kRounds}) {
    FileLog log(folder / "log", 1);
    Learner learner(make_served(), log, settings_in(folder));
    EXPECT_EQ(learner.restored_round(), before);
    learner.start();
    fill(log, static_cast<int>(log.rounds()) + 1, stop);
    learner.stop(seconds(30));
    before = static_cast<std::uint64_t>(stop);
  }
  FileLog log(folder / "log", 1);
  Learner learner(make_served(), log, settings_in(folder));
  EXPECT_EQ(learner.restored_round(), static_cast<std::uint64_t>(kRounds));
  EXPECT_EQ(learner.state().fingerprint, uninterrupted(kRounds).fingerprint);
}

// Feedback that arrives while the learner, at the end of the log, publishes must not be lost at a stop.
// Each attempt shifts the moment by a microsecond.
TEST_F(LearnerTest, LearnsFeedbackAppendedJustBeforeStop) {
  for (int attempt = 0; attempt < 800; ++attempt) {
    Learner learner(make_served(), log, settings_in(folder));
    learner.start();
    fill(log, 2 * attempt + 1, 2 * attempt + 1);
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(attempt);
    while (std::chrono::steady_clock::now() < until) {
    }
    fill(log, 2 * attempt + 2, 2 * attempt + 2);
    learner.stop(seconds(30));
    ASSERT_EQ(learner.latest()->round, static_cast<std::uint64_t>(2 * attempt + 2));
  }
}

TEST_F(LearnerTest, LeavesTheRestForTheNextStartAfterATimeout) {
  fill(log, 1, kRounds);
  {
    times.learn = std::chrono::milliseconds(50);
    Learner learner(std::make_unique<SlowRanker>(times), log, settings_in(folder));
    learner.start();
    learner.stop(seconds(0));
    EXPECT_LT(learner.latest()->round, static_cast<std::uint64_t>(kRounds));
  }
  Learner learner(make_served(), log, settings_in(folder));
  learner.learn_all();
  EXPECT_EQ(learner.state().fingerprint, uninterrupted(kRounds).fingerprint);
}

TEST_F(LearnerTest, SaysAtItsEndThatTheCheckpointCouldNotBeSaved) {
  fill(log, 1, 5);
  Learner learner(make_served(), log, settings_in(folder));
  learner.start();
  wait_for_round(learner, 5);
  const ExpectedWarnings warnings;
  {
    const FullDisk full(10);
    EXPECT_THROW(learner.write_checkpoint(), IoError);  // somebody asked for it
    EXPECT_FALSE(learner.stop(seconds(20)));
  }
  EXPECT_EQ(warnings.count("Could not save the checkpoint of round 5."), 1);
}

TEST_F(LearnerTest, TriesACheckpointAgainThatFailedWhenItWasAskedFor) {
  fill(log, 1, 5);
  {
    Learner learner(make_served(), log, settings_in(folder));
    learner.start();
    wait_for_round(learner, 5);
    {
      const FullDisk full(10);
      EXPECT_THROW(learner.write_checkpoint(), IoError);
    }
    EXPECT_TRUE(learner.stop(seconds(20)));
  }
  EXPECT_EQ(Learner(make_served(), log, settings_in(folder)).restored_round(), 5U);
}

void learn_with_checkpoint(FileLog& log, const TemporaryFolder& folder, int first, int last) {
  fill(log, first, last);
  Learner learner(make_served(), log, settings_in(folder));
  learner.learn_all();
  learner.write_checkpoint();
}

void learn_with_checkpoint(const TemporaryFolder& folder, int first, int last) {
  FileLog log(folder / "log", 1);
  learn_with_checkpoint(log, folder, first, last);
}

TEST_F(LearnerTest, RejectsACheckpointOfAnotherService) {
  learn_with_checkpoint(log, folder, 1, 5);
  LearnerSettings other = settings_in(folder);
  other.identity = "another";
  EXPECT_THROW(Learner(make_served(), log, other), IoError);
}

// The log was cut, or belongs to another service, though its records are valid.
TEST(Learner, RejectsALogThatItsCheckpointDidNotLearn) {
  struct Case {
    const char* name;
    int first, last;  // records of the log that replaces the learned one
    const char* message;
  };
  for (const Case& other : {Case{"empty", 1, 0, "made after 5 rounds, but the log holds 0"},
                            Case{"of another service", 8, 14, "made after round 5 of another log"}}) {
    SCOPED_TRACE(other.name);
    const TemporaryFolder folder;
    learn_with_checkpoint(folder, 1, 5);
    std::filesystem::remove(folder / "log");
    {
      FileLog log(folder / "log", 1);
      log.begin_writing();
      fill(log, other.first, other.last);
    }
    const auto before = files_in(folder.path());
    {
      FileLog log(folder / "log", 1);
      const std::string message =
          message_of<IoError>([&] { Learner(make_served(), log, settings_in(folder)); });
      EXPECT_TRUE(contains(message, other.message));
      EXPECT_TRUE(contains(message, "--accept-loss"));
    }
    EXPECT_EQ(files_in(folder.path()), before);

    // With the loss accepted, it is as if there had been no checkpoint.
    const ExpectedWarnings warnings;
    FileLog log(folder / "log", 1, true);
    LearnerSettings settings = settings_in(folder);
    settings.accept_loss = true;
    Learner learner(make_served(), log, settings);
    EXPECT_EQ(files_in(folder.path()), before);
    EXPECT_EQ(learner.restored_round(), 0U);
    learner.learn_all();
    EXPECT_EQ(learner.state().round, log.rounds());
    const auto after = files_in(folder.path());
    EXPECT_EQ(after.at("checkpoint.set-aside"), before.at("checkpoint"));
    EXPECT_EQ(after.count("checkpoint"), 0U);
    EXPECT_EQ(warnings.messages().size(), 1U);
  }
}

TEST(Learner, SetsACheckpointAsideThatIsNewerThanItsLog) {
  const TemporaryFolder folder;
  learn_with_checkpoint(folder, 1, 5);
  std::filesystem::remove(folder / "log");
  FileLog log(folder / "log", 1);
  log.begin_writing();
  fill(log, 1, 3);
  const auto before = files_in(folder.path());
  const ExpectedWarnings warnings;
  Learner learner(make_served(), log, settings_in(folder));
  EXPECT_EQ(files_in(folder.path()), before) << "a start that is not accepted yet changes nothing";
  learner.learn_all();
  EXPECT_EQ(learner.state().round, 3U);
  const TemporaryFolder fresh;
  learn_with_checkpoint(fresh, 1, 3);
  FileLog same(fresh / "log", 1);
  EXPECT_EQ(learner.state().fingerprint,
            Learner(make_served(), same, settings_in(fresh)).state().fingerprint);
  EXPECT_EQ(files_in(folder.path()).at("checkpoint.set-aside"), before.at("checkpoint"));
  ASSERT_EQ(warnings.messages().size(), 1U);
  EXPECT_TRUE(contains(warnings.messages()[0],
                       "This checkpoint is newer than the log, which lacks 2 lists "
                       "that it has learned. Moved it to "))
      << warnings.messages()[0];
}

// The last record fits, so only reading them all finds the one that does not.
TEST_F(LearnerTest, RejectsALogWithOneRecordOfAnotherModel) {
  fill(log, 1, 3);
  FeedbackRecord narrow = liked_first_feature(4);
  narrow.columns = kServedFeatures / 2;
  narrow.inputs.resize(std::ssize(narrow.docs) * narrow.columns);
  log.append(narrow);
  log.append(liked_first_feature(5));
  LearnerSettings settings = settings_in(folder);
  settings.inputs = kServedFeatures;
  const std::string message = message_of<DataError>([&] { Learner(make_served(), log, settings); });
  EXPECT_TRUE(contains(message, "log:4:1: The record has 2 inputs per document, but the model expects 4"));
  // A second learner, which others do not wait for, begins at once and finds it as it learns.
  settings.checks_log = false;
  Learner learner(make_served(), log, settings);
  EXPECT_EQ(message_of<DataError>([&] { learner.catch_up(false); }), message);
}

TEST_F(LearnerTest, SkipsRecordsOfDocumentsThatASharedLogHasLost) {
  fill(log, 1, 3);
  FeedbackRecord lost = liked_first_feature(4);
  lost.versions.assign(lost.docs.size(), 7);
  log.append(lost);
  fill(log, 5, 6);
  const DocumentVersions none(folder / "documents.jsonl");
  LearnerSettings settings = settings_in(folder);
  settings.documents = &none;
  EXPECT_TRUE(
      contains(message_of<DataError>([&] { Learner(make_served(), log, settings); }), "has version 7 of"));
  settings.skips_lost_documents = true;
  const ExpectedWarnings warnings;
  Learner learner(make_served(), log, settings);
  learner.learn_all();
  EXPECT_EQ(learner.state().round, 6U);
  EXPECT_EQ(learner.state().skipped, 1U);
  EXPECT_EQ(warnings.count("Skipped feedback 4"), 1);
}

TEST_F(LearnerTest, RejectsALogWithoutTheUnshownDocumentsThatItsRankerNeeds) {
  for (int number = 1; number <= 3; ++number) {
    FeedbackRecord record = liked_first_feature(number);
    record.has_unshown = false;
    log.append(record);
  }
  const std::string message =
      message_of<DataError>([&] { Learner(make_served(RankerKind::kPdgd), log, settings_in(folder)); });
  EXPECT_TRUE(contains(message, "log:1:1: The records have no 'unshown' documents"));
  // A list that showed everything has none, and says so.
  log.append(liked_first_feature(4));
  Learner(make_served(RankerKind::kPdgd), log, settings_in(folder)).learn_all();
}

TEST_F(LearnerTest, WritesNoCheckpointOnceItsLogIsGone) {
  fill(log, 1, 3);
  Learner learner(make_served(), log, settings_in(folder));
  learner.learn_all();
  std::filesystem::rename(folder / "log", folder / "moved");
  EXPECT_THROW(learner.write_checkpoint(), StateLost);
  EXPECT_FALSE(std::filesystem::exists(folder / "checkpoint"));
}

TEST_F(LearnerTest, RejectsRankersWhoseListsDependOnTheRound) {
  EXPECT_THROW(Learner(make_served(RankerKind::kDbgd), log, settings_in(folder)), InvalidArgument);
}

TEST(Service, TellsTheCertaintyOfLongListsOnlyWhereItIsAskedFor) {
  SmallService small(RankerKind::kClickGp);
  Service::Parts parts = small_parts();
  parts.requests.docs = 200;
  Service service(std::move(parts), small.lists, small.log, small.learner);
  const auto answer = [&](int docs, bool asks) {
    nlohmann::json request = {{"query", "q"}, {"k", docs}, {"explore", false}};
    for (int doc = 0; doc < docs; ++doc) {
      request["docs"].push_back({{"id", doc}, {"features", {doc % 7, doc % 5, doc % 3, 1}}});
    }
    if (asks) request["certainty"] = true;
    return service.rank(request.dump());
  };
  for (const bool asks : {false, true}) {
    const auto within = nlohmann::json::parse(answer(100, asks));
    EXPECT_EQ(within["certain"].size(), 100U);
    EXPECT_EQ(within["probability"].size(), 100U);
    const std::string text = answer(101, asks);
    const auto beyond = nlohmann::json::parse(text);
    EXPECT_EQ(beyond["docs"].size(), 101U);
    EXPECT_EQ(beyond.contains("certain"), asks);
    EXPECT_EQ(beyond.contains("probability"), asks);
    EXPECT_EQ(text.size() > 50'000, asks);
  }
}

}  // namespace
}  // namespace olrank
