#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "models/skeleton/ranker_settings.h"
#include "serve/api_error.h"
#include "serve/service.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

constexpr std::int64_t kShownRanks = 3;

ExposureRule three_ranks() {
  return {{1.0, 0.5, 0.25}, {1.25}, 0.5};
}

std::unique_ptr<OnlineRanker> make_fair(RankerKind kind, Fairness fair) {
  RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kRecommended);
  settings.name = "fair";
  settings.fair.fair = fair;
  return make_ranker(settings, kServedFeatures, TrialKeys::of(1, 1, "service"), kShownRanks);
}

/// A learner and a service with groups.
struct FairService {
  explicit FairService(RankerKind kind = RankerKind::kPairRank, Fairness fair = Fairness::kFairExp,
                       ImpressionLimits impressions = {})
      : log(folder / "log", 100), learner(make_fair(kind, fair), log, settings(folder)) {
    Service::Parts parts = small_parts();
    parts.requests.cutoff = kShownRanks;
    parts.requests.groups = 2;
    parts.requests.most_ranks = kShownRanks;
    parts.exposure = three_ranks();
    parts.exposed = learner.logged_exposure();
    lists.emplace(FirstAnswers::Settings{impressions, parts.start}, log);
    service.emplace(std::move(parts), *lists, log, learner);
    learner.start();
  }
  static LearnerSettings settings(const TemporaryFolder& folder) {
    return {.checkpoint = folder / "checkpoint", .identity = "identity", .exposure = three_ranks()};
  }

  /// Documents 0, 1, …, of which every third is of group B, with features that `number` decides.
  nlohmann::json rank(int number, int docs = 8, bool explore = true) {
    std::string body = fmt::format("{{\"query\":\"q{}\",\"docs\":[", number % 5);
    for (int doc = 0; doc < docs; ++doc) {
      body += fmt::format(R"({}{{"id":{},"group":"{}","features":[{},{},{},1]}})", doc > 0 ? "," : "", doc,
                          doc % 3 == 2 ? 'B' : 'A', (number * 7 + doc * 3) % 11, doc % 5, number % 3);
    }
    return nlohmann::json::parse(service->rank(fmt::format("{}],\"explore\":{}}}", body, explore)));
  }
  nlohmann::json fairness() { return nlohmann::json::parse(service->stats())["fairness"]; }

  TemporaryFolder folder;
  FileLog log;
  Learner learner;
  std::optional<FirstAnswers> lists;
  std::optional<Service> service;
};

// Lists that were chosen by the same unfairness would go beyond the bound together.
TEST(FairService, KeepsItWithRequestsAtTheSameTime) {
  FairService fair;
  std::atomic<int> unfair = 0;
  in_threads(4, [&](int client) {
    for (int number = 0; number < 50; ++number)
      unfair += fair.rank(client * 50 + number)["fair"].get<bool>() ? 0 : 1;
  });
  EXPECT_EQ(unfair, 0);
  EXPECT_EQ(fair.fairness()["lists"], 200);
  EXPECT_EQ(fair.fairness()["fair_share"], 1.0);
}

// Scores alone would favour the same documents each time.
TEST(FairService, KeepsItWithoutExploration) {
  FairService fair;
  for (int time = 0; time < 20; ++time) EXPECT_TRUE(fair.rank(1, 8, false)["fair"].get<bool>());
}

TEST(FairService, SaysWhereNoListIsFair) {
  FairService fair;
  // Two documents of A: 1 + 0.5 > ε.
  const auto answer = fair.rank(1, 2);
  EXPECT_EQ(answer["unfairness"], 1.5);
  EXPECT_FALSE(answer["fair"].get<bool>());
  EXPECT_EQ(fair.fairness()["fair_share"], 0.0);
}

TEST(FairService, CountsOnlyListsThatAreShown) {
  ImpressionLimits tiny;
  tiny.bytes = 64;
  FairService fair(RankerKind::kPairRank, Fairness::kFairExp, tiny);
  EXPECT_THROW(fair.rank(1), ApiError);
  EXPECT_EQ(fair.fairness()["lists"], 0);
  EXPECT_EQ(fair.fairness()["unfairness"], 0.0);
}

TEST(FairService, MeasuresRankersThatAreNotFair) {
  FairService fair(RankerKind::kPairRank, Fairness::kNone);
  bool beyond = false;
  for (int number = 0; number < 30; ++number) {
    const auto answer = fair.rank(number);
    const bool within = std::abs(answer["unfairness"].get<double>()) <= 0.5;
    EXPECT_EQ(answer["fair"].get<bool>(), within);
    beyond = beyond || !within;
  }
  EXPECT_TRUE(beyond);
}

TEST(FairService, FairCoLearnsByTheExaminationOfRanks) {
  FairService fair(RankerKind::kFairCo, Fairness::kFairCo);
  for (int number = 0; number < 10; ++number) {
    const auto answer = fair.rank(number);
    fair.service->feedback(
        fmt::format(R"({{"impression":"{}","ranks":[2]}})", answer["impression"].get<std::string>()));
  }
  wait_for_round(fair.learner, 10);
  EXPECT_EQ(fair.learner.write_checkpoint().round, 10U);
  EXPECT_EQ(fair.learner.failure(), std::nullopt);
  EXPECT_EQ(fair.learner.latest()->skipped, 0U);
}

TEST(FairService, RefusesALogWithoutGroups) {
  const TemporaryFolder folder;
  FileLog log(folder / "log", 1);
  log.append(liked_first_feature(1));
  const std::string message = message_of<DataError>([&] {
    Learner(make_fair(RankerKind::kPairRank, Fairness::kFairExp), log, FairService::settings(folder));
  });
  EXPECT_TRUE(contains(message, "log:1:1: The record has no 'groups'"));
}

}  // namespace
}  // namespace olrank
