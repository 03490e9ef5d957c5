// Trials in lock-step on one device: the bits of each, and what they start together.
#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "cuda/engine/device_network.h"
#include "cuda/runtime/batch.h"
#include "tests/cuda/engine/small_device_rankers.h"
#include "tests/cuda/ops/kernel_test.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

using namespace small_device_rankers;
using std::chrono::milliseconds;

OLRANK_KERNEL_TEST_SUITE(DeviceBatchTest);

/// A trial's settings, and the round in which its work fails to begin, in a batch.
struct Played {
  std::string name;
  std::uint32_t rounds = 6;
  std::optional<std::uint32_t> fails_in = {};
};

/// The state at the end, and the scores of all documents after the fourth round; empty for one that fails.
std::string play(const Played& played, std::shared_ptr<DeviceBatch> batch) {
  const auto ranker = make_on_device(settings_of(played.name), 10, 0, std::move(batch));
  TestContext context;
  std::vector<float> scores(all_features().docs);
  for (std::uint32_t round = 1; round <= played.rounds; ++round) {
    if (played.fails_in == round) {
      device::Seat* seat = device::Seat::of_thread();
      if (seat == nullptr) return {};
      seat->add_call([](Stream) { throw CudaError("A test lets this work fail."); });
      EXPECT_THROW(play_round(*ranker, context.round, world(), round), CudaError);
      return {};
    }
    play_round(*ranker, context.round, world(), round);
    if (round == 4) ranker->score(context.execution, all_features(), scores);
  }
  const auto* bytes = reinterpret_cast<const char*>(scores.data());
  return state_of(*ranker) + std::string(bytes, scores.size() * sizeof(float));
}

/// Each in a thread of its own, all in one batch.
std::vector<std::string> play_together(const std::vector<Played>& trials, milliseconds patience) {
  const std::shared_ptr<DeviceBatch> batch = device::make_batch(0, std::ssize(trials), patience);
  std::vector<std::string> found(trials.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < trials.size(); ++i)
    threads.emplace_back([&, i] { found[i] = play(trials[i], batch); });
  for (std::thread& thread : threads) thread.join();
  return found;
}

void expect_own_bits(const std::vector<Played>& trials, milliseconds patience) {
  const std::vector<std::string> found = play_together(trials, patience);
  for (std::size_t i = 0; i < trials.size(); ++i)
    EXPECT_TRUE(found[i] == play(trials[i], {})) << i << ": " << trials[i].name;
}

TEST_P(DeviceBatchTest, ATrialHasTheBitsThatItHasAlone) {
  const milliseconds patience(20);
  expect_own_bits({{"dual"}}, patience);
  expect_own_bits({{"dual"}, {"diagonal", 9}, {"dual", 4}}, patience);
  expect_own_bits({{"ensemble"}, {"adam_recorded"}, {"primal", 7}}, milliseconds(0));
  if (!is_first_order(GetParam())) return;
  std::vector<Played> sixteen;
  for (const char* name :
       {"dual", "none", "theory", "nesterov", "growth", "reference_warm", "primal", "dual"})
    sixteen.insert(sixteen.end(), 2, {name, 5});
  expect_own_bits(sixteen, patience);
}

TEST_P(DeviceBatchTest, ATrialThatFailsLeavesTheOthersAsTheyAre) {
  expect_own_bits({{"dual"}, {"dual", 6, 3}, {"none", 5}}, milliseconds(20));
}

#if defined(OLRANK_KERNELS_EMULATED)

std::int64_t starts_of(const std::vector<Played>& trials) {
  const std::int64_t before = emulation::counts.starts;
  play_together(trials, milliseconds(60'000));
  return emulation::counts.starts - before;
}

// The step of a batch is a round of exact covariance without its curvature.
TEST_P(DeviceBatchTest, ARoundHasFewLaunches) {
  if (!is_first_order(GetParam())) GTEST_SKIP() << "one order of threads is enough";
  const auto ranker = make_on_device(settings_of("dual"), 10, 0, device::make_batch(0, 1));
  TestContext context;
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t round = 1; round <= 12; ++round) {
    const std::int64_t before = emulation::counts.starts;
    play_round(*ranker, context.round, world(), round);
    fewest = std::min(fewest, emulation::counts.starts - before);
  }
  EXPECT_LE(fewest, 30);
}

// A round of several trials of one shape takes the launches of a round of one, but for those of what only
// one of them does: what is not alike in a round is a curvature that takes more iterations.
TEST_P(DeviceBatchTest, AlikeTrialsShareTheirLaunches) {
  if (!is_first_order(GetParam())) GTEST_SKIP() << "one order of threads is enough";
  emulation::machine.blocks_at_once = 32;  // so that cooperative grids can share a launch
  const auto starts_of_rounds = [](std::size_t trials) {
    const auto of = [&](std::uint32_t rounds) {
      return starts_of(std::vector(trials, Played{"none", rounds}));
    };
    return of(8) - of(4);
  };
  const std::int64_t one = starts_of_rounds(1);
  const std::int64_t three = starts_of_rounds(3);
  const std::int64_t sixteen = starts_of_rounds(16);
  emulation::machine.blocks_at_once = 3;
  RecordProperty("starts",
                 std::to_string(one) + ", " + std::to_string(three) + ", " + std::to_string(sixteen));
  EXPECT_LT(three, one * 5 / 4);
  EXPECT_LT(sixteen, one * 5 / 4);
}

#endif

}  // namespace
}  // namespace olrank
