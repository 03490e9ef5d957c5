#include "logs/log_training.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/data/normaliser.h"
#include "core/feedback/feedback_record.h"
#include "core/random/rng_stream.h"
#include "models/labels/label_training.h"
#include "tests/models/small_world.h"
#include "tests/support/message_of.h"
#include "tests/support/saved_state.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

using Values = std::vector<double>;

LabelSettings adam() {
  LabelSettings settings;
  settings.network.network = NetworkForm::kLinear;
  return settings;
}

std::string line_of(std::uint32_t query, const std::vector<int>& shown, const std::vector<int>& clicks) {
  return fmt::format(R"({{"qid": "{}", "shown": [{}], "clicks": [{}]}})", query, fmt::join(shown, ","),
                     fmt::join(clicks, ",")) +
         "\n";
}

/// Three queries "0" to "2" of four documents with three features.
class LogTrainingTest : public testing::Test {
 protected:
  std::string log_of(const std::string& lines) const {
    const std::string file = (folder_.path() / "log.jsonl").string();
    std::ofstream(file) << lines;
    return file;
  }
  Values shares(const LogTrainingRequest& request, int threads = 1) const {
    const LogLists log = read_log_lists(request, world_.data(), false);
    const ClickTargets made = click_targets(request, log, world_.data(), adam(), {1, 1, 0}, threads);
    return {made.shares().begin(), made.shares().end()};
  }
  LogTrainingRequest request(const std::string& lines, LogEstimator estimator,
                             FittedModel click_model = FittedModel::kCascade) const {
    return {log_of(lines), estimator, click_model};
  }

  TemporaryFolder folder_;
  LabelledWorld world_{3, 3, 4, 3};
};

// In a cascade, users see all down to the first click. Query 0 has two lists, query 1 one, query 2 none:
// the mean is 1.5 lists a query, by which all is divided.
constexpr const char* kLists =
    R"({"qid": "0", "shown": [0, 1, 2], "clicks": [0, 1, 0]}
{"qid": "0", "shown": [2, 1, 0], "clicks": [1, 0, 0]}
{"qid": "1", "shown": [3, 2], "clicks": [1, 1]}
)";

TEST_F(LogTrainingTest, IpsDividesClicksByHowOftenADocumentWasSeen) {
  // Documents 0, 1 and 2 of query 0 were seen in one, one and one of two lists; the click below the first
  // one of query 1 tells a cascade nothing.
  LogTrainingRequest clipped = request(kLists, LogEstimator::kIps);
  clipped.clip = 1.25;
  const std::vector<std::pair<LogTrainingRequest, Values>> cases = {
      {request(kLists, LogEstimator::kNaive), {0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0}},
      {request(kLists, LogEstimator::kIps), {0, 1 / 0.5, 1 / 0.5, 0, 0, 0, 0, 1, 0, 0, 0, 0}},
      {clipped, {0, 1.25, 1.25, 0, 0, 0, 0, 1, 0, 0, 0, 0}}};
  for (const auto& [wanted, expected] : cases) {
    const Values found = shares(wanted);
    for (std::size_t doc = 0; doc < expected.size(); ++doc)
      EXPECT_DOUBLE_EQ(found[doc], expected[doc] / 1.5) << name_of(wanted.estimator) << doc;
  }
}

TEST_F(LogTrainingTest, DrIsIpsAndARegressionForWhatWasNotSeen) {
  const LogTrainingRequest ips = request(kLists, LogEstimator::kIps);
  LogTrainingRequest dr = ips;
  dr.estimator = LogEstimator::kDr;
  const Values by_ips = shares(ips);
  const Values by_dr = shares(dr);
  // A document that was seen with more than 1/clip has no need of the regression.
  for (const int doc : {0, 1, 2, 7}) EXPECT_DOUBLE_EQ(by_dr[doc], by_ips[doc]) << doc;
  // One that never was has the regression of a list: a probability times the lists of its query.
  for (const int doc : {3, 4, 5, 6}) {
    EXPECT_EQ(by_ips[doc], 0.0);
    EXPECT_GT(by_dr[doc], 0.0);
    EXPECT_LT(by_dr[doc], (doc == 3 ? 2.0 : 1.0) / 1.5);
  }
  // The log has nothing of query 2.
  for (int doc = 8; doc < 12; ++doc) EXPECT_EQ(by_dr[doc], 0.0);
}

TEST_F(LogTrainingTest, PropensitiesWeighShownDocuments) {
  LogTrainingRequest weighed = request(
      R"({"qid": "0", "shown": [0, 1], "clicks": [0, 1], "propensity": [0.5, 1.0]}
{"qid": "0", "shown": [1, 0], "clicks": [1, 0], "propensity": [0.01, 1.0]}
)",
      LogEstimator::kTwoTower);
  const LogLists log = read_log_lists(weighed, world_.data(), false);
  // 2 and, clipped, 10 at the first rank, whose mean is 6; 1 and 1 at the second.
  const Values expected = {2.0 / 6.0, 1.0, 10.0 / 6.0, 1.0};
  ASSERT_EQ(log.weights.size(), expected.size());
  for (std::size_t at = 0; at < expected.size(); ++at) EXPECT_DOUBLE_EQ(log.weights[at], expected[at]);
  EXPECT_EQ(log.without_propensity, 0);
}

TEST_F(LogTrainingTest, IpsIsUnbiasedUnderTheUsersModel) {
  // 4,000 lists of query 0 in random orders, by a position-based user with examination 1, 0.5, 0.25, 0.125.
  const Values attraction = {0.8, 0.6, 0.3, 0.1};
  for (const std::uint64_t seed : {5, 6, 7, 8, 9}) {
    std::string lines;
    RngStream coins(make_key({.seed = seed}), 0);
    constexpr int kLists = 4000;
    for (int i = 0; i < kLists; ++i) {
      std::vector<int> order = {0, 1, 2, 3};
      for (std::uint32_t at = 4; at > 1; --at) std::swap(order[at - 1], order[coins.index(at)]);
      std::vector<int> clicks;
      for (int rank = 0; rank < 4; ++rank)
        clicks.push_back(coins.uniform() < std::pow(0.5, rank) * attraction[order[rank]] ? 1 : 0);
      lines += line_of(0, order, clicks);
    }
    const Values naive = shares(request(lines, LogEstimator::kNaive));
    const Values ips = shares(request(lines, LogEstimator::kIps, FittedModel::kPosition));
    // A share is a mean of clicks over one of examinations. Its standard error is below √(a/(4000 · 0.47)),
    // and that of the ratio of two is below 0.022 here: 4.5 of them are exceeded once in 100,000 seeds.
    for (int doc = 1; doc < 4; ++doc)
      EXPECT_NEAR(ips[doc] / ips[0], attraction[doc] / attraction[0], 0.1) << doc;
    // Clicks as they are know no scale of attraction: 0.47 of it.
    EXPECT_NEAR(naive[0], 0.47 * 0.8, 0.05);
    EXPECT_NEAR(ips[0], 0.8, 0.1);
  }
}

/// 60 queries of eight documents; users trust an order, so that they click at the top what they do not
/// like.
class TrustTest : public LogTrainingTest {
 protected:
  static constexpr int kRanks = 6;

  TrustTest() {
    for (std::int64_t doc = 0; doc < large_.data().docs(); ++doc) {
      const auto row = large_.data().all_rows().doc(doc);
      attraction_.push_back(1.0 / (1.0 + std::exp(1.0 - 1.5 * double{row[0]} + double{row[1]})));
    }
  }

  /// The shown order is nearer to the attraction than chance.
  std::string lists(std::uint64_t seed) const {
    std::string lines;
    RngStream coins(make_key({.seed = seed}), 0);
    for (int i = 0; i < 4000; ++i) {
      const std::uint32_t query = coins.index(60);
      std::vector<std::pair<double, int>> order;
      for (int doc = 0; doc < 8; ++doc)
        order.emplace_back(-attraction_[8 * query + doc] - coins.uniform(), doc);
      std::ranges::sort(order);
      std::vector<int> shown;
      std::vector<int> clicks;
      for (int rank = 0; rank < kRanks; ++rank) {
        shown.push_back(order[rank].second);
        const double attracts = attraction_[8 * query + shown.back()];
        const double trust = 0.7 / (rank + 1);
        clicks.push_back(coins.uniform() * (rank + 1) < attracts + (1.0 - attracts) * trust ? 1 : 0);
      }
      lines += line_of(query, shown, clicks);
    }
    return lines;
  }

  /// The share of pairs of a query's documents that two sets of values order alike.
  double agreement(const Values& shares) const {
    double alike = 0.0;
    double pairs = 0.0;
    for (std::size_t a = 0; a < shares.size(); ++a) {
      for (std::size_t b = a - a % 8; b < a; ++b) {
        if (std::fabs(attraction_[a] - attraction_[b]) < 0.05) continue;
        alike += (shares[a] - shares[b]) * (attraction_[a] - attraction_[b]) > 0.0 ? 1.0 : 0.0;
        pairs += 1.0;
      }
    }
    return alike / pairs;
  }

  LabelledWorld large_{3, 60, 8, 3};
  Values attraction_;
};

TEST_F(TrustTest, TheCorrectionOfTrustBeatsThatOfPositionsAlone) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    const std::string lines = lists(seed);
    for (const LogEstimator estimator : {LogEstimator::kIps, LogEstimator::kDr}) {
      const auto found = [&](FittedModel model) {
        const LogTrainingRequest wanted = request(lines, estimator, model);
        const LogLists log = read_log_lists(wanted, large_.data(), false);
        const ClickTargets made = click_targets(wanted, log, large_.data(), adam(), {1, 1, 0}, 1);
        return agreement({made.shares().begin(), made.shares().end()});
      };
      EXPECT_GT(found(FittedModel::kTrust), found(FittedModel::kPosition)) << seed << name_of(estimator);
    }
  }
}

TEST_F(LogTrainingTest, ThreadsChangeNoBitOfARegression) {
  const LogTrainingRequest dr = request(kLists, LogEstimator::kDr);
  EXPECT_EQ(shares(dr, 1), shares(dr, 3));
}

TEST_F(LogTrainingTest, SaysWhatALogLacks) {
  const LogTrainingRequest fixed = request(
      R"({"qid": "0", "shown": [0, 1], "clicks": [0, 1]}
{"qid": "1", "shown": [0, 1], "clicks": [1, 0]}
)",
      LogEstimator::kIps, FittedModel::kPosition);
  const auto says = [&](const LogTrainingRequest& request, const std::string& words) {
    const std::string message = message_of([&] { shares(request); });
    EXPECT_TRUE(contains(message, words));
  };
  says(fixed, "was shown at two ranks, so that --click-model pbm cannot tell how often a rank is seen: ");
  const auto of = [&](const std::string& line, LogEstimator estimator) {
    return request("{\"qid\": " + line + "}\n", estimator);
  };
  says(of(R"("0", "shown": [0], "clicks": [0])", LogEstimator::kNaive), "1 list without a click");
  says(of(R"("0", "shown": [0], "clicks": [1])", LogEstimator::kIps), "has a single list");
  says(of(R"("9", "shown": [0], "clicks": [1])", LogEstimator::kIps), "The data has no query '9'.");
  says(of(R"("0", "shown": [1, 1], "clicks": [1, 0])", LogEstimator::kIps), "Document '1' is shown twice.");
  EXPECT_TRUE(
      contains(message_of([&] {
                 ExecutionContext context(1);
                 fold_of_log(fixed.log, context);
               }),
               "The list has no inputs of documents: give the data that the log refers to by --data."));
}

TEST_F(LogTrainingTest, TheLogOfAServiceHasItsDocumentsAndSaysHowTheyAreNormalised) {
  FeedbackRecord record;
  record.query = "q";
  record.docs = {{"a", false}, {"7", true}, {"unshown", false}};
  record.has_unshown = true;
  record.clicks = {0, 1};
  record.columns = 2;
  record.inputs = {0, 1, 2, 3, 4, 5};
  record.feature_names = R"(["age","price"])";
  std::string lines = record_line(1, record_body(record));
  std::swap(record.docs[0], record.docs[1]);
  record.inputs = {6, 6, 6, 6, 6, 6};  // the first ones count
  lines += record_line(2, record_body(record));
  const std::string log = log_of(lines);
  FittedNormaliser normaliser;
  normaliser.kind = Normalisation::kQueryMinmax;
  normaliser.features = 3;
  normaliser.kept = {0, 2};
  std::ofstream(folder_ / "service.toml")
      << "[service]\nnormalisation = '" << normaliser_text(normaliser) << "'\n";
  ExecutionContext context(1);
  const LogFold loaded = fold_of_log(log, context);
  const Dataset& train = loaded.fold.train;
  EXPECT_EQ(loaded.feature_names, R"(["age","price"])");
  EXPECT_EQ(loaded.fold.normaliser.features, 3);
  ASSERT_EQ(train.docs(), 3);
  const auto values = train.contents().values;
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  const auto grades = train.all_grades();
  EXPECT_EQ(std::vector<int>(grades.begin(), grades.end()), (std::vector<int>{1, 1, 0}));
  LogTrainingRequest naive{log, LogEstimator::kNaive};
  const LogLists lists = read_log_lists(naive, train, true);
  EXPECT_EQ(lists.lists[1].docs[0], 1);
  record.columns = 3;
  record.inputs.resize(9);
  log_of(lines + record_line(3, record_body(record)));
  EXPECT_TRUE(
      contains(message_of([&] { fold_of_log(log, context); }), ":3:1: The documents have other features"));
}

TEST(ClickTargets, ATrainingThatGoesOnAndOtherThreadsHaveTheSameBits) {
  const LabelledWorld world(9, 40, 5, 3);
  std::vector<ClickCell> cells;
  for (std::int64_t doc = 0; doc < world.data().docs(); ++doc)
    cells.push_back({doc, static_cast<std::int32_t>(doc % 4), 10.0, static_cast<double>(doc * 7 % 10)});
  for (const bool is_mixture : {false, true}) {
    const auto made = [&] {
      return is_mixture ? ClickTargets::mixture(cells, world.data().docs())
                        : ClickTargets::towers(cells, world.data().docs());
    };
    const auto training = [&](ClickTargets& targets, int threads) {
      return std::make_unique<LabelTraining>(adam(), LabelData{world.data(), nullptr, 1, &targets},
                                             TrialKeys{1, 1, 0}, std::vector<float>(), threads);
    };
    ClickTargets first = made();
    ClickTargets second = made();
    const auto whole = training(first, 1);
    for (int pass = 0; pass < 3; ++pass) whole->advance();
    const auto resumed = training(second, 3);
    load_state(*resumed, state_of(*whole));
    for (int pass = 0; pass < 4; ++pass) {
      whole->advance();
      resumed->advance();
    }
    EXPECT_TRUE(std::ranges::equal(whole->theta(), resumed->theta()));
    EXPECT_TRUE(std::ranges::equal(first.examination(), second.examination()));
  }
}

TEST(ClickTargets, SharesHaveTheLossOfASoftmax) {
  const ClickTargets targets = ClickTargets::shares({0.5, 2.0, 0.0});
  const std::vector<float> scores = {0.3F, -1.0F, 2.0F};
  Values slopes(3);
  const double loss = targets.loss(0, scores, slopes);
  const double sum =
      std::exp(double{scores[0]}) + std::exp(double{scores[1]}) + std::exp(double{scores[2]});
  EXPECT_NEAR(loss, 0.5 * (std::log(sum) - double{scores[0]}) + 2.0 * (std::log(sum) - double{scores[1]}),
              1e-12);
  for (int doc = 0; doc < 3; ++doc)
    EXPECT_NEAR(slopes[doc], 2.5 * std::exp(double{scores[doc]}) / sum - (Values{0.5, 2.0, 0.0})[doc],
                1e-12);
}

TEST(ClickTargets, SlopesOfTowersAreThoseOfTheirLoss) {
  const ClickTargets targets = ClickTargets::towers({{0, 0, 5, 2}, {0, 1, 4, 1}, {1, 1, 6, 3}}, 2);
  Values slopes(2);
  std::vector<float> scores = {0.25F, -0.5F};
  targets.loss(0, scores, slopes);
  for (int doc = 0; doc < 2; ++doc) {
    constexpr float kStep = 1.0F / 1024;
    Values ignored(2);
    std::vector<float> more = scores;
    std::vector<float> less = scores;
    more[doc] += kStep;
    less[doc] -= kStep;
    // The difference quotient of a logistic loss of weight 5 is off by at most 5 · 0.1 · step²/6.
    EXPECT_NEAR(slopes[doc],
                (targets.loss(0, more, ignored) - targets.loss(0, less, ignored)) / (2.0 * kStep), 1e-6);
  }
}

TEST(ClickTargets, BiasesOfTowersReproduceTheClicksOfEachRank) {
  ClickTargets targets = ClickTargets::towers({{0, 0, 50, 20}, {0, 1, 40, 10}, {1, 1, 60, 30}}, 2);
  const std::vector<float> scores = {0.7F, -0.3F};
  targets.revise(scores);
  EXPECT_NEAR(targets.probability(double{scores[0]}, 0), 0.4, 1e-5);
  EXPECT_NEAR(
      40 * targets.probability(double{scores[0]}, 1) + 60 * targets.probability(double{scores[1]}, 1), 40,
      1e-3);
}

TEST(ClickTargets, ExpectationMaximisationStaysAtTheTruth) {
  // P(click) = θ_r γ_d with θ = (1, 0.5, 0.2) and γ = (0.8, 0.4): clicks as they are expected.
  const Values theta = {1.0, 0.5, 0.2};
  const Values gamma = {0.8, 0.4};
  std::vector<ClickCell> cells;
  for (std::int64_t doc = 0; doc < 2; ++doc) {
    for (std::int32_t rank = 0; rank < 3; ++rank)
      cells.push_back({doc, rank, 100.0, 100.0 * theta[rank] * gamma[doc]});
  }
  ClickTargets targets = ClickTargets::mixture(cells, 2);
  // A model that has a score for each document takes the M step in closed form: σ(s) = yes/shown.
  std::vector<float> scores = {0.0F, 0.0F};
  Values slopes(2);
  for (int step = 0; step < 3000; ++step) {
    targets.revise(scores);
    for (int newton = 0; newton < 3; ++newton) {
      targets.loss(0, scores, slopes);
      for (int doc = 0; doc < 2; ++doc) {
        const double p = targets.probability(double{scores[doc]});
        scores[doc] -= static_cast<float>(slopes[doc] / (p * (1.0 - p)));
      }
    }
  }
  for (int rank = 0; rank < 3; ++rank) EXPECT_NEAR(targets.examination()[rank], theta[rank], 1e-4) << rank;
  for (int doc = 0; doc < 2; ++doc)
    EXPECT_NEAR(targets.probability(double{scores[doc]}), gamma[doc], 1e-4) << doc;
}

TEST(ClickTargets, TheModelOfTowersForgetsThePosition) {
  // The better of two documents was always second. A linear model of one feature learns that it is better.
  const LabelledWorld world(7, 30, 2, 2);
  std::vector<ClickCell> cells;
  for (std::int64_t doc = 0; doc < world.data().docs(); ++doc) {
    const double relevance = 1.0 / (1.0 + std::exp(-2.0 * double{world.data().all_rows().doc(doc)[0]}));
    const std::int32_t rank = doc % 3 == 0 ? 0 : 1;
    cells.push_back({doc, rank, 100.0, 100.0 * relevance * (rank == 0 ? 1.0 : 0.2)});
  }
  for (const bool is_mixture : {false, true}) {
    ClickTargets targets = is_mixture ? ClickTargets::mixture(cells, world.data().docs())
                                      : ClickTargets::towers(cells, world.data().docs());
    LabelSettings settings = adam();
    settings.epochs = 600;  // of one step
    LabelTraining training(settings, {world.data(), nullptr, 1, &targets}, {1, 1, 0}, {}, 2);
    while (!training.finished()) training.advance();
    EXPECT_GT(training.theta()[0], 4.0F * std::abs(training.theta()[1]));
  }
}

}  // namespace
}  // namespace olrank
