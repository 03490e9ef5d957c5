// Networks that train on losses of whole lists, in whole trials.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "models/ranker_factory.h"
#include "tests/sim/small_trial.h"

namespace olrank {
namespace {

constexpr std::int64_t kCutoff = 10;
constexpr std::int64_t kRounds = 160;

const TrialData& data() {
  static const TrialData made = small_trial_data("synth:mslr-like?queries=100&test_queries=60");
  return made;
}

TrialSettings settings() {
  return {.rounds = kRounds, .cutoff = kCutoff, .eval_every = 40};
}

std::unique_ptr<OnlineRanker> make() {
  RankerSettings made = RankerSettings::defaults(RankerKind::kOlRankNet, ProtocolName::kPaper);
  made.name = "lists";
  made.network.width = 16;
  made.posterior.covariance = Covariance::kDiagonal;
  made.trainer.loss_kind = TrainingLoss::kListNet;
  return make_ranker(made, data().train.features(), TrialKeys::of(1, 1, "perfect"), kCutoff);
}

double ndcg_of(const std::string& line) {
  return nlohmann::json::parse(line).at("offline").at("ndcg@10").get<double>();
}

TEST(ListTrialsTest, LearnsAndResumesToTheSameBits) {
  std::vector<std::string> straight;
  const auto ranker = make();
  TrialStage whole(settings(), data(), *ranker, 1, "perfect");
  whole.play_to(kRounds, true, straight);
  std::vector<std::string> lines;
  const auto before = make();
  TrialStage stopped(settings(), data(), *before, 1, "perfect");
  stopped.play_to(57, false, lines);
  const auto after = make();
  TrialStage resumed(settings(), data(), *after, 1, "perfect");
  const std::string state = stopped.state();
  StateReader reader(state, "memory");
  resumed.trial.load(reader);
  resumed.play_to(kRounds, true, lines);
  EXPECT_EQ(lines, straight);
  EXPECT_TRUE(resumed.state() == whole.state());

  // Before the first round every score is 0 and ties go by index, which says as little as a random order.
  EXPECT_GT(ndcg_of(straight.back()), ndcg_of(straight.front()) + 0.1);
}

}  // namespace
}  // namespace olrank
