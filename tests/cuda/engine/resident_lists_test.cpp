#include "cuda/engine/device_network.h"

#include <algorithm>
#include <vector>

#include "core/data/query_weights.h"
#include "models/labels/label_training.h"
#include "models/linear/linear_belief.h"
#include "models/neural/ranker_network.h"
#include "tests/core/metrics/small_data.h"
#include "tests/cuda/ops/kernel_test.h"
#include "tests/models/small_world.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

constexpr std::int64_t kListFeatures = 6;
constexpr std::int64_t kRoomForLists = std::int64_t{1} << 30;

OLRANK_KERNEL_TEST_SUITE(ResidentListsTest);

/// Emulated lists where kernels are emulated.
LabelDevice label_device(std::int64_t bytes_for_docs) {
  LabelDevice device;
  device.bytes_for_docs = bytes_for_docs;
  device.make_lists = device::make_lists;
  device.libtorch_number = [](int) { return std::nullopt; };
  return device;
}

DeviceListsSpec lists_spec(const Dataset& data, const NetworkShape& shape, const ListLossForm& form,
                           std::int64_t bytes_for_docs) {
  DeviceListsSpec spec;
  spec.shape = shape;
  spec.form = form;
  spec.docs = &data;
  spec.grades = data.all_grades();
  spec.offsets = data.offsets();
  spec.bytes_for_docs = bytes_for_docs;
  return spec;
}

LabelSettings list_settings(NetworkForm network, ListLoss loss, std::int64_t depth = 2) {
  LabelSettings settings;
  settings.network.network = network;
  settings.network.width = 10;
  settings.network.depth = depth;
  settings.loss = loss;
  settings.batch = 5;
  return settings;
}

/// θ, and the losses of the curve.
struct LabelFit {
  std::vector<float> theta;
  std::vector<double> losses;
  std::vector<double> ndcg;
};

LabelFit fit_labels(const LabelSettings& settings, const LabelData& data,
                    const std::optional<LabelDevice>& device, int passes) {
  LabelTraining training(settings, data, TrialKeys{1, 1, 0}, {}, 1, device);
  LabelFit found;
  found.losses.push_back(*training.evaluate_first().vali_loss);
  for (int pass = 0; pass < passes; ++pass) {
    const LabelTraining::Point point = training.advance();
    found.losses.insert(found.losses.end(), {*point.loss, *point.vali_loss});
    found.ndcg.push_back(point.vali.ndcg[0]);
  }
  found.losses.push_back(training.final_objective());
  found.losses.push_back(training.evaluate(data.train).loss);
  found.theta.assign(training.theta().begin(), training.theta().end());
  return found;
}

TEST_P(ResidentListsTest, LossesAndGradientsAreTheHostsForEveryLossAndDepth) {
  const LabelledWorld world(3, 9, 7, kListFeatures);
  const Dataset uneven = weighted(world.data(), {2.0F, 0.0F, 0.3F, 7.0F});
  const std::vector<std::int64_t> queries = {4, 0, 7, 8};
  for (const auto& [loss, name] : EnumNames<ListLoss>::values) {
    for (const std::int64_t depth : {1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << name << ", depth " << depth);
      const LabelSettings settings =
          list_settings(depth == 1 ? NetworkForm::kLinear : NetworkForm::kMlp, loss, depth);
      const NetworkShape shape =
          depth == 1 ? linear_shape(kListFeatures) : network_shape(settings.network, kListFeatures);
      std::unique_ptr<ScoreModel> model;
      if (depth == 1) {
        model = std::make_unique<LinearModel>(kListFeatures);
      } else {
        model = std::make_unique<NetworkModel>(settings.network, kListFeatures);
      }
      const std::vector<float> theta = random_theta(shape, 5);
      const Dataset& data = depth == 1 ? world.data() : uneven;
      LabelObjective host(*model, LabelledQueries(data), settings.loss_form(4), 1, nullptr,
                          relative_weights(data));
      LabelObjective there(
          *model, LabelledQueries(data), settings.loss_form(4), 1,
          device::make_lists(lists_spec(data, shape, settings.loss_form(4), kRoomForLists)));
      std::vector<double> expected(theta.size());
      std::vector<double> found(theta.size());
      EXPECT_NEAR(there.mean(theta, queries, found), host.mean(theta, queries, expected), 1e-5);
      EXPECT_TRUE(all_near(found, expected, 2e-5, 2e-5));
      EXPECT_NEAR(there.mean_of_all(theta, found), host.mean_of_all(theta, expected), 1e-5);
      EXPECT_TRUE(all_near(found, expected, 2e-5, 2e-5));
    }
  }
}

TEST_P(ResidentListsTest, TrainingsOfEveryOptimizerFollowTheHosts) {
  const LabelledWorld train(1, 23, 6, kListFeatures);
  const LabelledWorld vali(2, 8, 6, kListFeatures);
  const Dataset uneven = weighted(train.data(), {2.0F, 0.0F, 0.3F, 7.0F});
  const LabelData data{uneven, &vali.data(), 4};
  for (const auto& [optimizer, name] : EnumNames<LabelOptimizer>::values) {
    SCOPED_TRACE(name);
    LabelSettings settings = list_settings(NetworkForm::kLinear, ListLoss::kListNet);
    settings.optimizer = optimizer;
    settings.l2 = 0.01;
    const LabelFit host = fit_labels(settings, data, std::nullopt, 3);
    const LabelFit there = fit_labels(settings, data, label_device(kRoomForLists), 3);
    EXPECT_TRUE(all_near(there.losses, host.losses, 1e-5, 1e-5));
    EXPECT_TRUE(all_near(there.theta, host.theta, 1e-4, 1e-3));
    EXPECT_EQ(there.ndcg, host.ndcg);
  }
}

TEST_P(ResidentListsTest, ContinuesToTheSameBits) {
  const LabelledWorld train(1, 12, 6, kListFeatures);
  const LabelledWorld vali(2, 5, 6, kListFeatures);
  const LabelData data{train.data(), &vali.data(), 4};
  const LabelSettings settings = list_settings(NetworkForm::kMlp, ListLoss::kRankNet);
  const LabelFit whole = fit_labels(settings, data, label_device(kRoomForLists), 4);
  // Documents that travel give the same bits.
  const LabelFit travelling = fit_labels(settings, data, label_device(0), 4);
  EXPECT_EQ(travelling.theta, whole.theta);
  LabelTraining half(settings, data, TrialKeys{1, 1, 0}, {}, 1, label_device(kRoomForLists));
  half.evaluate_first();
  half.advance();
  half.advance();
  LabelTraining rest(settings, data, TrialKeys{1, 1, 0}, {}, 1, label_device(kRoomForLists));
  StateReader reader(state_of(half), "test");
  rest.load(reader);
  rest.advance();
  rest.advance();
  EXPECT_TRUE(std::equal(whole.theta.begin(), whole.theta.end(), rest.theta().begin(), rest.theta().end()));
}

TEST_P(ResidentListsTest, ALossThatIsNoLongerFiniteIsAnError) {
  const LabelledWorld train(1, 12, 6, kListFeatures);
  LabelSettings settings = list_settings(NetworkForm::kMlp, ListLoss::kRankNet);
  settings.learning_rate = 1e38;
  LabelTraining training(settings, {train.data(), nullptr, 4}, TrialKeys{1, 1, 0}, {}, 1,
                         label_device(kRoomForLists));
  EXPECT_THROW(training.advance(), NumericError);
}

/// Queries of these lengths, with one feature.
Dataset ragged_data(const std::vector<std::int64_t>& lengths) {
  std::vector<SmallQuery> queries;
  for (const std::int64_t docs : lengths) {
    queries.push_back({std::to_string(queries.size()), {}, {}});
    for (std::int64_t doc = 0; doc < docs; ++doc)
      queries.back().grades.push_back(static_cast<std::uint8_t>(doc % 3));
  }
  const Dataset graded = make_dataset(queries);
  Dataset::Contents contents = graded.contents();
  const auto memory =
      std::make_shared<std::pair<Dataset, std::vector<float>>>(graded, random_numbers(graded.docs(), 11));
  contents.values = memory->second;
  contents.features = 1;
  contents.memory = memory;
  return Dataset(std::move(contents));
}

// A batch of Adam and all queries are several blocks, of which one is a single query.
TEST_P(ResidentListsTest, ManyDocumentsGoByBlocks) {
  const Dataset data = ragged_data({9'000, 20'000, 3, 0, 9'000, 40});
  const LinearModel model(1);
  LabelObjective host(model, LabelledQueries(data), {}, 1);
  const std::vector<std::int64_t> order = {5, 4, 3, 1, 2, 0};
  const AdamPass pass{order, 5, 0, 0.1, 0.01};
  std::vector<float> thetas;
  for (const std::int64_t bytes : {kRoomForLists, std::int64_t{0}}) {
    LabelObjective there(model, LabelledQueries(data), {}, 1,
                         device::make_lists(lists_spec(data, linear_shape(1), {}, bytes)));
    EXPECT_EQ(there.device()->docs_stay(), bytes > 0);
    std::vector<double> gradient(1);
    std::vector<double> expected_gradient(1);
    const std::vector<float> theta = {0.5F};
    EXPECT_NEAR(there.mean_of_all(theta, gradient), host.mean_of_all(theta, expected_gradient), 1e-4);
    EXPECT_NEAR(gradient[0], expected_gradient[0], 1e-4);
    std::vector<float> scores(data.docs());
    there.device()->score(theta, scores);
    for (std::int64_t doc = 0; doc < data.docs(); ++doc)
      ASSERT_FLOAT_EQ(scores[doc], 0.5F * data.all_features().values[doc]);
    std::vector<double> losses;
    std::vector<float> moved_to;
    for (LabelObjective* objective : {&there, &host}) {
      std::vector<double> position(theta.begin(), theta.end());
      std::vector<double> first(1);
      std::vector<double> second(1);
      std::vector<float> moved = theta;
      losses.push_back(objective->adam_pass(pass, {moved, position, {first, second}}));
      moved_to.push_back(moved[0]);
    }
    EXPECT_NEAR(losses[0] / losses[1], 1.0, 1e-5);
    EXPECT_NEAR(moved_to[0], moved_to[1], 1e-4);
    thetas.push_back(moved_to[0]);
  }
  EXPECT_EQ(thetas[0], thetas[1]);
}

}  // namespace
}  // namespace olrank
