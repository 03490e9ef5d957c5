#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "models/modules/built_in_modules.h"
#include "models/neural/document_history.h"
#include "models/neural/training_sample.h"
#include "models/ranker_memory.h"
#include "tests/models/modules/module_fixture.h"
#include "tests/models/neural/recorded_rounds.h"
#include "tests/support/saved_state.h"

// Training of modules whose scores depend on the other documents of a list.

namespace olrank {
namespace {

constexpr std::int64_t kListFeatures = 6;

ModuleRequest attention_request() {
  return {.module = "attention", .features = kListFeatures, .width = 8, .activation = Activation::kSilu};
}

/// The documents of a query, with their numbers.
struct ListOfDocs {
  ListOfDocs(std::int64_t query, std::vector<std::int64_t> doc_numbers)
      : number(query), numbers(std::move(doc_numbers)) {
    // A number always stands for the same features.
    for (const std::int64_t doc : numbers) {
      const auto x = module_docs(1, kListFeatures, static_cast<std::uint64_t>(1000 + doc));
      values.insert(values.end(), x.begin(), x.end());
    }
  }
  QueryDocs query() const {
    return {number, 0, {values.data(), std::ssize(numbers), kListFeatures}, numbers};
  }

  std::int64_t number;
  std::vector<std::int64_t> numbers;
  std::vector<float> values;
};

/// Shows all documents in order; `pairs` are what follows from clicks.
void add_pairs(DocumentHistory& history, const ListOfDocs& list, const std::vector<PreferencePair>& pairs) {
  std::vector<std::int32_t> shown(list.numbers.size());
  std::iota(shown.begin(), shown.end(), 0);
  std::vector<std::uint8_t> clicks(shown.size(), 0);
  clicks.front() = 1;
  history.add({1, list.query(), shown, clicks}, pairs);
}

/// Three lists; documents 3 and 4 are in two of them.
std::vector<ListOfDocs> three_lists() {
  return {{0, {0, 1, 2, 3, 4}}, {1, {5, 6, 7, 8}}, {2, {9, 3, 10, 4, 11, 12}}};
}

std::vector<PreferencePair> pairs_of_list(std::size_t list) {
  if (list == 0) return {{0, 1}, {3, 4}, {0, 1}};
  if (list == 1) return {{2, 0}, {1, 3}};
  return {{1, 3}, {5, 0}, {3, 2}};
}

DocumentHistory history_of_lists() {
  return {kListFeatures, HistoryContent{.counts = true, .whole_lists = true}};
}

class ListTrainingTest : public testing::Test {
 protected:
  std::unique_ptr<ModuleModel> model_ = open_module(attention_request());
  std::vector<float> theta_ = moved_parameters(*model_, 3);
};

TEST_F(ListTrainingTest, GradientOfAHistoryIsTheSumOverItsLists) {
  DocumentHistory history = history_of_lists();
  const std::vector<ListOfDocs> lists = three_lists();
  double expected_loss = 0.0;
  Eigen::VectorXd expected = Eigen::VectorXd::Zero(model_->parameters());
  for (std::size_t list = 0; list < lists.size(); ++list) {
    const auto pairs = pairs_of_list(list);
    add_pairs(history, lists[list], pairs);
    AttentionRanker module(attention_request());
    const AutogradRows alone = autograd_rows(module, theta_, lists[list].values, kListFeatures);
    for (const auto& [winner, loser] : pairs) {
      const double z = alone.scores(winner) - alone.scores(loser);
      expected_loss += std::log1p(std::exp(-z));
      expected -= (alone.rows.row(winner) - alone.rows.row(loser)).transpose() / (1.0 + std::exp(z));
    }
  }
  const std::vector<std::int64_t> ends = {5, 9, 15};
  EXPECT_TRUE(std::equal(ends.begin(), ends.end(), history.list_ends().begin(), history.list_ends().end()));

  ExecutionContext context;
  std::vector<double> gradient(model_->parameters());
  const double loss =
      model_->find_loss_gradient(context, theta_, history.features(), history.terms(), {}, gradient);
  EXPECT_NEAR(loss, expected_loss, 1e-5 * expected_loss);
  EXPECT_NEAR(model_->find_loss(context, theta_, history.features(), history.terms(), {}), expected_loss,
              1e-5 * expected_loss);
  const double largest = expected.cwiseAbs().maxCoeff();
  for (std::int64_t k = 0; k < model_->parameters(); ++k)
    ASSERT_NEAR(gradient[k], expected(k), 1e-5 * largest) << k;
}

TEST_F(ListTrainingTest, ADocumentOfTwoListsHasTwoScores) {
  DocumentHistory history = history_of_lists();
  const std::vector<ListOfDocs> lists = three_lists();
  for (std::size_t list = 0; list < lists.size(); ++list)
    add_pairs(history, lists[list], pairs_of_list(list));
  ExecutionContext context(2);
  std::vector<float> scores(history.docs());
  model_->score(context, theta_, history.features(), scores);
  std::size_t row = 0;
  std::map<std::int64_t, std::vector<float>> by_number;
  for (const ListOfDocs& list : lists) {
    std::vector<float> alone(list.numbers.size());
    model_->score(context, theta_, list.query().features, alone);
    for (std::size_t doc = 0; doc < alone.size(); ++doc, ++row) {
      EXPECT_EQ(scores[row], alone[doc]);
      EXPECT_EQ(history.doc_numbers()[row], list.numbers[doc]);
      by_number[list.numbers[doc]].push_back(alone[doc]);
    }
  }
  for (const std::int64_t shared : {3, 4}) {
    ASSERT_EQ(by_number[shared].size(), 2U);
    EXPECT_GT(std::abs(by_number[shared][0] - by_number[shared][1]), 1e-4F);
  }
}

/// A service logs the documents of a list in the order of the round's ranking.
TEST_F(ListTrainingTest, AListInAnotherOrderIsTheSameList) {
  const ListOfDocs list(0, {20, 21, 22, 23, 24});
  const ListOfDocs turned(0, {23, 20, 24, 22, 21});
  DocumentHistory plain = history_of_lists();
  add_pairs(plain, list, {{0, 3}, {1, 4}, {2, 0}});
  DocumentHistory history = history_of_lists();
  add_pairs(history, list, {{0, 3}});
  add_pairs(history, turned, {{4, 2}, {3, 1}});
  EXPECT_EQ(history.list_ends().size(), 1U);
  EXPECT_EQ(history.docs(), 5);
  ExecutionContext context;
  const auto loss = [&](const DocumentHistory& of) {
    return model_->find_loss(context, theta_, of.features(), of.terms(), {});
  };
  EXPECT_DOUBLE_EQ(loss(history), loss(plain));
  DocumentHistory reversed = history_of_lists();
  add_pairs(reversed, turned, {{1, 0}, {4, 2}, {3, 1}});
  EXPECT_NEAR(loss(reversed), loss(plain), 1e-6 * loss(plain));
}

/// Above a number of documents, graphs do not wait for the weights of scores; the bits are the same.
TEST_F(ListTrainingTest, ManyListsGiveTheSumOfTheirGradients) {
  constexpr std::int64_t kLists = 130;
  constexpr std::int64_t kDocsOfList = 260;
  const std::vector<float> values = module_docs(kLists * kDocsOfList, kListFeatures, 7);
  std::vector<std::int64_t> ends;
  for (std::int64_t list = 1; list <= kLists; ++list) ends.push_back(list * kDocsOfList);
  const FeatureMatrix docs{values.data(), kLists * kDocsOfList, kListFeatures, ends};
  std::vector<double> weights = random_doubles(docs.docs, 8);
  std::fill_n(weights.begin() + 4 * kDocsOfList, kDocsOfList, 0.0);
  ExecutionContext context;
  std::vector<double> whole(model_->parameters());
  model_->add_gradient(context, theta_, docs, weights, whole);
  std::vector<double> sum(model_->parameters());
  const std::vector<double> direction = random_doubles(model_->parameters(), 9);
  std::vector<double> products(docs.docs);
  model_->multiply_gradients(context, theta_, docs, direction, products);
  for (std::int64_t list = 0; list < kLists; ++list) {
    const FeatureMatrix alone = docs.part(docs.list_begin(list), docs.list_end(list));
    const auto of_list = std::span(weights).subspan(docs.list_begin(list), kDocsOfList);
    if (list != 4) model_->add_gradient(context, theta_, alone, of_list, sum);
    std::vector<double> expected(kDocsOfList);
    model_->multiply_gradients(context, theta_, alone, direction, expected);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), products.begin() + docs.list_begin(list)));
  }
  EXPECT_EQ(whole, sum);
}

TEST_F(ListTrainingTest, SamplesBringWholeLists) {
  for (const bool lists : {false, true}) {
    DocumentHistory history(kListFeatures,
                            HistoryContent{.lists = lists, .counts = true, .whole_lists = true});
    for (std::int64_t query = 0; query < 12; ++query) {
      const ListOfDocs list(query, {10 * query, 10 * query + 1, 10 * query + 2, 10 * query + 3});
      add_pairs(history, list, {{0, 2}, {1, 3}});
    }
    ExecutionContext context;
    std::vector<float> scores(history.docs());
    model_->score(context, theta_, history.features(), scores);
    TrainingSample sample;
    for (std::uint32_t round = 1; round <= 20; ++round) {
      sample.draw(history, test_key(10), round, 6);
      // The sample's weights are unbiased, and its scores are those of the history.
      const FeatureMatrix docs = sample.features();
      ASSERT_EQ(docs.list_ends.back(), docs.docs);
      ASSERT_LE(docs.lists(), 7);
      std::vector<float> of_sample(docs.docs);
      model_->score(context, theta_, docs, of_sample);
      for (std::int64_t row = 0; row < docs.docs; ++row)
        ASSERT_EQ(of_sample[row], scores[sample.rows()[row]]);
    }
    // With all pairs it is the history.
    sample.draw(history, test_key(10), 21, 1000);
    EXPECT_EQ(sample.features().docs, history.docs());
    std::vector<double> of_sample(model_->parameters());
    std::vector<double> of_history(model_->parameters());
    const double loss =
        model_->find_loss_gradient(context, theta_, sample.features(), sample.terms(), {}, of_sample);
    EXPECT_NEAR(
        loss,
        model_->find_loss_gradient(context, theta_, history.features(), history.terms(), {}, of_history),
        1e-12 * loss);
    const double largest = Eigen::Map<const Eigen::VectorXd>(of_history.data(), std::ssize(of_history))
                               .lpNorm<Eigen::Infinity>();
    for (std::size_t k = 0; k < of_sample.size(); ++k)
      ASSERT_NEAR(of_sample[k], of_history[k], 1e-9 * largest);
  }
}

}  // namespace
}  // namespace olrank

// Rankers of every kind with a module whose scores depend on the other documents of a list.

namespace olrank {
namespace {

constexpr std::uint32_t kListRounds = 16;

const SmallWorld& world_of_lists() {
  static const SmallWorld made(91, 6, 14, 4);
  return made;
}

RankerSettings list_settings(const std::string& name) {
  RankerSettings settings = settings_named(name);
  settings.network.network = NetworkForm::kModule;
  settings.network.module = "attention";
  settings.network.width = 6;
  settings.trainer.steps = 2;
  settings.posterior.members = 2;
  if (settings.trainer.retrain == Retrain::kGrowth) settings.trainer.replay = 24;
  return settings;
}

class ListRankersTest : public testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<OnlineRanker> make() {
    return make_neural(list_settings(GetParam()), world_of_lists().features());
  }
};

TEST_P(ListRankersTest, ThreadsAndRestartsChangeNoBit) {
  const auto ranker = make();
  EXPECT_TRUE(ranker->learns_from_unshown());
  const std::vector<float> first = flat_theta(*ranker);
  play_course(*ranker, world_of_lists(), 1, kListRounds);
  EXPECT_NE(flat_theta(*ranker), first);
  expect_same_bits(list_settings(GetParam()), world_of_lists(), kListRounds, {9});
}

/// Evaluations score all queries in one call.
TEST_P(ListRankersTest, ScoresOfAllQueriesAreThoseOfEach) {
  const auto ranker = make();
  play_course(*ranker, world_of_lists(), 1, 6);
  const SmallWorld& world = world_of_lists();
  const std::int64_t docs = world.query(0).docs();
  std::vector<std::int64_t> ends;
  for (std::int64_t query = 1; query <= world.queries(); ++query) ends.push_back(query * docs);
  FeatureMatrix all = world.query(0).features;
  all.docs *= world.queries();
  all.list_ends = ends;
  ExecutionContext execution(2);
  std::vector<float> together(all.docs);
  ranker->score(execution, all, together);
  for (std::int64_t query = 0; query < world.queries(); ++query) {
    std::vector<float> alone(docs);
    ranker->score(execution, world.query(query).features, alone);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + query * docs)) << query;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ListRankersTest,
                         testing::Values("dual", "diagonal", "lambdarank", "ensemble", "reference_ensemble",
                                         "growth", "growth_lambdarank", "growth_ensemble", "pdgd",
                                         "dbgd_team_draft", "mgd_probabilistic", "ranknet_greedy"),
                         kOwnName);

/// Lists are kept whole, and pass one by one: what is held grows with their features.
TEST(ListRankersPlanTest, CountsWholeLists) {
  RankerSettings settings = list_settings("none");
  RankerLoad load = {
      .features = 100, .train_docs = 1'000'000, .rounds = 1'000, .cutoff = 10, .most_docs = 40};
  const auto bytes = [&] { return static_cast<double>(memory_of_ranker(settings, load).bytes); };
  const double before = bytes();
  load.most_docs = 80;
  // 1,000 lists with 40 documents more of 100 features and their scores and weights.
  const double more = bytes() - before;
  EXPECT_GE(more, 1'000.0 * 40 * 100 * 4);
  EXPECT_LE(more, 1'000.0 * 40 * 110 * 4 + 1e6);
}

}  // namespace
}  // namespace olrank
