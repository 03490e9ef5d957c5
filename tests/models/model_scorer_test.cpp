#include "models/model_scorer.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/core/data/letor_support.h"
#include "tests/core/ops/network_fixture.h"

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
  try {
    fitted_to_model(data, ensemble(2, 1), "here", context);
    FAIL() << "took data wider than the model";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "here: The data has 4 features, but the model was trained on 2: remove the others.");
  }
}

}  // namespace
}  // namespace olrank
