// Ensembles whose members are on the emulated devices of several processes, against all on one.
#include <string>
#include <vector>

#include "core/error.h"
#include "cuda/engine/resident_network.h"
#include "models/neural/device_ranker.h"
#include "tests/cuda/ops/kernel_test.h"
#include "tests/models/neural/recorded_rounds.h"
#include "tests/support/forked_ranks.h"

namespace olrank {
namespace {

constexpr std::int64_t kFeatureCount = 4;
constexpr std::int64_t kDocsOfQuery = 9;
constexpr std::uint32_t kRoundsPlayed = 4;

const SmallWorld& small_world() {
  static const SmallWorld made(82, 5, kDocsOfQuery, kFeatureCount);
  return made;
}

RankerSettings shared_settings(const std::string& name) {
  RankerSettings settings = neural_settings(name);
  settings.network.width = 4;
  settings.posterior.members = 4;
  settings.posterior.noise_variance = 0.5;
  settings.trainer.steps = 3;
  settings.trainer.epochs = 2;
  settings.trainer.batch = 7;
  if (settings.trainer.loss == LossForm::kMean) settings.trainer.learning_rate = 0.01;
  if (name.starts_with("repeating")) settings.trainer.learning_rate = 16.0;
  if (name.starts_with("diverging")) {
    settings.trainer.optimizer = Optimizer::kAdam;
    settings.trainer.learning_rate = 5e14;
    settings.trainer.steps = 6;
  }
  return settings;
}

std::unique_ptr<OnlineRanker> make_shared(const RankerSettings& settings, RankGroup* ranks) {
  const FeatureMatrix all{small_world().query(0).features.values, small_world().queries() * kDocsOfQuery,
                          kFeatureCount};
  RankerDevice place;
  place.train = all;
  place.most_docs = kDocsOfQuery;
  place.eval_docs = all;
  place.ranks = ranks;
  return std::make_unique<DeviceRanker>(kFeatureCount, settings, test_keys(), 10, place,
                                        device::make_network);
}

template <class T>
void append(std::string& text, const std::vector<T>& values) {
  text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

/// Everything that a course of rounds decides: lists, clicks, scores, model, state. Half of the rounds are
/// played by a ranker that resumes.
std::string course_of(const RankerSettings& settings, RankGroup* ranks) {
  std::string course;
  TestContext context;
  std::unique_ptr<OnlineRanker> ranker = make_shared(settings, ranks);
  for (std::uint32_t round = 1; round <= kRoundsPlayed; ++round) {
    const RecordedRound played = play_round(*ranker, context.round, small_world(), round);
    append(course, played.shown);
    append(course, played.clicks);
    if (round != kRoundsPlayed / 2) continue;
    const std::string state = state_of(*ranker);
    ranker = make_shared(settings, ranks);
    StateReader reader(state, "memory");
    ranker->load(reader);
  }
  std::vector<float> scores(small_world().queries() * kDocsOfQuery);
  const FeatureMatrix all{small_world().query(0).features.values, std::ssize(scores), kFeatureCount};
  if (ranks != nullptr) {
    EXPECT_FALSE(ranker->begin_scores(all));
  }
  ranker->score(context.execution, all, scores);
  append(course, scores);
  append(course, flat_theta(*ranker));
  course += std::to_string(ranker->parameters());
  return course + state_of(*ranker);
}

class SharedEnsembleTest : public KernelTest {};

TEST_P(SharedEnsembleTest, HasTheBitsOfOneProcess) {
  // All of them for one order of threads, one of each kind for the others.
  std::vector<std::string> names = {"ensemble", "reference_ensemble"};
  if (static_cast<int>(GetParam()) == 0) names.push_back("repeating_ensemble");
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const RankerSettings settings = shared_settings(name);
    const std::string alone = course_of(settings, nullptr);
    EXPECT_GT(alone.size(), 1000U) << alone;
    for (const int ranks : {2, 3}) {
      for (const std::string& shared :
           play_forked_ranks(ranks, [&](RankGroup& group) { return course_of(settings, &group); }))
        EXPECT_TRUE(shared == alone) << ranks << " ranks" << (shared.size() < 1000 ? ": " + shared : "");
    }
    SetUp();
  }
}

TEST_P(SharedEnsembleTest, ReportsTheDivergenceOfOneProcess) {
  if (static_cast<int>(GetParam()) != 0) GTEST_SKIP() << "one order of threads is enough";
  const RankerSettings settings = shared_settings("diverging_ensemble");
  std::string alone;
  try {
    course_of(settings, nullptr);
  } catch (const NumericError& error) {
    alone = error.what();
  }
  EXPECT_NE(alone.find("the loss is"), std::string::npos) << alone;
  for (const std::string& shared :
       play_forked_ranks(3, [&](RankGroup& group) { return course_of(settings, &group); }))
    EXPECT_EQ(shared, alone);
}

OLRANK_KERNEL_TESTS(SharedEnsembleTest);

}  // namespace
}  // namespace olrank
