#include "models/files/model_scorer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/error.h"
#include "tests/core/data/letor_support.h"
#include "tests/core/ops/network_fixture.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

LoadedModel ensemble(std::int64_t features, int members) {
  LoadedModel model;
  model.settings.network = NetworkForm::kMlp;
  model.shape = ntk_shape(features, 6, 3);
  for (int member = 0; member < members; ++member)
    model.members.push_back(random_theta(model.shape, 10 + static_cast<std::uint64_t>(member)));
  model.normaliser.kind = Normalisation::kQueryMinmax;
  model.normaliser.features = features;
  return model;
}

/// Queries of 1 to 40 documents with four features.
Dataset random_queries(int queries) {
  std::string text;
  RngStream rng(test_key(9), 0);
  for (int query = 0; query < queries; ++query) {
    const std::uint32_t docs = 1 + rng.index(40);
    for (std::uint32_t doc = 0; doc < docs; ++doc)
      text += "0 qid:" + std::to_string(query) + " 1:" + std::to_string(rng.normal()) +
              " 2:" + std::to_string(rng.uniform()) + " 3:" + std::to_string(doc) + " 4:1\n";
  }
  return read_text(text);
}

TEST(ModelScorer, NormalisesByQueryAndTakesTheMean) {
  const Dataset data = random_queries(90);
  for (const int members : {1, 3}) {
    const ModelScorer scorer(ensemble(4, members));
    ExecutionContext one;
    ExecutionContext two(2);
    const std::vector<double> scores = scores_of_all(scorer, data, one);
    EXPECT_EQ(scores_of_all(scorer, data, two), scores);
    const Dataset inputs = scorer.model().normaliser.apply(data, one);
    for (std::int64_t doc = 0; doc < data.docs(); ++doc) {
      double mean = 0.0;
      for (const auto& theta : scorer.model().members)
        mean +=
            slow_score(scorer.model().shape, theta, inputs.all_features().doc(doc).data()).score / members;
      EXPECT_NEAR(scores[doc], mean, 1e-12 * std::max(1.0, std::abs(mean)));
    }
  }
}

/// score = Σ_j w_j x_j + Σ_{k=2..4} Σ_j c_{k,j} cos(πkx_j), x = (z − low) / (high − low) within the query.
double slow_additive_score(const std::vector<float>& theta, const Dataset& z, std::int64_t query,
                           std::int64_t doc) {
  const std::int64_t columns = z.features();
  double score = 0.0;
  for (std::int64_t j = 0; j < columns; ++j) {
    const auto value = [&](std::int64_t of) { return double{z.all_features().doc(of)[j]}; };
    double low = value(doc);
    double high = value(doc);
    for (std::int64_t other = z.offset(query); other < z.offset(query + 1); ++other) {
      low = std::min(low, value(other));
      high = std::max(high, value(other));
    }
    const double x = high > low ? (value(doc) - low) / (high - low) : 0.0;
    score += theta[j] * x;
    for (int k = 2; k <= 4; ++k) score += theta[(k - 1) * columns + j] * std::cos(std::numbers::pi * k * x);
  }
  return score;
}

TEST(ModelScorer, ScoresAdditiveModels) {
  const Dataset data = random_queries(40);
  ExecutionContext context(2);
  for (const bool drop_constant : {false, true}) {
    for (const Normalisation kind :
         {Normalisation::kNone, Normalisation::kQueryMinmax, Normalisation::kZscore}) {
      LoadedModel model;
      model.settings.network = NetworkForm::kLinear;
      model.normaliser = fit_normaliser(kind, data, drop_constant, context);
      const Dataset z = model.normaliser.apply(data, context);
      model.normaliser.cosines = 3;
      model.shape = linear_shape(4 * z.features());
      model.members.push_back(random_theta(model.shape, 10));
      const std::vector<float> theta = model.members.front();
      const std::vector<double> scores = scores_of_all(ModelScorer(std::move(model)), data, context);
      // x and its cosines are rounded to floats: together at most (4π + 1) 2⁻²⁵ for each weight.
      double tolerance = 1e-12;
      for (const float weight : theta) tolerance += 13.6 * 0x1p-25 * std::abs(weight);
      for (std::int64_t query = 0; query < data.queries(); ++query) {
        for (std::int64_t doc = data.offset(query); doc < data.offset(query + 1); ++doc)
          ASSERT_NEAR(scores[doc], slow_additive_score(theta, z, query, doc), tolerance) << name_of(kind);
      }
    }
  }
}

TEST(ModelScorer, RangesCoverTheQueriesInOrder) {
  const Dataset data = random_queries(90);
  for (const std::int64_t docs : {1, 100, 1000000}) {
    std::int64_t next = 0;
    for (const QueryRange range : query_ranges(data, docs)) {
      EXPECT_EQ(range.begin, next);
      EXPECT_GT(range.end, range.begin);
      next = range.end;
      if (next < data.queries()) {
        EXPECT_GE(data.offset(range.end) - data.offset(range.begin), docs);
      }
    }
    EXPECT_EQ(next, data.queries());
  }
}

TEST(ModelScorer, FitsDataToTheModel) {
  ExecutionContext context;
  const Dataset data = random_queries(3);
  EXPECT_EQ(fitted_to_model(data, ensemble(4, 1), "here", context).features(), 4);
  const Dataset wide = fitted_to_model(data, ensemble(6, 1), "here", context);
  EXPECT_EQ(wide.features(), 6);
  EXPECT_EQ(wide.all_features().doc(1)[5], 0.0F);
  EXPECT_EQ(message_of<DataError>([&] { fitted_to_model(data, ensemble(2, 1), "here", context); }),
            "here: The data has 4 features, but the model was trained on 2: remove the others.");
}

}  // namespace
}  // namespace olrank
