// The methods of the literature that follow a gradient or try neighbours of θ, on networks.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "models/neural/ranker_network.h"
#include "models/skeleton/network_settings.h"
#include "tests/models/neural/plain_training.h"
#include "tests/models/neural/recorded_rounds.h"

namespace olrank {
namespace {

constexpr std::int64_t kFeatures = 5;

NetworkSettings network_of(Parameterisation parameterisation, std::int64_t depth) {
  NetworkSettings settings;
  settings.network = NetworkForm::kMlp;
  settings.width = 8;
  settings.depth = depth;
  settings.parameterisation = parameterisation;
  return settings;
}

struct FormOfNetwork {
  RankerKind kind;
  Parameterisation parameterisation;
  std::string name;
};

class NetworkFormsTest : public testing::TestWithParam<FormOfNetwork> {};

/// A tiny world that a linear function separates, and a user who clicks on what is relevant.
TEST_P(NetworkFormsTest, LearnsSeparableData) {
  const auto& [kind, parameterisation, name] = GetParam();
  const SmallWorld world(94, 6, 12, kFeatures);
  RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kReference);
  settings.name = name;
  settings.network = network_of(parameterisation, 2);
  // A step in some 50 parameters goes in another direction than any other: dueling takes larger ones.
  if (kind == RankerKind::kDbgd || kind == RankerKind::kMgd) settings.trainer.learning_rate = 0.1;
  const auto ranker = make_neural(settings, kFeatures);
  const NetworkShape shape = network_shape(settings.network, kFeatures);
  EXPECT_EQ(ranker->parameters(), shape.parameters());
  // It starts where the other rankers of this shape start.
  EXPECT_EQ(flat_theta(*ranker),
            first_parameters(settings.network, shape, test_keys().key(Purpose::kInitialisation)));
  const double untrained = world.ndcg(*ranker, 10);
  TestContext context;
  for (std::uint32_t round = 1; round <= 1500; ++round) {
    const QueryDocs query = world.query_of(round);
    const auto docs = ranker->rank(context.round, query, round).docs;
    const std::vector<std::int32_t> shown(docs.begin(), docs.begin() + 10);
    ranker->learn(context.round, {round, query, shown, world.perfect_clicks(query.query, shown)});
  }
  const double trained = world.ndcg(*ranker, 10);
  // A third of the documents is relevant: a random order has an NDCG of about a half.
  EXPECT_GT(trained, 0.85) << "from " << untrained;
  EXPECT_GT(trained, untrained + 0.05);

  const ModelTensors model = ranker->model();
  std::vector<std::string> names;
  for (const auto& tensor : model.tensors) names.push_back(tensor.name);
  if (parameterisation == Parameterisation::kNtk) {
    EXPECT_EQ(names, (std::vector<std::string>{"layers.0.weight", "layers.1.weight"}));
  } else {
    EXPECT_EQ(names, (std::vector<std::string>{"layers.0.weight", "layers.0.bias", "layers.1.weight",
                                               "layers.1.bias"}));
  }
  EXPECT_EQ(model.tensors.front().shape, (std::vector<std::int64_t>{8, kFeatures}));
  const std::vector<float> theta = flat_theta(*ranker);
  std::vector<float> scores(12);
  ranker->score(context.execution, world.query(3).features, scores);
  for (std::int64_t doc = 0; doc < 12; ++doc) {
    const SlowScore slow = slow_score(shape, theta, world.query(3).features.doc(doc).data());
    EXPECT_NEAR(scores[doc], slow.score, 1e-5 * (1.0 + slow.magnitude));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, NetworkFormsTest,
    testing::Values(FormOfNetwork{RankerKind::kPdgd, Parameterisation::kStandard, "pdgd_standard"},
                    FormOfNetwork{RankerKind::kPdgd, Parameterisation::kNtk, "pdgd_ntk"},
                    FormOfNetwork{RankerKind::kDbgd, Parameterisation::kStandard, "dbgd_standard"},
                    FormOfNetwork{RankerKind::kMgd, Parameterisation::kStandard, "mgd_standard"},
                    FormOfNetwork{RankerKind::kMgd, Parameterisation::kNtk, "mgd_ntk"},
                    FormOfNetwork{RankerKind::kRankNet, Parameterisation::kStandard, "ranknet_standard"},
                    FormOfNetwork{RankerKind::kRankNet, Parameterisation::kNtk, "ranknet_ntk"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace olrank
