#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/data/doc_table.h"
#include "core/error.h"
#include "core/feedback/preference_pairs.h"
#include "core/settings/schema.h"
#include "models/files/model_scorer.h"
#include "models/labels/label_training.h"
#include "models/linear/linear_belief.h"
#include "models/neural/ranker_network.h"
#include "models/ranker_factory.h"
#include "tests/core/data/letor_support.h"
#include "tests/core/ops/network_fixture.h"
#include "tests/models/small_world.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

constexpr std::int64_t kColumns = 300;

/// Holds the same queries with their zeros and without.
struct BothLayouts {
  Dataset dense;
  Dataset sparse;
};

Dataset few_of_many(int queries) {
  RngStream rng(test_key(3), 0);
  std::string text = fmt::format("0 qid:0 {}:1\n", kColumns);
  for (int query = 0; query < queries; ++query) {
    for (std::uint32_t doc = 0, docs = 2 + rng.index(9); doc < docs; ++doc) {
      text += fmt::format("{} qid:{}", rng.index(3), query);
      for (std::uint32_t column = 1 + rng.index(30); column < kColumns; column += 1 + rng.index(60))
        text += fmt::format(" {}:{}", column, rng.uniform());
      text += '\n';
    }
  }
  return read_text(text, {.layout = FeatureLayout::kDense});
}

const BothLayouts& layouts() {
  static const BothLayouts both = [] {
    ThreadPool pool(1);
    Dataset dense = few_of_many(40);
    Dataset sparse = as_sparse(dense, pool);
    return BothLayouts{std::move(dense), std::move(sparse)};
  }();
  return both;
}

TEST(SparseDocsTest, LinearScoresAndGradientsHaveTheSameBits) {
  const LinearModel model(kColumns);
  const std::vector<float> theta = random_numbers(kColumns, 5);
  const auto results = [&](const Dataset& data) {
    ExecutionContext context(2);
    std::vector<float> scores(data.docs());
    std::vector<double> gradient(kColumns);
    model.score(context, theta, data.all_rows(), scores);
    model.add_gradient(context, theta, data.all_rows(), random_doubles(data.docs(), 4), gradient);
    gradient.insert(gradient.end(), scores.begin(), scores.end());
    return gradient;
  };
  EXPECT_EQ(results(layouts().sparse), results(layouts().dense));
}

/// Dense layers sum 300 products in float32, in another order: errors stay below 300 · 2⁻²⁴ of the sums of
/// their sizes, which are a few times the largest result here.
constexpr double kOrderOfSums = 300.0 / (1 << 24);

void expect_near(const std::vector<double>& found, const std::vector<double>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  double largest = 0.0;
  for (const double value : wanted) largest = std::max(largest, std::abs(value));
  ASSERT_GT(largest, 0.0);
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(std::abs(found[i] - wanted[i]) <= 4.0 * kOrderOfSums * largest) << i;
}

TEST(SparseDocsTest, NetworksHaveTheScoresAndGradientsOfDenseOnes) {
  for (const std::int64_t depth : {2, 3}) {
    for (const Parameterisation form : {Parameterisation::kStandard, Parameterisation::kNtk}) {
      NetworkSettings settings;
      settings.width = 6;
      settings.depth = depth;
      settings.parameterisation = form;
      const NetworkModel model(settings, kColumns);
      const std::vector<float> theta = random_theta(model.shape(), 6);
      const auto scores = [&](const Dataset& data) {
        ExecutionContext context(2);
        std::vector<float> of_docs(data.docs());
        model.score(context, theta, data.all_rows(), of_docs);
        return std::vector<double>(of_docs.begin(), of_docs.end());
      };
      expect_near(scores(layouts().sparse), scores(layouts().dense));
      const auto gradient = [&](const Dataset& data, bool added) {
        ExecutionContext context(2);
        const std::vector<double> weights = random_doubles(data.docs(), 4);
        std::vector<double> sum(model.parameters(), added ? 0.0 : 7.0);
        if (added) {
          model.add_gradient(context, theta, data.all_rows(), weights, sum);
        } else {
          model.find_score_gradient(
              context, theta, data.all_rows(),
              [&](std::span<const float>, std::span<double> slopes) {
                std::copy(weights.begin(), weights.end(), slopes.begin());
              },
              sum);
        }
        return sum;
      };
      for (const bool added : {true, false})
        expect_near(gradient(layouts().sparse, added), gradient(layouts().dense, added));
    }
  }
}

TEST(SparseDocsTest, ASymmetricNetworkScoresZeroAtItsStart) {
  NetworkSettings settings;
  settings.width = 6;
  settings.parameterisation = Parameterisation::kNtk;
  const NetworkModel model(settings, kColumns);
  ExecutionContext context;
  std::vector<float> scores(layouts().sparse.docs(), 1.0F);
  model.score(context, model.first_parameters(test_key(8)), layouts().sparse.all_rows(), scores);
  EXPECT_EQ(scores, std::vector<float>(scores.size(), 0.0F));
}

std::vector<float> trained_on(const LabelSettings& settings, const Dataset& data, int threads = 1) {
  LabelTraining training(settings, {data, &data, 4}, TrialKeys{1, 1, 0}, {}, threads);
  training.evaluate_first();
  for (int pass = 0; pass < 4; ++pass) training.advance();
  return {training.theta().begin(), training.theta().end()};
}

TEST(SparseDocsTest, NetworksAreTrainedAsOnDenseOnes) {
  LabelSettings settings;
  settings.network.network = NetworkForm::kMlp;
  settings.network.width = 6;
  settings.batch = 8;
  settings.learning_rate = 1e-3;
  const std::vector<float> sparse = trained_on(settings, layouts().sparse);
  const std::vector<float> dense = trained_on(settings, layouts().dense);
  EXPECT_EQ(trained_on(settings, layouts().sparse, 3), sparse);
  // Adam divides by a gradient's own size, so that rounding may turn a step of a gradient near 0: 20 steps
  // of 10⁻³ each way. The mean shows whether the two learn the same.
  double difference = 0.0;
  for (std::size_t i = 0; i < dense.size(); ++i) difference += std::abs(sparse[i] - dense[i]);
  EXPECT_LT(difference / static_cast<double>(dense.size()), 1e-5);
}

TEST(SparseDocsTest, WhatNeedsZerosIsRefused) {
  LabelSettings settings;
  settings.network.network = NetworkForm::kModule;
  EXPECT_TRUE(contains(message_of<InvalidArgument>([&] { trained_on(settings, layouts().sparse); }),
                       "A LibTorch module needs dense features, and the data are sparse"));
  const LabelData data{layouts().sparse, nullptr, 4};
  EXPECT_TRUE(contains(message_of<InvalidArgument>([&] {
                         LabelTraining(LabelSettings(), data, TrialKeys{}, {}, 1, LabelDevice());
                       }),
                       "A GPU needs dense features, and the data are sparse"));
}

/// Rounds of a ranker on one of the layouts, with clicks on what is relevant.
std::vector<float> learned_on(RankerKind kind, const Dataset& data) {
  RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kReference);
  settings.network.network = NetworkForm::kLinear;
  settings.trainer.learning_rate = 0.05;
  const LabelledQueries labels(data);
  const auto ranker = make_ranker(settings, kColumns, TrialKeys::of(2, 1, "sparse"), 5,
                                  {.labels = &labels, .sparse = data.is_sparse()});
  TestContext context;
  for (std::uint32_t round = 1; round <= 30; ++round) {
    const std::int64_t number = round % data.queries();
    const QueryDocs query{number, data.offset(number), data.rows_of(number)};
    play_list(*ranker, context.round, query, round, 5, [&](const ShownDocs& shown) {
      return clicks_where(shown, [&](std::int32_t doc) { return data.grades_of(number)[doc] > 0; });
    });
  }
  return ranker->model().tensors.front().values;
}

TEST(SparseDocsTest, OnlineRankersLearnTheSameBits) {
  for (const auto& [kind, name] : EnumNames<RankerKind>::values) {
    if (row_of(kind).takes_sparse) {
      const std::vector<float> theta = learned_on(kind, layouts().sparse);
      EXPECT_EQ(theta, learned_on(kind, layouts().dense)) << name;
      EXPECT_NE(theta, std::vector<float>(theta.size(), 0.0F)) << name;
      continue;
    }
    const RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kReference);
    const std::string said = message_of<InvalidArgument>(
        [&] { make_ranker(settings, kColumns, TrialKeys{}, 5, {.sparse = true}); });
    EXPECT_TRUE(contains(said, "needs dense features, and the data are sparse: choose ranknet, "));
  }
}

TEST(SparseDocsTest, ModelFilesScoreBothLayouts) {
  LoadedModel model;
  model.shape = linear_shape(kColumns - 1);
  model.members = {random_numbers(kColumns - 1, 9)};
  model.normaliser.features = kColumns;
  for (std::int64_t column = 1; column < kColumns; ++column) model.normaliser.kept.push_back(column);
  ExecutionContext context(2);
  const auto scores = [&](const Dataset& data) { return scores_of_all(ModelScorer(model), data, context); };
  for (const Normalisation kind :
       {Normalisation::kNone, Normalisation::kQueryMinmax, Normalisation::kZscore}) {
    model.normaliser.kind = kind;
    model.normaliser.means.assign(kColumns, 0.25);
    model.normaliser.scales.assign(kColumns, 2.0);
    EXPECT_EQ(scores(layouts().sparse), scores(layouts().dense));
  }
  model.settings.network = NetworkForm::kMlp;
  model.shape = ntk_shape(kColumns - 1, 6, 3);
  model.members = {random_theta(model.shape, 10), random_theta(model.shape, 11)};
  model.normaliser.kind = Normalisation::kQueryMinmax;
  const std::vector<double> dense = scores(layouts().dense);
  const std::vector<double> sparse = scores(layouts().sparse);
  for (std::size_t doc = 0; doc < dense.size(); ++doc)
    EXPECT_TRUE(std::abs(sparse[doc] - dense[doc]) <= 1e-12 * (1.0 + std::abs(dense[doc])));
}

}  // namespace
}  // namespace olrank
