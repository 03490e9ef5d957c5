// Experiments with users and rankers that a program registers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "jobs/experiment_run.h"
#include "models/baselines/external_ranker.h"
#include "models/ranker_factory.h"
#include "serve/service_setup.h"
#include "serve/state_folder.h"
#include "sim/click_models.h"
#include "sim/external_user.h"
#include "tests/jobs/settings/configuration_text.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

/// The built-in ranknet behind the interface of an external ranker.
class Wrapped : public ExternalRanker {
 public:
  explicit Wrapped(const ExternalRankerRequest& request)
      : ranker_(make_ranker(settings(), request.features, {request.seed, request.fold, request.user},
                            request.cutoff)) {}

  std::vector<std::int32_t> rank(const ExternalQuery& query) override {
    const RankedList list = ranker_->rank(context_, docs_of(query), query.round);
    return {list.docs.begin(), list.docs.end()};
  }
  void learn(const ExternalQuery& query, std::span<const std::int32_t> shown,
             std::span<const std::uint8_t> clicks) override {
    ranker_->learn(context_, {query.round, docs_of(query), shown, clicks});
  }
  void score(std::span<const float> inputs, std::int64_t docs, std::int64_t features,
             std::span<float> scores) const override {
    ExecutionContext execution;
    ranker_->score(execution, {inputs.data(), docs, features}, scores);
  }
  std::string save() const override {
    StateWriter state;
    ranker_->save(state);
    return state.bytes();
  }
  void load(std::string_view bytes) override {
    StateReader state(std::string(bytes), "a test");
    ranker_->load(state);
  }

 private:
  static RankerSettings settings() {
    RankerSettings settings = RankerSettings::defaults(RankerKind::kRankNet, ProtocolName::kRecommended);
    settings.name = "wrapped";
    settings.network.network = NetworkForm::kLinear;
    return settings;
  }
  static QueryDocs docs_of(const ExternalQuery& query) {
    return {query.query, 0, {query.inputs.data(), query.docs, query.features}};
  }

  ExecutionContext execution_;
  StageClock clock_;
  RoundContext context_{execution_, clock_};
  std::unique_ptr<OnlineRanker> ranker_;
};

/// Clicks on what is relevant at all.
class Lenient : public ExternalUser {
 public:
  std::vector<std::uint8_t> click(const ShownToUser& list) const override {
    std::vector<std::uint8_t> clicks;
    for (const std::int32_t doc : list.shown) clicks.push_back(list.grades[doc] > 0 ? 1 : 0);
    return clicks;
  }
};

class ExternalTrialsTest : public testing::Test {
 protected:
  ExternalTrialsTest() { register_both("1"); }
  ~ExternalTrialsTest() override { unregister_both(); }

  static void register_both(const std::string& version) {
    register_ranker("mine", "wraps ranknet, version " + version, [](const ExternalRankerRequest& request) {
      return std::make_unique<Wrapped>(request);
    });
    register_user("lenient", "clicks on grades above 0, version " + version, std::make_shared<Lenient>());
  }
  static void unregister_both() {
    unregister_ranker("mine");
    unregister_user("lenient");
  }

  std::string text(int rounds, const std::string& out) const {
    return fmt::format(R"(
[data]
source = "synth:small?queries=20&test_queries=10"
[protocol]
rounds = {}
eval_every = 20
seeds = [1, 2]
[clicks]
models = ["navigational", "lenient"]
[[ranker]]
name = "net"
kind = "ranknet"
network = "linear"
[[ranker]]
name = "mine"
kind = "external"
[run]
out = "{}"
jobs = 2
)",
                       rounds, (folder_ / out).string());
  }
  void run(int rounds, const std::string& out, Existing existing = Existing::kRefuse) const {
    const Configuration configuration = from_text(text(rounds, out));
    ExperimentRequest request;
    request.existing = existing;
    const ExperimentPlan plan = make_plan(configuration, request);
    check_existing(plan);
    EXPECT_EQ(run_experiment(plan).finished, 8);
  }
  /// The evaluations of a trial, without what belongs to the run.
  std::vector<nlohmann::json> curve(const std::string& out, const std::string& trial) const {
    std::istringstream lines(read_file(folder_ / out / "trials" / trial / "curve.jsonl"));
    std::vector<nlohmann::json> points;
    for (std::string line; std::getline(lines, line);) {
      points.push_back(nlohmann::json::parse(line));
      points.back().erase("seconds");
    }
    return points;
  }

  TemporaryFolder folder_;
};

TEST_F(ExternalTrialsTest, ARankerWithAnInterfaceAroundItPlaysTheSameTrials) {
  run(60, "out");
  for (const std::string of : {"navigational/fold1/seed1", "navigational/fold1/seed2",
                               "lenient/fold1/seed1", "lenient/fold1/seed2"}) {
    const auto built_in = curve("out", "net/" + of);
    const auto external = curve("out", "mine/" + of);
    ASSERT_EQ(external.size(), 4U);
    ASSERT_EQ(built_in.size(), 4U);
    for (std::size_t point = 0; point < 4; ++point) {
      for (const char* key : {"round", "offline", "online"}) {
        ASSERT_TRUE(built_in[point].contains(key)) << key;
        EXPECT_EQ(external[point][key], built_in[point][key]) << of << " " << key;
      }
    }
    EXPECT_NE(built_in[0]["offline"], built_in[3]["offline"]);
  }
}

TEST_F(ExternalTrialsTest, AnExtendedTrialHasTheBitsOfALongOne) {
  run(40, "out");
  run(80, "out", Existing::kResume);
  run(80, "long");
  for (const std::string of : {"mine/navigational/fold1/seed1", "mine/lenient/fold1/seed2"})
    EXPECT_EQ(curve("out", of), curve("long", of));
}

TEST_F(ExternalTrialsTest, TrialsOfAnotherRankerOrUserAreNotContinued) {
  run(20, "out");
  unregister_both();
  register_both("2");
  const std::string refused = message_of<InvalidArgument>([&] { run(40, "out", Existing::kResume); });
  EXPECT_TRUE(contains(refused, "differs in"));
  EXPECT_TRUE(contains(refused, "version 1"));
}

TEST_F(ExternalTrialsTest, WhatIsNotRegisteredIsRefusedBeforeAnythingIsWritten) {
  unregister_ranker("mine");
  EXPECT_EQ(message_of<InvalidArgument>([&] { run(20, "out"); }),
            "No ranker named 'mine' is registered: kind 'external' is for programs that bring rankers of "
            "their own.");
  unregister_user("lenient");
  EXPECT_TRUE(contains(message_of<InvalidArgument>([&] { run(20, "out"); }), "Unknown user 'lenient'"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

TEST_F(ExternalTrialsTest, AServiceHasNoSuchRanker) {
  StateFolder state(folder_ / "state");
  ServiceRequest request;
  request.names_kind = true;
  request.features = 3;
  request.ranker = {{"ranker", "", "kind", "external", "a test"}};
  const ResolvedService service = resolve_service(state, request);
  EXPECT_EQ(message_of<InvalidArgument>([&] { make_service_ranker(service, 1'000'000); }),
            "Ranker 'external' is of kind 'external', which plays experiments only: choose another kind.");
}

}  // namespace
}  // namespace olrank
