#include "models/skeleton/ranker_settings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "models/neural/ranker_network.h"
#include "models/ranker_factory.h"
#include "models/ranker_memory.h"
#include "models/skeleton/network_settings.h"
#include "tests/models/small_world.h"
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

TEST(NetworkShapeTest, FollowsTheSettings) {
  NetworkSettings settings;
  settings.width = 16;
  settings.depth = 3;
  settings.parameterisation = Parameterisation::kNtk;
  EXPECT_EQ(network_shape(settings, 46), ntk_shape(46, 16, 3));
  EXPECT_EQ(initialisation_of(settings), Initialisation::kSymmetric);
  settings.width = 15;
  EXPECT_THROW(network_shape(settings, 46), InvalidArgument);
  settings.parameterisation = Parameterisation::kStandard;
  EXPECT_EQ(network_shape(settings, 46), standard_shape(46, 15, 3));
  EXPECT_EQ(initialisation_of(settings), Initialisation::kUniform);
  settings.initialisation = FirstDraw::kSymmetric;
  EXPECT_EQ(initialisation_of(settings), Initialisation::kSymmetric);
  settings.network = NetworkForm::kLinear;
  EXPECT_EQ(network_shape(settings, 46), linear_shape(46));
  EXPECT_EQ(initialisation_of(settings), Initialisation::kUniform);
}

TEST(NetworkShapeTest, ScalingPutsTheWidthIntoCovarianceAndPrior) {
  NetworkSettings settings;
  settings.width = 16;
  settings.scaling = WidthScaling::kWidth;
  EXPECT_EQ(covariance_scale(settings), 1.0 / 16.0);
  EXPECT_EQ(prior_weight(settings, 0.5), 0.5 * 16.0 * 0.5);
  settings.scaling = WidthScaling::kNone;
  EXPECT_EQ(covariance_scale(settings), 1.0);
  EXPECT_EQ(prior_weight(settings, 0.5), 0.25);
}

const LabelledWorld& taught_world() {
  static const LabelledWorld made(23, 6, 12, 4);
  return made;
}

RankerSettings small_settings(RankerKind kind) {
  RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kRecommended);
  settings.name = name_of(kind);
  settings.network.width = 4;
  settings.trainer.steps = 3;
  return settings;
}

/// Lists and state after some rounds.
std::string play_rounds(const RankerSettings& settings) {
  const LabelledQueries labels = taught_world().labels();
  const auto ranker =
      make_ranker(settings, taught_world().features(), TrialKeys::of(5, 1, "use"), 6, {.labels = &labels});
  TestContext context;
  std::string played;
  std::vector<DocGroup> groups;
  for (int doc = 0; doc < 12; ++doc) groups.push_back(doc % 3 == 0 ? DocGroup::kA : DocGroup::kB);
  const ExposureRule rule{{1.0, 0.9, 0.8, 0.7, 0.6, 0.5}, {1.0}, 0.5};
  ExposureLedger ledger;
  for (std::uint32_t round = 1; round <= 24; ++round) {
    QueryDocs query = taught_world().query_of(round);
    const FairRound fair{groups, &rule, ledger.unfairness()};
    query.fair = &fair;
    const RankedList list = ranker->rank(context.round, query, round);
    const ShownDocs shown = shown_of(list, 6);
    for (const std::int32_t doc : list.docs) played += std::to_string(doc) + " ";
    ledger.observe(rule, groups, shown);
    ranker->learn(context.round, {round, query, shown, taught_world().perfect_clicks(query.query, shown)});
  }
  StateWriter state;
  ranker->save(state);
  return played + state.fingerprint().hex();
}

/// The settings with another value of one of them.
RankerSettings changed(const RankerSettings& settings, const Setting& setting) {
  RankerSettings other = settings;
  const SettingValue value = setting.read(&settings);
  if (!setting.choices.empty()) {
    const bool is_first = std::get<std::string>(value) == setting.choices.front();
    setting.write(&other, setting.choices[is_first ? 1 : 0]);
  } else if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    setting.write(&other, *whole + 2);
  } else if (const auto* real = std::get_if<double>(&value)) {
    const double larger = *real == 0.0 ? 0.25 : *real * 10.0;
    setting.write(&other, setting.bounds.contain(larger) ? larger : *real * 0.5);
  } else if (std::holds_alternative<std::vector<double>>(value)) {
    setting.write(&other, std::vector{0.5});
  } else if (std::holds_alternative<std::string>(value)) {
    setting.write(&other, std::string("residual"));  // of modules
  } else {
    setting.write(&other, !std::get<bool>(value));
  }
  return other;
}

class SettingUseTest : public testing::TestWithParam<std::string> {
 protected:
  RankerSettings settings() const { return small_settings(*value_named<RankerKind>(GetParam())); }
};

TEST_P(SettingUseTest, IgnoredSettingsChangeNothing) {
  const std::string played = play_rounds(settings());
  int ignored = 0;
  for (const Setting& setting : RankerSettings::schema().settings) {
    if (!why_ignored(settings(), setting.key)) continue;
    ++ignored;
    EXPECT_EQ(play_rounds(changed(settings(), setting)), played) << setting.key;
  }
  EXPECT_GT(ignored, 5);
}

/// A setting may lie below what these rounds show, but these decide what every one of them does.
TEST_P(SettingUseTest, SettingsThatCountChangeSomething) {
  const std::string played = play_rounds(settings());
  for (const char* key : {"width", "depth", "lambda", "members", "alpha", "list", "optimizer",
                          "learning_rate", "exploration_radius", "interleaving", "candidates", "pairs",
                          "debias", "epochs", "c1", "fair", "fair_gain"}) {
    if (why_ignored(settings(), key)) continue;
    const Setting& setting = *RankerSettings::schema().find(key);
    std::string other;
    try {
      other = play_rounds(changed(settings(), setting));
    } catch (const InvalidArgument&) {
      continue;  // read, and refused
    }
    EXPECT_NE(other, played) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, SettingUseTest, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& [kind, name] : EnumNames<RankerKind>::values)
                             if (!row_of(kind).is_external) names.emplace_back(name);
                           return names;
                         }()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(SettingUse, HasARuleForEverySettingThatSomeKindIgnores) {
  std::set<std::string> without;
  for (const Setting& setting : RankerSettings::schema().settings) {
    bool all = true;
    for (const auto& [kind, name] : EnumNames<RankerKind>::values) all = all && kind_has(kind, setting.key);
    if (all) without.insert(setting.key);
  }
  EXPECT_EQ(without, (std::set<std::string>{"name", "kind"}));
}

TEST(SettingUse, NamesTheKindsThatHaveASetting) {
  const RankerSettings pairrank = small_settings(RankerKind::kPairRank);
  EXPECT_EQ(why_ignored(pairrank, "epsilon"),
            "kind \"pairrank\" has no 'epsilon', only ranknet. Remove it, or choose another kind");
  EXPECT_EQ(why_ignored(pairrank, "exploration_radius"),
            "kind \"pairrank\" has no 'exploration_radius', only dbgd or mgd. Remove it, or choose another "
            "kind");
  EXPECT_EQ(why_ignored(pairrank, "alpha"), std::nullopt);
}

TEST(SettingUse, NamesTheConditionOfASetting) {
  RankerSettings network = small_settings(RankerKind::kOlRankNet);
  EXPECT_EQ(why_ignored(network, "form"), std::nullopt);
  network.posterior.covariance = Covariance::kDiagonal;
  EXPECT_EQ(why_ignored(network, "form"),
            "it counts only with covariance = \"full\". Remove it, or change that");
  network.posterior.shadow = ShadowCovariance::kFull;
  EXPECT_EQ(why_ignored(network, "form"), std::nullopt);
  EXPECT_NE(why_ignored(network, "c1"), std::nullopt);
  network.explore.alpha_schedule = AlphaSchedule::kTheory;
  EXPECT_EQ(why_ignored(network, "c1"), std::nullopt);
  EXPECT_NE(why_ignored(network, "alpha"), std::nullopt);
}

RankerSettings network_settings(Covariance covariance, CovarianceForm form) {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kOlRankNet, ProtocolName::kPaper);
  settings.name = "net";
  settings.network.width = 100;
  settings.posterior.covariance = covariance;
  settings.posterior.form = form;
  return settings;
}

/// 10 documents shown bring at most 5 adjacent pairs a round.
constexpr RankerLoad kLoad = {.features = 136, .train_docs = 1000, .rounds = 10'000, .cutoff = 10};

TEST(RankerMemoryTest, BytesOfCovariancesMatchTheirFormulas) {
  const RankerMemory none =
      memory_of_ranker(network_settings(Covariance::kNone, CovarianceForm::kAuto), kLoad);
  EXPECT_EQ(none.parameters, 13'700);
  EXPECT_TRUE(none.forms.empty());
  const auto beyond = [](Covariance covariance, CovarianceForm form, const RankerLoad& load = kLoad) {
    const RankerSettings without = network_settings(Covariance::kNone, CovarianceForm::kAuto);
    return static_cast<double>(memory_of_ranker(network_settings(covariance, form), load).bytes -
                               memory_of_ranker(without, load).bytes);
  };
  const double n = 50'000.0;
  const double p = 13'700.0;
  // Tangent factors of both documents of a pair: inputs 136 and 100, deltas 100 and 1. While the array
  // doubles, the old one and the new one are there.
  const double history = 3 * n * 2 * 337 * 4;
  // L⁻¹ in 390 blocks of 128 rows and 80 rows more, and the kernel of five new pairs.
  const double rows = 128 * 128 * (390.0 * 391.0 / 2.0) + 80 * 128 * 391;
  const double dual = (rows + n * 5) * 8 + history;
  // A⁻¹, and half as much for its Cholesky factor while A⁻¹ is computed.
  const double primal = p * p * 12 + history;
  EXPECT_NEAR(beyond(Covariance::kFull, CovarianceForm::kDual), dual, 2);
  EXPECT_NEAR(beyond(Covariance::kFull, CovarianceForm::kPrimal), primal, 2);
  EXPECT_NEAR(beyond(Covariance::kFull, CovarianceForm::kAuto), primal, 2);
  EXPECT_NEAR(beyond(Covariance::kDiagonalOfInverse, CovarianceForm::kAuto), primal, 2);
  EXPECT_NEAR(beyond(Covariance::kDiagonal, CovarianceForm::kAuto), p * 16, 2);
  // 1,000 pairs, and in the window 2,250 more with those of a round, while their array doubles.
  const double inducing = beyond(Covariance::kInducing, CovarianceForm::kAuto);
  EXPECT_GE(inducing, 4 * 1000.0 * 1000.0 * 8 + 3 * 3255.0 * 2 * 337 * 4);
  EXPECT_LE(inducing, 150e6);
  RankerLoad longer = kLoad;
  longer.rounds = 1'000'000;
  EXPECT_NEAR(beyond(Covariance::kInducing, CovarianceForm::kAuto, longer), inducing, 2)
      << "memory does not grow with the rounds";
  RankerSettings shadowed = network_settings(Covariance::kDiagonal, CovarianceForm::kAuto);
  shadowed.posterior.shadow = ShadowCovariance::kFull;
  EXPECT_NEAR(static_cast<double>(memory_of_ranker(shadowed, kLoad).bytes - none.bytes), p * 16 + primal,
              2);
}

TEST(RankerMemoryTest, PlansTheParametersOfEveryKind) {
  for (const auto& [kind, name] : EnumNames<RankerKind>::values) {
    if (row_of(kind).is_external) continue;  // none is registered
    RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kRecommended);
    settings.network.width = 6;
    const RankerMemory plan = memory_of_ranker(settings, {.features = 7, .rounds = 10});
    EXPECT_GE(plan.bytes, plan.parameters * 4) << name;
    LabelledQueries none;
    EXPECT_EQ(plan.parameters, make_ranker(settings, 7, {}, 10, {.labels = &none})->parameters()) << name;
  }
}

TEST(RankerMemoryTest, DoesNotOverflowForTheWidestNetwork) {
  RankerSettings settings = network_settings(Covariance::kFull, CovarianceForm::kPrimal);
  settings.network.width = 65'536;
  settings.network.depth = 16;
  const RankerMemory plan = memory_of_ranker(settings, {.features = 136, .rounds = 4'294'967'295});
  EXPECT_EQ(plan.bytes, std::int64_t{9'000'000'000'000'000'000});
  EXPECT_THROW(check_ranker(settings, 10), InvalidArgument);
}

TEST(RankerMemoryTest, AdviceNamesWhatWouldFit) {
  const RankerMemory plan = {5, 900, {{"a", 900}, {"b", 3000}, {"c", 20}}};
  EXPECT_EQ(advice_on_memory(plan, 1000),
            "a takes 900 bytes, b takes 3.0 kB, c takes 20 bytes; a or c would fit");
  EXPECT_EQ(advice_on_memory(plan, 10),
            "a takes 900 bytes, b takes 3.0 kB, c takes 20 bytes; only fewer rounds or a smaller network "
            "would fit");
  EXPECT_EQ(advice_on_memory({5, 900, {}}, 10), "fewer rounds, features or parameters would fit");
}

TEST(RankerMemoryTest, LinearRankersRefuseCovariancesOfNetworks) {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kPairRank, ProtocolName::kRecommended);
  settings.name = "mine";
  for (const auto& [covariance, name] : EnumNames<Covariance>::values) {
    settings.posterior.covariance = covariance;
    const bool of_networks = covariance == Covariance::kInducing;
    EXPECT_EQ(message_of<InvalidArgument>([&] { check_ranker(settings, 10); }),
              !of_networks ? kNoError
                           : "Ranker 'mine' cannot have covariance = \"" + std::string(name) +
                                 "\", which is for networks, and every 'pairrank' is linear: choose "
                                 "\"full\", \"diagonal\", \"diagonal-of-inverse\" or \"none\".");
  }
}

TEST(RankerMemoryTest, ExpectedPairsNeedAWeightedLoss) {
  const auto check = [](RankerKind kind, ProtocolName protocol = ProtocolName::kRecommended) {
    RankerSettings settings = RankerSettings::defaults(kind, protocol);
    settings.feedback.pairs = PairRule::kExpected;
    check_ranker(settings, 10);
  };
  for (const RankerKind kind : {RankerKind::kOlRankNet, RankerKind::kP2NeurRank, RankerKind::kPdgd})
    EXPECT_NO_THROW(check(kind));
  for (const RankerKind kind :
       {RankerKind::kPairRank, RankerKind::kP2LinRank, RankerKind::kOlLambdaRank, RankerKind::kRankNet})
    EXPECT_THROW(check(kind), InvalidArgument) << name_of(kind);
  EXPECT_THROW(check(RankerKind::kOlRankNet, ProtocolName::kReference), InvalidArgument);
}

TEST(RankerMemoryTest, CopiesOfPairsNeedMemory) {
  RankerSettings settings = network_settings(Covariance::kDiagonal, CovarianceForm::kAuto);
  const auto bytes_of = [&](std::vector<double> debias) {
    settings.feedback.debias = std::move(debias);
    return memory_of_ranker(settings, {.features = 136, .train_docs = 1'000, .rounds = 10'000}).bytes;
  };
  const std::int64_t of_a_copy = bytes_of({0.5}) - bytes_of({});
  EXPECT_GT(of_a_copy, 0);
  EXPECT_EQ(bytes_of({1.0}), bytes_of({}));
  EXPECT_EQ(bytes_of({1.0, 0.01}), bytes_of({}) + 9 * of_a_copy);
}

TEST(RankerMemoryTest, RefusesASampleThatFitsIntoNoMemory) {
  for (const RankerKind kind : {RankerKind::kOlRankNet, RankerKind::kP2NeurRank, RankerKind::kPairRank}) {
    RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kRecommended);
    settings.name = "mine";
    settings.trainer.replay = std::int64_t{1} << 60;
    EXPECT_NO_THROW(check_ranker(settings, 10));  // nothing is drawn
    settings.trainer.retrain = Retrain::kGrowth;
    EXPECT_TRUE(contains(message_of<InvalidArgument>([&] { check_ranker(settings, 10); }),
                         "Ranker 'mine' has replay = 1152921504606846976"));
  }
}

}  // namespace
}  // namespace olrank
