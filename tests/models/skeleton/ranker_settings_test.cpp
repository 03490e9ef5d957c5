#include "models/skeleton/ranker_settings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/message_of.h"

namespace olrank {
namespace {

TEST(RankerSettingsTest, KeysAreUnique) {
  const std::vector<std::string> keys = RankerSettings::schema().keys();
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), keys.size());
}

TEST(RankerSettingsTest, ProtocolsChooseTheDefaultsOfTheLiterature) {
  const RankerSettings paper = RankerSettings::defaults(RankerKind::kOlRankNet, ProtocolName::kPaper);
  EXPECT_EQ(paper.network.parameterisation, Parameterisation::kNtk);
  EXPECT_EQ(paper.feedback.pairs, PairRule::kAdjacent);
  EXPECT_EQ(paper.trainer.optimizer, Optimizer::kGradientDescent);
  EXPECT_EQ(paper.trainer.learning_rate, 1.0);

  const RankerSettings reference =
      RankerSettings::defaults(RankerKind::kOlRankNet, ProtocolName::kReference);
  EXPECT_EQ(reference.explore.alpha, 0.1);
  EXPECT_EQ(reference.posterior.lambda, 0.1);
  EXPECT_EQ(reference.trainer.optimizer, Optimizer::kAdam);
  EXPECT_EQ(reference.trainer.learning_rate, 0.1);
  EXPECT_EQ(reference.trainer.epochs, 20);
  EXPECT_EQ(reference.trainer.restart, Restart::kFresh);
  EXPECT_EQ(reference.trainer.batch, 1024);
  EXPECT_EQ(reference.explore.list, ListRule::kBlocks);
  EXPECT_TRUE(reference.explore.refine);
  EXPECT_EQ(reference.feedback.pairs, PairRule::kMatched);

  const RankerSettings pdgd = RankerSettings::defaults(RankerKind::kPdgd, ProtocolName::kReference);
  EXPECT_EQ(pdgd.trainer.learning_rate, 0.1);
  EXPECT_EQ(pdgd.trainer.learning_rate_decay, 0.9999977);
  EXPECT_EQ(pdgd.trainer.restart, Restart::kWarm);
  const RankerSettings dbgd = RankerSettings::defaults(RankerKind::kDbgd, ProtocolName::kReference);
  EXPECT_EQ(dbgd.trainer.learning_rate, 0.01);
  EXPECT_EQ(dbgd.bandit.exploration_radius, 1.0);
  EXPECT_EQ(RankerSettings::defaults(RankerKind::kMgd, ProtocolName::kReference).bandit.candidates, 9);
  RankerSettings chosen = RankerSettings::defaults(RankerKind::kMgd, ProtocolName::kPaper);
  chosen.bandit.interleaving = Interleaving::kProbabilistic;
  EXPECT_EQ(RankerSettings::defaults(chosen, ProtocolName::kPaper).bandit.candidates, 49);
}

TEST(RankerSettingsTest, TheRecommendedKindIsClickGp) {
  EXPECT_EQ(RankerSettings().kind, RankerKind::kClickGp);
  EXPECT_EQ(RankerSettings::default_kind(ProtocolName::kRecommended), RankerKind::kClickGp);
  EXPECT_EQ(RankerSettings::default_kind(ProtocolName::kPaper), RankerKind::kOlRankNet);
  // The papers' pairs under their protocol, those that serve better under the recommended one.
  for (const RankerKind kind : {RankerKind::kPairRank, RankerKind::kP2LinRank, RankerKind::kRankNet}) {
    EXPECT_EQ(RankerSettings::defaults(kind, ProtocolName::kPaper).feedback.pairs, PairRule::kAdjacent);
    EXPECT_EQ(RankerSettings::defaults(kind, ProtocolName::kRecommended).feedback.pairs,
              PairRule::kMatched);
  }
  EXPECT_EQ(RankerSettings::defaults(RankerKind::kPairRank, ProtocolName::kPaper).explore.alpha, 0.003);
  EXPECT_EQ(RankerSettings::defaults(RankerKind::kDbgd, ProtocolName::kPaper).trainer.learning_rate_decay,
            0.999977);
}

TEST(RankerSettingsTest, RecipesLeaveOutLateSettingsThatChangeNothing) {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kP2NeurRank, ProtocolName::kPaper);
  for (const std::string_view key : {"restart", "observe_at", "prior_noise", "fair", "debias"})
    EXPECT_TRUE(is_left_out_of_recipe(settings, key)) << key;
  EXPECT_FALSE(is_left_out_of_recipe(settings, "lambda"));
  settings.posterior.prior_noise = true;
  settings.feedback.debias = {0.5};
  settings.posterior.observe_at = ObserveAt::kAfter;
  settings.trainer.restart = Restart::kFirst;
  for (const std::string_view key : {"restart", "observe_at", "prior_noise", "debias"})
    EXPECT_FALSE(is_left_out_of_recipe(settings, key)) << key;
  // Where mini-batches start at θ₀.
  settings.trainer.loss = LossForm::kMean;
  EXPECT_TRUE(is_left_out_of_recipe(settings, "restart"));
  settings.trainer.restart = Restart::kWarm;
  EXPECT_FALSE(is_left_out_of_recipe(settings, "restart"));
  RankerSettings clicks = RankerSettings::defaults(RankerKind::kClickGp, ProtocolName::kRecommended);
  EXPECT_TRUE(is_left_out_of_recipe(clicks, "explore_floor"));
  clicks.click.explore_floor = 0.1;
  EXPECT_FALSE(is_left_out_of_recipe(clicks, "explore_floor"));
}

TEST(RankerSettingsTest, RefusesFloorsOutsideTheirRange) {
  RankerSettings settings;
  assign_setting(RankerSettings::schema(), &settings, "explore_floor", 0.99, "here");
  EXPECT_EQ(settings.click.explore_floor, 0.99);
  for (const double wrong : {1.0, -0.1, 2.0}) {
    EXPECT_EQ(message_of<InvalidArgument>([&] {
                assign_setting(RankerSettings::schema(), &settings, "explore_floor", wrong, "here");
              }),
              fmt::format("here: 'explore_floor' must be at least 0 and below 1, not {:.1f}.", wrong));
  }
}

TEST(RankerSettingsTest, RefusesProbabilitiesOfExaminationThatAreNone) {
  RankerSettings settings;
  for (const char* wrong : {"1,0", "1.5,0.5", "-0.1", "nan", "[0.5, inf]"}) {
    const std::string message = message_of<InvalidArgument>(
        [&] { assign_setting_text(RankerSettings::schema(), &settings, "debias", wrong, "--debias"); });
    EXPECT_TRUE(message.starts_with("--debias must be ")) << message;
  }
  EXPECT_TRUE(settings.feedback.debias.empty());
  assign_setting_text(RankerSettings::schema(), &settings, "debias", "1,0.6,1e-3", "--debias");
  EXPECT_EQ(settings.feedback.debias, (std::vector{1.0, 0.6, 1e-3}));
}

}  // namespace
}  // namespace olrank
