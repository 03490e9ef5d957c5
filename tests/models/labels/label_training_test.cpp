#include "models/labels/label_training.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/error.h"
#include "tests/models/labelled_world.h"
#include "tests/support/message_of.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

LabelSettings settings_with_patience() {
  LabelSettings settings;
  settings.network.network = NetworkForm::kLinear;
  settings.learning_rate = 0.05;
  settings.batch = 4;
  settings.epochs = 40;
  settings.patience = 3;
  settings.cutoff = 4;
  return settings;
}

TEST(LabelTrainingTest, KeepsTheBestModelByValidation) {
  const LabelledWorld train(1, 20, 8, 4);
  const LabelledWorld vali(2, 12, 8, 4);
  LabelTraining training(settings_with_patience(), {train.data(), &vali.data(), 4}, TrialKeys{1, 1, 0}, {},
                         1);
  // NDCG@4 is the second of 1, 3, 4, 5, 10 by cutoff: the setting's own comes in its place.
  ASSERT_EQ(training.metric_options().cutoffs, (std::vector<std::int64_t>{1, 3, 4, 5, 10}));
  std::vector<double> ndcg = {training.evaluate_first().vali.ndcg[2]};
  std::vector<std::vector<float>> thetas(1);
  while (!training.finished()) {
    ndcg.push_back(training.advance().vali.ndcg[2]);
    thetas.emplace_back(training.theta().begin(), training.theta().end());
  }
  const auto best = std::max_element(ndcg.begin(), ndcg.end()) - ndcg.begin();
  EXPECT_EQ(training.theta_epoch(), best);
  EXPECT_EQ(training.evaluate(vali.data()).metrics.ndcg[2], ndcg[best]);
  EXPECT_TRUE(training.epoch() == best + 3 || training.epoch() == 40);
}

TEST(LabelTrainingTest, ContinuesToTheSameBits) {
  const LabelledWorld train(1, 20, 8, 4);
  const LabelledWorld vali(2, 12, 8, 4);
  LabelSettings settings = settings_with_patience();
  settings.network.network = NetworkForm::kMlp;
  settings.network.width = 6;
  settings.patience = 30;
  const LabelData data{train.data(), &vali.data(), 4};
  LabelTraining whole(settings, data, TrialKeys{1, 1, 0}, {}, 1);
  whole.evaluate_first();
  for (int pass = 0; pass < 8; ++pass) whole.advance();
  LabelTraining half(settings, data, TrialKeys{1, 1, 0}, {}, 2);
  half.evaluate_first();
  for (int pass = 0; pass < 4; ++pass) half.advance();
  LabelTraining rest(settings, data, TrialKeys{1, 1, 0}, {}, 3);
  load_state(rest, state_of(half));
  for (int pass = 0; pass < 4; ++pass) rest.advance();
  EXPECT_EQ(std::vector<float>(whole.theta().begin(), whole.theta().end()),
            std::vector<float>(rest.theta().begin(), rest.theta().end()));
  EXPECT_EQ(whole.theta_epoch(), rest.theta_epoch());
  EXPECT_EQ(whole.final_objective(), rest.final_objective());
}

TEST(LabelTrainingTest, RefusesLabelsWithoutAnOrderAndAMissingValidationPart) {
  const LabelledWorld train(1, 20, 8, 4);
  LabelSettings settings = settings_with_patience();
  EXPECT_THROW(LabelTraining(settings, {train.data(), nullptr, 4}, TrialKeys{}, {}, 1), InvalidArgument);
  settings.patience = 0;
  EXPECT_NO_THROW(LabelTraining(settings, {train.data(), nullptr, 4}, TrialKeys{}, {}, 1));
  Dataset::Contents equal = train.data().contents();
  const std::vector<std::uint8_t> grades(static_cast<std::size_t>(train.data().docs()), 2);
  equal.grades = grades;
  const Dataset data(std::move(equal));
  EXPECT_THROW(LabelTraining(settings, {data, nullptr, 4}, TrialKeys{}, {}, 1), DataError);
  const Dataset weightless = weighted(train.data(), {0.0F});
  EXPECT_EQ(
      message_of<DataError>([&] {
        LabelTraining(settings, {weightless, nullptr, 4}, TrialKeys{}, {}, 1);
      }),
      "The training part: All its queries have the weight 0, so there is nothing to learn: give one a "
      "weight above 0.");
  std::vector<std::uint8_t> one_order(grades);
  one_order.back() = 1;  // of the last query, which has no weight
  Dataset::Contents flat = weighted(train.data(), std::vector<float>(19, 1.0F)).contents();
  flat.weights.back() = 0.0F;
  flat.grades = one_order;
  const Dataset unweighted_order(std::move(flat));
  EXPECT_NE(message_of<DataError>([&] {
              LabelTraining(settings, {unweighted_order, nullptr, 4}, TrialKeys{}, {}, 1);
            }).find("In every query with a weight above 0 all documents have the same grade"),
            std::string::npos);
}

TEST(LabelTrainingTest, RefusesANetworkThatDoesNotFitIntoMemory) {
  const LabelledWorld train(1, 5, 8, 4);
  LabelSettings settings;
  settings.network.width = 65536;
  settings.network.depth = 12;
  const std::string said = message_of<InvalidArgument>([&] {
    LabelTraining(settings, {train.data(), nullptr, 4}, TrialKeys{}, {}, 1);
  });
  EXPECT_NE(said.find(" parameters and what adam keeps of them take 2.1 TB, but this machine has "),
            std::string::npos)
      << said;
}

TEST(LabelTrainingTest, RefusesSmoothDcgOfSeveralRanksOnAGpu) {
  const LabelledWorld train(1, 5, 8, 4);
  LabelSettings settings;
  settings.loss = ListLoss::kSmoothDcg;
  settings.smooth_at = 2;
  for (const NetworkForm network : {NetworkForm::kLinear, NetworkForm::kModule}) {
    settings.network.network = network;
    EXPECT_EQ(message_of<InvalidArgument>([&] {
                LabelTraining(settings, {train.data(), nullptr, 4}, TrialKeys{}, {}, 1, LabelDevice());
              }),
              "A GPU computes smooth-dcg at one rank only: use --device cpu, or smooth_at = 1.");
  }
}

TEST(LabelTrainingTest, WeightsAreForTheObjectiveAlone) {
  const LabelledWorld train(1, 20, 8, 4);
  const Dataset data = weighted(train.data(), {5.0F, 1.0F});
  LabelSettings settings = settings_with_patience();
  settings.patience = 0;
  const std::vector<float> theta = {0.3F, -0.2F, 0.1F, 0.5F};
  LabelTraining training(settings, {data, &data, 4}, TrialKeys{}, theta, 1);
  LabelTraining plain(settings, {train.data(), &train.data(), 4}, TrialKeys{}, theta, 1);
  EXPECT_NE(training.final_objective(), plain.final_objective());
  EXPECT_EQ(training.evaluate(data).loss, plain.evaluate(train.data()).loss);
  EXPECT_EQ(*training.evaluate_first().vali_loss, *plain.evaluate_first().vali_loss);
}

}  // namespace
}  // namespace olrank
