// The closed form's network as a module plays the closed form's rounds.
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "models/ranker_memory.h"
#include "tests/models/neural/recorded_rounds.h"

namespace olrank {
namespace {

constexpr std::uint32_t kCourseRounds = 300;

/// The first round in which the two show other lists, or one more than the last.
std::uint32_t first_other_list(const RankerSettings& closed_form) {
  const SmallWorld world(93, 40, 12, 6);
  RankerSettings module = closed_form;
  module.network.network = NetworkForm::kModule;
  module.network.module = "relu";
  const auto expected = make_neural(closed_form, world.features());
  const auto ranker = make_neural(module, world.features());
  ExecutionContext execution;
  StageClock clock;
  RoundContext context{execution, clock};
  for (std::uint32_t round = 1; round <= kCourseRounds; ++round) {
    if (play_round(*expected, context, world, round) != play_round(*ranker, context, world, round))
      return round;
  }
  return kCourseRounds + 1;
}

// Both round differently, so that they part where less than rounding decides an order: not in the rounds of
// these. With the diagonal they do in round 172 (ntk), with an ensemble in round 87 (standard), and in ntk
// with three layers or several members at once, since all scores are 0 at first in exact arithmetic.
TEST(ModuleCourseTest, ReluPlaysTheRoundsOfTheClosedForm) {
  for (const char* name : {"dual", "growth"}) {
    EXPECT_GT(first_other_list(neural_settings(name)), kCourseRounds) << name;
  }
  for (const char* name : {"dual", "diagonal", "three_layers", "growth"}) {
    RankerSettings settings = neural_settings(name);
    settings.network.parameterisation = Parameterisation::kStandard;
    EXPECT_GT(first_other_list(settings), kCourseRounds) << name;
  }
}

TEST(ModuleCourseTest, CovariancesOfLayersNeedLayers) {
  RankerSettings settings = neural_settings("dual");
  settings.network.network = NetworkForm::kModule;
  const RankerLoad load = {.features = 5, .train_docs = 1'000, .rounds = 10, .cutoff = 10, .most_docs = 10};
  for (const Covariance covariance : {Covariance::kUnitBlocks, Covariance::kLastLayer}) {
    settings.posterior.covariance = covariance;
    settings.network.module = "residual";
    EXPECT_NO_THROW(memory_of_ranker(settings, load));
    settings.network.module = "attention";
    try {
      memory_of_ranker(settings, load);
      FAIL() << "took a covariance of layers without layers";
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(
          std::string(error.what()),
          "Ranker 'dual' has covariance = \"" + std::string(name_of(covariance)) +
              "\", which needs layers, but the gradients of module 'attention' are whole rows: choose "
              "full, inducing or diagonal.");
    }
  }
}

TEST(ModuleCourseTest, AGpuTakesModulesOfAsManyLayersAsItsKernelsDo) {
  RankerSettings settings = neural_settings("dual");
  settings.network.network = NetworkForm::kModule;
  settings.network.module = "residual";
  RankerLoad load = {.features = 5, .train_docs = 1'000, .rounds = 10, .cutoff = 10, .most_docs = 10};
  load.home = PosteriorHome::kDevice;
  settings.network.depth = 16;  // of two layers each, with those of inputs and scores
  EXPECT_NO_THROW(memory_of_ranker(settings, load));
  settings.network.depth = 17;
  try {
    memory_of_ranker(settings, load);
    FAIL() << "34 layers";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()),
              "Ranker 'dual' has 34 layers of parameters, and a covariance on a GPU takes at most 32: use "
              "--device cpu, or fewer layers.");
  }
  settings.posterior.covariance = Covariance::kNone;
  EXPECT_NO_THROW(memory_of_ranker(settings, load));
  load.home = PosteriorHome::kHost;
  settings.posterior.covariance = Covariance::kFull;
  EXPECT_NO_THROW(memory_of_ranker(settings, load));
}

}  // namespace
}  // namespace olrank
