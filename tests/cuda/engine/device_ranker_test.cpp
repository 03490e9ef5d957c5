// Compares rankers on a device with those on the CPU: both learn from the lists of one of them.
#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "cuda/engine/device_network.h"
#include "cuda/engine/resident_trainer.h"
#include "jobs/checkpoint_writer.h"
#include "models/neural/device_ranker.h"
#include "tests/cuda/engine/small_device_rankers.h"
#include "tests/cuda/ops/kernel_test.h"
#include "tests/models/neural/recorded_rounds.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"
#include "tests/support/saved_state.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

using namespace small_device_rankers;

void expect_equal_details(const Detail& found, const Detail& expected) {
  // Scores are sums of float32 products in another order.
  EXPECT_TRUE(all_near(found.round.scores, expected.round.scores, 2e-4, 1e-5));
  EXPECT_TRUE(all_near(found.round.width_sq, expected.round.width_sq, 1e-4, 1e-3));
  ASSERT_EQ(found.round.theta.size(), expected.round.theta.size());
  for (std::size_t member = 0; member < expected.round.theta.size(); ++member)
    EXPECT_TRUE(all_near(found.round.theta[member], expected.round.theta[member], 2e-4, 0.0));
  EXPECT_EQ(found.round.certain, expected.round.certain);
  EXPECT_EQ(found.list, expected.list);
}

OLRANK_KERNEL_TEST_SUITE(DeviceRankerTest);

// Names of settings; the parameter of a kernel test is the order of its threads.
const std::vector<std::string> kNames = words_of(
    "dual primal diagonal none three_layers theory nesterov adam expected expected_ensemble "
    "lambdarank ensemble ensemble_recorded dual_recorded adam_recorded reference reference_gd "
    "reference_lambdarank reference_ensemble reference_warm first fresh_ensemble growth "
    "growth_recorded growth_nesterov growth_adam growth_three_layers growth_expected "
    "growth_ensemble growth_ensemble_recorded waiting_growth debiased_growth debiased_lambdarank");

// All of them for one order of threads; for the others, whose kernels have tests of their own, one of each
// way to train.
TEST_P(DeviceRankerTest, MatchesCpu) {
  for (const std::string& name :
       is_first_order(GetParam())
           ? kNames
           : words_of("dual_recorded ensemble ensemble_recorded reference_lambdarank")) {
    SCOPED_TRACE(name);
    const auto on_cpu = make_neural(settings_of(name), kFeatures);
    const auto on_device = make_on_device(settings_of(name));
    TestContext context;
    const std::uint32_t rounds = rounds_of(name);
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      const RecordedRound played = play_round(*on_cpu, context.round, world(), round);
      if (round % 3 != 0) on_device->rank(context.round, world().query_of(round), round);
      const Feedback feedback = played.feedback(world(), round);
      on_device->learn(context.round, feedback);
    }
    expect_equal_details(list_and_detail_of(*on_device, 2, rounds + 1),
                         list_and_detail_of(*on_cpu, 2, rounds + 1));
    std::vector<float> found(all_features().docs);
    std::vector<float> expected(found.size());
    on_device->score(context.execution, all_features(), found);
    on_cpu->score(context.execution, all_features(), expected);
    EXPECT_TRUE(all_near(found, expected, 2e-4, 0.0));
    const auto figures = on_device->figures(context.execution);
    EXPECT_EQ(figures.back().name, "device_bytes");
    EXPECT_GT(figures.back().value, 1000.0);
    if (figures.size() > 1) {
      EXPECT_EQ(figures[0].name, "drift");
      EXPECT_LT(figures[0].value, 1e-9);
    }
  }
}

// The paper's ensembles draw all noise again in every round and train, whether there are pairs or not.
TEST_P(DeviceRankerTest, EnsemblesTrainInRoundsWithoutPairs) {
  for (const std::string name :
       {"ensemble", "ensemble_recorded", "reference_ensemble", "growth_ensemble"}) {
    SCOPED_TRACE(name);
    const auto on_cpu = make_neural(settings_of(name), kFeatures);
    const auto on_device = make_on_device(settings_of(name));
    TestContext context;
    for (std::uint32_t round = 1; round <= 6; ++round) {
      const bool without_pairs = round == 3 || round == 5;
      const std::vector<float> before = flat_theta(*on_device);
      RecordedRound played;
      if (without_pairs) {
        const auto list = on_cpu->rank(context.round, world().query_of(round), round).docs;
        played.shown.assign(list.begin(), list.end());
        played.clicks.resize(played.shown.size());
        on_cpu->learn(context.round, played.feedback(world(), round));
      } else {
        played = play_round(*on_cpu, context.round, world(), round);
      }
      const LearnReport learned = on_device->learn(context.round, played.feedback(world(), round));
      EXPECT_EQ(learned.pairs.empty(), without_pairs);
      EXPECT_EQ(flat_theta(*on_device) == before, without_pairs && name == "growth_ensemble") << round;
    }
    expect_equal_details(list_and_detail_of(*on_device, 2, 7), list_and_detail_of(*on_cpu, 2, 7));
  }
}

/// A ranker with the state of another; both have the same form.
std::unique_ptr<OnlineRanker> with_state(std::unique_ptr<OnlineRanker> ranker, const OnlineRanker& other) {
  load_state(*ranker, state_of(other));
  return ranker;
}

struct Learned {
  LearnReport on_cpu;
  LearnReport on_device;
};

/// Both learn from the first documents of the CPU's list, of which a perfect user sees so many.
Learned learn_together(OnlineRanker& on_cpu, OnlineRanker& on_device, const SmallWorld& from,
                       std::uint32_t round, std::ptrdiff_t shown) {
  TestContext context;
  const QueryDocs query = from.query_of(round);
  const auto docs = on_cpu.rank(context.round, query, round).docs;
  RecordedRound played;
  played.shown.assign(docs.begin(), docs.begin() + std::min(shown, std::ssize(docs)));
  played.clicks = from.perfect_clicks(query.query, played.shown);
  return {on_cpu.learn(context.round, played.feedback(from, round)),
          on_device.learn(context.round, played.feedback(from, round))};
}

/// Both learn in a round in which the device reports its steps, as its query is described.
Learned learn_described(OnlineRanker& on_cpu, OnlineRanker& on_device, std::uint32_t round) {
  list_and_detail_of(on_device, world().query_of(round), round);
  return learn_together(on_cpu, on_device, world(), round, 10);
}

// A step that is far too large is halved on the sample, whose correction stays as it is; the curvature that
// the second repeat finds is the sample's, and the next round goes on with that of the history. One round
// of repeats, as such steps carry rounding far.
TEST_P(DeviceRankerTest, RepeatsAreTrainedOnTheSameSample) {
  if (static_cast<int>(GetParam()) != 0) GTEST_SKIP() << "one order of threads is enough";
  constexpr double kFarTooMuch = 1000.0;
  for (const std::string name : {"growth", "growth_recorded", "growth_ensemble_recorded"}) {
    SCOPED_TRACE(name);
    const RankerSettings settings = settings_of(name);
    RankerSettings rash = settings;
    rash.trainer.learning_rate = kFarTooMuch * settings.trainer.learning_rate;
    const std::uint32_t last = rounds_of(name);
    const auto plain_on_cpu = make_neural(settings, kFeatures);
    const auto plain_on_device = make_on_device(settings);
    for (std::uint32_t round = 1; round < last; ++round)
      learn_described(*plain_on_cpu, *plain_on_device, round);

    const auto on_cpu = with_state(make_neural(rash, kFeatures), *plain_on_cpu);
    const auto on_device = with_state(make_on_device(rash), *plain_on_device);
    const std::vector<float> before = flat_theta(*on_cpu);
    const Learned rashly = learn_described(*on_cpu, *on_device, last);
    EXPECT_FALSE(all_near(flat_theta(*on_cpu), before, 1e-6, 0.0));
    EXPECT_TRUE(all_near(flat_theta(*on_device), flat_theta(*on_cpu), 1e-3, 1e-3));
    const auto steps = rashly.on_device.steps;
    const auto plain_steps = learn_described(*plain_on_cpu, *plain_on_device, last).on_device.steps;
    ASSERT_EQ(steps.size(), plain_steps.size());
    ASSERT_EQ(rashly.on_cpu.steps.size(), plain_steps.size());
    for (std::size_t member = 0; member < steps.size(); ++member) {
      EXPECT_LT(steps[member], kFarTooMuch / 3.0 * plain_steps[member]) << "no second repeat";
      EXPECT_NEAR(steps[member], rashly.on_cpu.steps[member], 1e-3 * steps[member]);
    }

    const auto later_on_cpu = with_state(make_neural(settings, kFeatures), *on_cpu);
    const auto later_on_device = with_state(make_on_device(settings), *on_device);
    const auto [expected, found] = learn_described(*later_on_cpu, *later_on_device, last + 1);
    EXPECT_TRUE(all_near(found.steps, expected.steps, 0.0, 1e-4));
  }
}

// Lists with far more documents and pairs than a sample usually has, between short ones.
TEST_P(DeviceRankerTest, SamplesHoldTheirRoundsPairsHoweverLongTheList) {
  if (static_cast<int>(GetParam()) != 0) GTEST_SKIP() << "one order of threads is enough";
  constexpr std::int64_t kLongList = 100;
  const SmallWorld long_lists(82, 4, kLongList, kFeatures);
  RankerSettings settings = settings_of("growth");
  settings.trainer.replay = 8;
  settings.trainer.retrain_growth = 1.0;
  settings.posterior.covariance = Covariance::kNone;
  const auto on_cpu = make_neural(settings, kFeatures, kLongList);
  DeviceRanker on_device(kFeatures, settings, test_keys(), kLongList, place_of(long_lists),
                         device::make_network);
  std::uint32_t round = 0;
  for (const std::int64_t shown : {kLongList, kLongList, std::int64_t{10}, kLongList, std::int64_t{10}}) {
    const Learned learned = learn_together(*on_cpu, on_device, long_lists, ++round, shown);
    EXPECT_EQ(std::ssize(learned.on_cpu.pairs) > 1000, shown == kLongList);
    EXPECT_TRUE(all_near(flat_theta(on_device), flat_theta(*on_cpu), 2e-4, 0.0)) << round;
  }
}

/// Notes what its rounds train on, and fails when it is told to.
class NotingNetwork : public DeviceNetwork {
 public:
  struct Notes {
    TrainingExtent extent = TrainingExtent::kNothing;
    bool learn_fails = false;
    bool earlier_failed = false;
    bool training_failed = false;
  };
  explicit NotingNetwork(Notes& notes) : notes_(&notes) {}

  DeviceOrders score_query(DeviceQuery) override { return {}; }
  std::span<const DeviceScores> score_queries(std::span<const DeviceQuery>) override { return {}; }
  void describe(std::span<float>, std::span<double>) override {}
  DeviceComparison compare(ExecutionContext&, std::span<const std::int32_t>) override { return {}; }
  void settle() override {
    if (notes_->earlier_failed) throw NumericError("The training before diverged.");
  }
  void learn(const DeviceUpdate& update) override {
    notes_->extent = update.extent;
    if (notes_->learn_fails) throw CudaError("The device has no memory left.");
  }
  std::vector<double> steps() override { return {}; }
  bool has_dual_form() const override { return false; }
  bool grows_in_place() const override { return false; }
  void switch_to_primal() override {}
  DeviceHealth health() override { return {}; }
  void begin_scores(FeatureMatrix) override {
    if (notes_->training_failed) throw NumericError("The training diverged.");
  }
  bool scores_ready() override { return true; }
  void finish_scores(std::span<float>) override {}
  std::vector<float> theta() override { return {}; }
  void add_seconds(StageClock&) override {}
  void save(StateWriter&) override {}
  void load(StateReader&, const DeviceHistory&) override {}

 private:
  Notes* notes_;
};

TEST(DeviceRankerScheduleTest, AFailedTrainingOnTheWholeHistoryIsDueAgain) {
  NotingNetwork::Notes notes;
  DeviceRanker ranker(kFeatures, settings_of("growth"), test_keys(), 10, place_of(),
                      [&](const DeviceNetworkSpec&) { return std::make_unique<NotingNetwork>(notes); });
  TestContext context;
  std::uint32_t round = 0;
  const std::vector<std::int32_t> shown{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<std::uint8_t> clicks{0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
  const auto extent_of_round = [&] {
    ++round;
    ranker.learn(context.round, {round, world().query(round % 6), shown, clicks});
    return notes.extent;
  };
  const auto play_until = [&](TrainingExtent extent) {
    for (int tried = 0; tried < 100; ++tried) {
      if (extent_of_round() == extent) return true;
    }
    return false;
  };
  ASSERT_TRUE(play_until(TrainingExtent::kSample));
  ASSERT_TRUE(play_until(TrainingExtent::kHistory));
  EXPECT_EQ(extent_of_round(), TrainingExtent::kSample);

  // A later call finds the failure.
  ASSERT_TRUE(play_until(TrainingExtent::kHistory));
  notes.training_failed = true;
  EXPECT_THROW(ranker.begin_scores(all_features()), NumericError);
  notes.training_failed = false;
  EXPECT_EQ(extent_of_round(), TrainingExtent::kHistory);
  EXPECT_EQ(extent_of_round(), TrainingExtent::kSample);

  // The next round finds it.
  ASSERT_TRUE(play_until(TrainingExtent::kHistory));
  notes.earlier_failed = true;
  EXPECT_THROW(extent_of_round(), NumericError);
  notes.earlier_failed = false;
  EXPECT_EQ(extent_of_round(), TrainingExtent::kHistory);

  // The host's history has what the device did not take.
  notes.learn_fails = true;
  EXPECT_THROW(extent_of_round(), CudaError);
  notes.learn_fails = false;
  EXPECT_THROW(extent_of_round(), Error);
  EXPECT_THROW(ranker.rank(context.round, world().query(0), ++round), Error);
}

TEST(WhyNotOnDeviceTest, NamesWhatHasNoDeviceImplementation) {
  EXPECT_EQ(why_not_on_device(settings_of("growth")), std::nullopt);
  EXPECT_EQ(why_not_on_device(settings_of("after")), "observe_at = \"after\" has no device implementation");
  EXPECT_EQ(why_not_on_device(settings_of("noisy_prior_ensemble")),
            "prior_noise has no device implementation");
  RankerSettings settings = settings_of("dual");
  settings.posterior.covariance = Covariance::kDiagonalOfInverse;
  EXPECT_EQ(why_not_on_device(settings),
            "covariance = \"diagonal-of-inverse\" has no device implementation");
  settings.posterior.covariance = Covariance::kInducing;
  EXPECT_EQ(why_not_on_device(settings), "covariance = \"inducing\" has no device implementation");
  settings = settings_of("lambdarank");
  EXPECT_EQ(why_not_on_device(settings), std::nullopt);
  settings.trainer.retrain = Retrain::kGrowth;
  EXPECT_EQ(why_not_on_device(settings),
            "'ollambdarank' with retrain = \"growth\" has no device implementation");
  settings = settings_of("dual");
  // The history of a module stays on the host, with all that it can do there.
  settings.network.network = NetworkForm::kModule;
  EXPECT_EQ(why_not_on_device(settings), "the covariance of a module lives on the CPU");
  settings.posterior.covariance = Covariance::kNone;
  EXPECT_EQ(why_not_on_device(settings), std::nullopt);
  settings = RankerSettings::defaults(RankerKind::kPdgd, ProtocolName::kPaper);
  settings.network.network = NetworkForm::kModule;
  EXPECT_EQ(why_not_on_device(settings), "'pdgd' has no device implementation");
}

TEST_P(DeviceRankerTest, ShadowsMatchCpu) {
  constexpr std::int64_t kShown = 7;
  for (const std::string name : {"shadow", "shadow_dual", "shadow_primal"}) {
    if (name != "shadow_dual" && !is_first_order(GetParam())) continue;
    SCOPED_TRACE(name);
    const auto on_cpu = make_neural(settings_of(name), kFeatures, kShown);
    const auto on_device = make_on_device(settings_of(name), kShown);
    TestContext context;
    // Enough for `auto` to switch to A⁻¹.
    const std::uint32_t rounds = name == "shadow" ? 5 * kRounds : kRounds;
    std::int64_t turned = 0;
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      const RankedList expected = on_cpu->rank(context.round, world().query_of(round), round);
      const RankedList found = on_device->rank(context.round, world().query_of(round), round);
      ASSERT_TRUE(
          std::equal(found.docs.begin(), found.docs.end(), expected.docs.begin(), expected.docs.end()));
      EXPECT_FALSE(found.width_ratios.empty());
      EXPECT_TRUE(all_near(found.width_ratios, expected.width_ratios, 1e-4, 1e-3));
      EXPECT_EQ(found.turned_decisions.total, kShown * (kShown - 1) / 2);
      EXPECT_EQ(found.turned_decisions.count, expected.turned_decisions.count);
      turned += expected.turned_decisions.count;
      const RecordedRound played = play_round(*on_cpu, context.round, world(), round, kShown);
      on_device->learn(context.round, played.feedback(world(), round));
    }
    EXPECT_GT(turned, 0);
    EXPECT_EQ(state_of(*on_device).find("primal") == std::string::npos, name == "shadow_dual");
  }
}

Course play(OnlineRanker& ranker, std::uint32_t first, std::uint32_t last) {
  return play_course(ranker, world(), first, last);
}

TEST_P(DeviceRankerTest, ContinuesToTheSameBitsAfterLoading) {
  if (!is_first_order(GetParam())) GTEST_SKIP() << "resuming depends on no order";
  for (const std::string name : {"dual", "dual_recorded", "primal", "lambdarank", "expected_ensemble",
                                 "ensemble_recorded", "shadow", "shadow_dual", "reference_lambdarank",
                                 "reference_ensemble", "growth_ensemble", "growth_recorded"}) {
    SCOPED_TRACE(name);
    const std::uint32_t rounds = rounds_of(name);
    const std::uint32_t before = rounds - 4;
    const auto whole = make_on_device(settings_of(name));
    const Course expected = play(*whole, 1, rounds);
    const auto earlier = make_on_device(settings_of(name));
    const std::string state = play(*earlier, 1, before).state;
    const auto later = make_on_device(settings_of(name));
    play(*later, 1, 2);  // replaced by load()
    load_state(*later, state);
    const Course rest = play(*later, before + 1, rounds);
    EXPECT_TRUE(std::equal(rest.rounds.begin(), rest.rounds.end(), expected.rounds.begin() + before));
    EXPECT_TRUE(rest.state == expected.state);
    EXPECT_EQ(flat_theta(*later), flat_theta(*whole));
  }
}

// Two checkpoints, of which the second adds to the first, and rounds while each is written.
TEST_P(DeviceRankerTest, ContinuesFromACheckpointThatIsWrittenDuringRounds) {
  if (!is_first_order(GetParam())) GTEST_SKIP() << "resuming depends on no order";
  const RankerSettings settings = settings_of("shadow_dual");
  const auto whole = make_on_device(settings);
  const Course expected = play(*whole, 1, 6);
  const TemporaryFolder folder;
  {
    CheckpointWriter writer(folder.path());
    const auto earlier = make_on_device(settings);
    for (const std::uint32_t last : {2U, 4U}) {
      play(*earlier, last - 1, last);
      StateWriter state = writer.state();
      earlier->save(state);
      writer.begin(std::move(state), "state.safetensors", [] {});
    }
    play(*earlier, 5, 5);
    writer.advance();
  }
  const auto later = make_on_device(settings);
  StateReader reader = read_state_file(folder.path() / "state.safetensors", "start again");
  later->load(reader);
  reader.require_end();
  const Course rest = play(*later, 5, 6);
  EXPECT_TRUE(std::equal(rest.rounds.begin(), rest.rounds.end(), expected.rounds.begin() + 4));
  EXPECT_TRUE(rest.state == expected.state);
}

// A loaded ranker has no recorded graph, so that it shows whether the graph of a ranker that played all
// rounds is stale. After 96 rounds there are more impressions than an earlier graph covers, although no
// array has moved.
TEST_P(DeviceRankerTest, RecordsBatchesAgainWhenTheHistoryOutgrowsThem) {
  if (static_cast<int>(GetParam()) != 0) GTEST_SKIP() << "one order of threads is enough";
  RankerSettings settings = settings_of("reference_lambdarank");
  settings.trainer.epochs = 1;
  settings.trainer.batch = 64;
  const auto whole = make_on_device(settings);
  constexpr std::uint32_t kBefore = 94;
  std::string state = play(*whole, 1, kBefore).state;
  for (std::uint32_t round = kBefore + 1; round <= kBefore + 4; ++round) {
    const auto fresh = make_on_device(settings);
    load_state(*fresh, state);
    state = play(*whole, round, round).state;
    ASSERT_TRUE(play(*fresh, round, round).state == state) << round;
  }
}

// Whatever the order of threads: the emulation runs another one, a GPU any.
TEST_P(DeviceRankerTest, TwoRunsHaveTheSameBits) {
#if defined(OLRANK_KERNELS_EMULATED)
  if (GetParam() == emulation::Schedule::kRandom) GTEST_SKIP() << "kBackward compares the same two orders";
#endif
  for (const std::string name : {"dual", "dual_recorded", "primal", "diagonal", "lambdarank",
                                 "expected_ensemble", "ensemble_recorded", "reference_lambdarank",
                                 "reference_ensemble", "growth", "growth_ensemble_recorded"}) {
    const bool grows = name.starts_with("growth");
    if (grows && static_cast<int>(GetParam()) != 0) continue;  // compares two orders already
    const std::uint32_t rounds = grows ? rounds_of(name) : 4;
    const auto first = make_on_device(settings_of(name));
    const Course expected = play(*first, 1, rounds);
#if defined(OLRANK_KERNELS_EMULATED)
    emulation::machine.schedule = emulation::Schedule::kRandom;
#endif
    const auto second = make_on_device(settings_of(name));
    EXPECT_TRUE(play(*second, 1, rounds).state == expected.state) << name;
    SetUp();
  }
}

/// The devices that tests may use; the emulation has two.
int devices() {
#if defined(OLRANK_KERNELS_EMULATED)
  emulation::set_device_count(2);
  return 2;
#else
  return static_cast<int>(visible_gpus().gpus.size());
#endif
}

// One thread plays rounds on several devices in turn: every call selects the ranker's device.
TEST_P(DeviceRankerTest, EveryDeviceHasTheSameBits) {
  if (!is_first_order(GetParam())) GTEST_SKIP() << "one order of threads is enough";
  const int count = devices();
  if (count < 2) GTEST_SKIP() << "one GPU";
  for (const std::string name : {"dual", "shadow_primal", "ensemble_recorded", "reference_lambdarank"}) {
    SCOPED_TRACE(name);
    std::vector<std::unique_ptr<OnlineRanker>> rankers;
    for (int device = 0; device < count; ++device)
      rankers.push_back(make_on_device(settings_of(name), 10, device));
    std::vector<Course> last(rankers.size());
    std::vector<float> scores[2];
    for (std::uint32_t round = 1; round <= 4; ++round) {
      for (std::size_t i = 0; i < rankers.size(); ++i) last[i] = play(*rankers[i], round, round);
      for (auto& of_one : scores) of_one.resize(all_features().docs);
      for (std::size_t i = 0; i < 2; ++i) rankers[i]->begin_scores(all_features());
      for (std::size_t i = 0; i < 2; ++i) {
        while (!rankers[i]->scores_ready()) {
        }
        rankers[i]->finish_scores(scores[i]);
      }
      EXPECT_EQ(scores[0], scores[1]);
      for (const Course& one : last) EXPECT_TRUE(one.state == last[0].state) << round;
    }
  }
  device::use_device(0);
}

#if defined(OLRANK_KERNELS_EMULATED)
// Kernels and copies: each costs microseconds, whatever it does.
TEST_P(DeviceRankerTest, AQueryIsScoredWithFewStarts) {
  TestContext context;
  for (const auto& [name, expected] : {std::pair{"dual", 8}, {"diagonal", 8}, {"ensemble", 5}}) {
    const auto ranker = make_on_device(settings_of(name));
    play(*ranker, 1, 3);
    ranker->rank(context.round, world().query_of(4), 4);  // memory grows
    const std::int64_t before = emulation::counts.starts;
    ranker->rank(context.round, world().query_of(4), 4);
    EXPECT_EQ(emulation::counts.starts - before, expected) << name;
  }
}

TEST_P(DeviceRankerTest, UnrecordedTrainingsHaveTheSameBits) {
  const ExpectedWarnings warnings;
  for (const std::string name : {"dual_recorded", "ensemble_recorded", "reference_lambdarank"}) {
    const auto recorded = make_on_device(settings_of(name));
    const Course expected = play(*recorded, 1, 5);
    emulation::machine.recordings_to_fail = 3;
    const auto unrecorded = make_on_device(settings_of(name));
    EXPECT_TRUE(play(*unrecorded, 1, 5).state == expected.state) << name;
    SetUp();
  }
}
#endif

/// σ_t of a ranker's first training, on `played`.
double first_step(OnlineRanker& ranker, const RecordedRound& played) {
  TestContext context;
  list_and_detail_of(ranker, world().query_of(1), 1);  // learn() then reports its step
  const auto learned = ranker.learn(context.round, played.feedback(world(), 1));
  return learned.steps.size() == 1 ? learned.steps[0] : std::nan("");
}

TEST_P(DeviceRankerTest, HalvesAStepUntilTheLossFalls) {
  for (const std::string name : {"dual", "dual_recorded"}) {
    SCOPED_TRACE(name);
    RankerSettings settings = settings_of(name);
    TestContext context;
    const auto user = make_neural(settings, kFeatures);
    const RecordedRound played = play_round(*user, context.round, world(), 1);
    const double unit = first_step(*make_neural(settings, kFeatures), played);
    for (const double too_large : {16.0, 1e6}) {
      SCOPED_TRACE(too_large);
      settings.trainer.learning_rate = too_large;
      const auto on_cpu = make_neural(settings, kFeatures);
      const auto on_device = make_on_device(settings);
      const double step = first_step(*on_device, played);
      EXPECT_NEAR(step, first_step(*on_cpu, played), 1e-6 * step);
      // The curvature is found again on the way, from where the power iteration stopped before.
      const double halvings = std::log2(too_large * unit / step);
      EXPECT_GE(halvings, 1.0 - 1e-6);
      EXPECT_NEAR(halvings, std::round(halvings), 1e-2);
      expect_equal_details(list_and_detail_of(*on_device, 1, 2), list_and_detail_of(*on_cpu, 1, 2));
    }
  }
}

/// The error of a ranker that plays rounds from `first` on.
std::string error_of(OnlineRanker& ranker, std::uint32_t first = 1) {
  return message_of<NumericError>([&] { play(ranker, first, kRounds); });
}

TEST_P(DeviceRankerTest, ReportsTheStepWhereTrainingDiverged) {
  for (const std::string name : {"dual", "dual_recorded"}) {
    SCOPED_TRACE(name);
    RankerSettings settings = settings_of(name);
    settings.trainer.optimizer = Optimizer::kAdam;
    settings.trainer.steps = 6;
    std::set<std::string> found;
    for (const double rate : {1e25, 5e14}) {
      SCOPED_TRACE(rate);
      settings.trainer.learning_rate = rate;
      const std::string error = error_of(*make_on_device(settings));
      EXPECT_EQ(error, error_of(*make_neural(settings, kFeatures)));
      EXPECT_TRUE(contains(error, "the loss is"));
      found.insert(error.substr(0, error.find(':')));
    }
    EXPECT_EQ(found.size(), 2U) << "both diverged in the same round and step";
  }
}

TEST_P(DeviceRankerTest, RefusesOneKernelWhereItIsImpossible) {
  const auto refusal = [](const std::string& name) -> std::string {
    RankerSettings settings = settings_of(name);
    settings.trainer.training_kernel = TrainingKernel::kPersistent;
    return message_of<InvalidArgument>([&] { make_on_device(settings); });
  };
  EXPECT_EQ(
      refusal("three_layers"),
      "training_kernel = \"persistent\" is impossible for this ranker, as it trains networks with one "
      "hidden layer: use \"auto\".");
  EXPECT_TRUE(contains(refusal("lambdarank"), "as LambdaRank's weights"));
  EXPECT_EQ(refusal("dual"), kNoError);
  EXPECT_EQ(refusal("ensemble"), kNoError);
#if defined(OLRANK_KERNELS_EMULATED)
  emulation::machine.blocks_at_once = 0;
  EXPECT_TRUE(contains(refusal("dual"), "shared memory"));
  EXPECT_NO_THROW(make_on_device(settings_of("dual")));
  emulation::machine.blocks_at_once = 3;
#endif
}

/// The error of a ranker that continues from `state`.
std::string error_after(OnlineRanker& ranker, const std::string& state) {
  load_state(ranker, state);
  return error_of(ranker, 4);
}

// The error names the batch, and θ is what it was before the round.
TEST_P(DeviceRankerTest, ReportsAndUndoesABatchThatDiverged) {
  for (const std::string name : {"reference", "reference_lambdarank"}) {
    SCOPED_TRACE(name);
    RankerSettings settings = settings_of(name);
    const auto good_on_cpu = make_neural(settings, kFeatures);
    const auto good_on_device = make_on_device(settings);
    const std::string state_on_cpu = play(*good_on_cpu, 1, 3).state;
    const std::string state_on_device = play(*good_on_device, 1, 3).state;
    settings.trainer.learning_rate = 1e25;
    const auto on_cpu = make_neural(settings, kFeatures);
    const auto on_device = make_on_device(settings);
    const std::string error = error_after(*on_cpu, state_on_cpu);
    EXPECT_TRUE(contains(error, "A smaller learning_rate than 1e+25 keeps it finite."));
    EXPECT_EQ(error_after(*on_device, state_on_device), error);
    EXPECT_EQ(flat_theta(*on_device), flat_theta(*good_on_device));
  }
}

TEST_P(DeviceRankerTest, BatchSizesFitEveryBatch) {
  if (static_cast<int>(GetParam()) != 0) GTEST_SKIP() << "checks sizes only, once";
  constexpr std::int64_t kBatch = 1024;
  const NetworkShape shape = ntk_shape(136, 256, 2);
  std::int64_t larger_rests = 0;
  for (std::int64_t observed = 1; observed < 3 * kBatch; ++observed) {
    const device::TrainingSizes room = device::batch_sizes(shape, kBatch, observed);
    for (std::int64_t begin = 0; begin < observed; begin += kBatch) {
      const std::int64_t count = std::min(kBatch, observed - begin);
      const device::TrainingSizes needed = device::training_sizes(shape, 1, 2 * count, count);
      ASSERT_GE(room.rows, needed.rows) << observed;
      ASSERT_GE(room.scores, needed.scores) << observed;
      ASSERT_GE(room.partial, needed.partial) << observed;
      ASSERT_GE(room.losses, needed.losses) << observed;
    }
    const std::int64_t full = device::training_sizes(shape, 1, 2 * kBatch, kBatch).partial;
    if (observed > kBatch && room.partial > full) ++larger_rests;
  }
  EXPECT_GT(larger_rests, 0);
}

// More pairs than the kernels observe at once: the second batch depends on the first.
TEST_P(DeviceRankerTest, ObservesManyPairsOfARoundInBatches) {
  if (static_cast<int>(GetParam()) != 0) GTEST_SKIP() << "one order of threads is enough";
  constexpr std::int64_t kMany = 48;
  const SmallWorld crowded(7, 2, kMany, kFeatures);
  RankerSettings settings = settings_of("dual");
  settings.feedback.pairs = PairRule::kAll;
  settings.posterior.lambda = 20.0;
  for (const CovarianceForm form : {CovarianceForm::kDual, CovarianceForm::kPrimal}) {
    settings.posterior.form = form;
    const auto on_cpu = make_neural(settings, kFeatures, kMany);
    DeviceRanker on_device(kFeatures, settings, test_keys(), kMany, place_of(crowded),
                           device::make_network);
    std::size_t most_pairs = 0;
    for (const std::uint32_t round : {1U, 2U}) {
      const Learned learned = learn_together(*on_cpu, on_device, crowded, round, kMany);
      most_pairs = std::max(most_pairs, learned.on_cpu.pairs.size());
    }
    EXPECT_GT(most_pairs, 256U);
    const Detail found = list_and_detail_of(on_device, crowded.query(0), 3);
    const Detail expected = list_and_detail_of(*on_cpu, crowded.query(0), 3);
    EXPECT_TRUE(all_near(found.round.width_sq, expected.round.width_sq, 1e-6, 1e-3));
  }
}

// Documents that are on the device and others, fewer and more.
TEST_P(DeviceRankerTest, DropsScoresThatWereNotFinished) {
  const auto ranker = make_on_device(settings_of("dual"));
  TestContext context;
  const FeatureMatrix all = all_features();
  const std::vector<float> others = random_numbers(2 * all.docs * kFeatures, 5);
  const FeatureMatrix more{others.data(), 2 * all.docs, kFeatures};
  std::vector<float> alone(more.docs);
  ranker->score(context.execution, more, alone);
  ranker->begin_scores({others.data() + kFeatures, kDocs, kFeatures});
  ranker->begin_scores(all);
  std::vector<float> found(alone.size());
  ranker->score(context.execution, more, found);
  EXPECT_EQ(found, alone);
}

TEST_P(DeviceRankerTest, RefusesMoreDocumentsThanAGridHasRows) {
  RankerDevice place = place_of();
  place.most_docs = 65'536;
  EXPECT_THROW(
      DeviceRanker(kFeatures, settings_of("diagonal"), test_keys(), kDocs, place, device::make_network),
      InvalidArgument);
}

}  // namespace
}  // namespace olrank
