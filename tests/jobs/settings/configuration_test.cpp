#include "jobs/settings/configuration.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "tests/jobs/settings/configuration_text.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

TEST(ConfigurationTest, ProtocolAndKindDecideDefaultsAnywhereInTheFile) {
  const Configuration configuration = from_text(
      "[[ranker]]\n"
      "learning_rate = 0.7\n"
      "kind = \"pdgd\"\n"
      "[[ranker]]\n"
      "kind = \"pairrank\"\n"
      "list = \"certain\"\n"
      "[protocol]\n"
      "name = \"reference\"\n");
  ASSERT_EQ(configuration.rankers.size(), 2U);
  EXPECT_EQ(configuration.rankers[0].name, "pdgd");
  EXPECT_EQ(configuration.rankers[0].trainer.learning_rate, 0.7);
  EXPECT_EQ(configuration.rankers[0].trainer.learning_rate_decay, 0.9999977);
  EXPECT_EQ(configuration.rankers[1].explore.list, ListRule::kCertain);
  EXPECT_EQ(configuration.rankers[1].posterior.lambda, 0.1);
  EXPECT_EQ(configuration.protocol.empty_queries, EmptyQueries::kSkip);
  EXPECT_EQ(configuration.clicks.stop, StopDraw::kEveryDoc);
}

TEST(ConfigurationTest, CandidatesFollowTheInterleavingUnlessSet) {
  const std::string mgd = "[[ranker]]\nkind = \"mgd\"\n";
  const std::string probabilistic = "interleaving = \"probabilistic\"\n";
  EXPECT_EQ(from_text(mgd).rankers[0].bandit.candidates, 9);
  EXPECT_EQ(from_text(mgd + probabilistic).rankers[0].bandit.candidates, 49);
  EXPECT_EQ(
      from_text(mgd, {parse_override("ranker.interleaving=probabilistic")}).rankers[0].bandit.candidates,
      49);
  EXPECT_EQ(from_text(mgd + "candidates = 5\n" + probabilistic).rankers[0].bandit.candidates, 5);
}

TEST(ConfigurationTest, OverridesApplyToAllRankersOrOne) {
  const std::string text =
      "[[ranker]]\nkind = \"pairrank\"\nname = \"a\"\n[[ranker]]\nkind = \"pairrank\"\nname = \"b\"\n";
  const Configuration configuration =
      from_text(text, {parse_override("ranker.alpha=0.5"), parse_override("ranker.b.alpha=0.9"),
                       parse_override("protocol.rounds=7")});
  EXPECT_EQ(configuration.rankers[0].explore.alpha, 0.5);
  EXPECT_EQ(configuration.rankers[1].explore.alpha, 0.9);
  EXPECT_EQ(configuration.protocol.rounds, 7);
}

TEST(ConfigurationTest, RefusesSettingsThatTheRankerIgnores) {
  const std::string pairrank = "[[ranker]]\nkind = \"pairrank\"\n";
  const std::string pdgd = "[[ranker]]\nkind = \"pdgd\"\n";
  EXPECT_EQ(
      refusal_of(pairrank, {{"ranker", "", "epsilon", "0.3", "--epsilon"}}),
      "--epsilon does not apply to ranker 'pairrank': kind \"pairrank\" has no 'epsilon', only ranknet. "
      "Remove it, or choose another kind.");
  EXPECT_EQ(refusal_of(pairrank + pdgd, {parse_override("ranker.pdgd.alpha=1")}),
            "--set ranker.pdgd.alpha does not apply to ranker 'pdgd': kind \"pdgd\" has no 'alpha', "
            "only pairrank, olranknet or ollambdarank. Remove it, or choose another kind.");
}

TEST(ConfigurationTest, OverridesOfAllRankersGoToThoseThatHaveTheSetting) {
  const std::string both = "[[ranker]]\nkind = \"pairrank\"\n[[ranker]]\nkind = \"pdgd\"\n";
  const Configuration configuration = from_text(both, {parse_override("ranker.alpha=0.5")});
  EXPECT_EQ(configuration.rankers[0].explore.alpha, 0.5);
  EXPECT_EQ(configuration.rankers[1].explore.alpha,
            RankerSettings::defaults(RankerKind::kPdgd, ProtocolName::kPaper).explore.alpha);
  EXPECT_NE(refusal_of(both, {parse_override("ranker.width=5")}), kNoError);
}

TEST(ConfigurationTest, DefaultsOfNetworksFollowTheProtocolTheLossAndTheStart) {
  const std::string network = "[[ranker]]\nkind = \"olranknet\"\n";
  const auto of = [&](const std::string& more) { return from_text(network + more).rankers.front(); };
  EXPECT_EQ(of("").feedback.pairs, PairRule::kExpected);
  EXPECT_EQ(of("").trainer.optimizer, Optimizer::kNesterov);
  EXPECT_EQ(of("loss = \"mean\"\n").feedback.pairs, PairRule::kMatched);
  EXPECT_EQ(of("loss = \"mean\"\n").trainer.optimizer, Optimizer::kGradientDescent);
  EXPECT_EQ(of("[protocol]\nname = \"paper\"\n").network.parameterisation, Parameterisation::kNtk);
  RankerSettings started = of("");
  EXPECT_EQ(started.posterior.lambda, 20.0);
  started.start_from = "model";
  EXPECT_EQ(RankerSettings::defaults(started, ProtocolName::kRecommended).posterior.lambda, 1000.0);
  EXPECT_EQ(RankerSettings::defaults(started, ProtocolName::kPaper).posterior.lambda, 10.0);
}

TEST(ConfigurationTest, AListOfKindsMakesOneRankerOfEach) {
  const SettingOverride kinds = {"ranker", "", "kind", "pairrank,pdgd", "--ranker"};
  const Configuration configuration = from_text(
      "", {kinds, parse_override("ranker.alpha=0.5"), parse_override("ranker.pdgd.learning_rate=2")});
  ASSERT_EQ(configuration.rankers.size(), 2U);
  EXPECT_EQ(configuration.rankers[0].name, "pairrank");
  EXPECT_EQ(configuration.rankers[0].explore.alpha, 0.5);
  EXPECT_EQ(configuration.rankers[1].kind, RankerKind::kPdgd);
  EXPECT_EQ(configuration.rankers[1].trainer.learning_rate, 2.0);
  EXPECT_EQ(configuration.rankers[1].trainer.learning_rate_decay, 0.999977);
  EXPECT_EQ(
      refusal_of("[[ranker]]\n[[ranker]]\nname = \"b\"\n", {kinds}),
      "--ranker names 2 rankers, but the file describes 2 rankers of its own: name one kind, or leave out "
      "the file's [[ranker]] tables.");
  EXPECT_EQ(refusal_of("", {{"ranker", "", "kind", "pairrank,pdgd,pairrank", "--ranker"}}),
            "Two rankers are called 'pairrank'; give each [[ranker]] a unique name.");
}

TEST(ConfigurationTest, NamesSelectRankersOfTheFile) {
  const std::string file =
      "[[ranker]]\nname = \"a\"\nwidth = 8\nkind = \"olranknet\"\n[[ranker]]\nname = \"b\"\nkind = "
      "\"pdgd\"\n"
      "[[ranker]]\nkind = \"mgd\"\n[sweep.a]\nwidth = [4, 8]\n[sweep.b]\nlearning_rate = [1, 2]\n";
  const auto ranker = [](const std::string& names) {
    return SettingOverride{"ranker", "", "kind", names, "--ranker"};
  };
  const Configuration both =
      from_text(file, {ranker("mgd,b"), parse_override("ranker.b.learning_rate_decay=1")});
  ASSERT_EQ(both.rankers.size(), 2U);
  EXPECT_EQ(both.rankers[0].kind, RankerKind::kPdgd);
  EXPECT_EQ(both.rankers[1].kind, RankerKind::kMgd);
  ASSERT_EQ(both.sweep.size(), 1U);
  EXPECT_EQ(both.sweep[0].ranker, "b");
  EXPECT_EQ(from_text(file, {ranker("a")}).rankers.front().network.width, 8);
  for (const char* names : {"c", "a,c"}) {
    const std::string refusal = refusal_of(file, {ranker(names)});
    EXPECT_TRUE(contains(refusal, "not 'c'. Or name rankers of the file: a, b, mgd."));
  }
  EXPECT_EQ(refusal_of(file, {ranker("a"), parse_override("ranker.b.learning_rate=1")}),
            "--set ranker.b.learning_rate: Unknown ranker 'b'. No known name is close to it.");
}

TEST(ConfigurationTest, PrintedConfigurationReadsBackUnchanged) {
  const Configuration configuration = from_text(
      "[protocol]\nname = \"reference\"\nseeds = \"1-5\"\n[[ranker]]\nname = \"a\"\nalpha = "
      "0.3333333333333333\n"
      "[[ranker]]\nkind = \"mgd\"\n[data]\nsource = \"a \\\"quoted\\\" folder\"\n");
  const std::string printed = print_configuration(configuration);
  EXPECT_EQ(print_configuration(from_text(printed)), printed);
}

TEST(ConfigurationTest, ErrorsNameLocationAndNearestName) {
  for (const char* section : {"configuration", "users"})
    expect_cases("jobs/settings/configuration_test.txt", section,
                 [](const std::string& text) { return refusal_of(text); });
}

TEST(ConfigurationTest, ChecksOverrides) {
  EXPECT_THROW(parse_override("alpha=1"), InvalidArgument);
  EXPECT_THROW(parse_override("ranker.alpha"), InvalidArgument);
  EXPECT_THROW(parse_override("data.x.source=1"), InvalidArgument);
  EXPECT_EQ(refusal_of("", {parse_override("rankre.alpha=1")}),
            "--set rankre.alpha: Unknown table 'rankre'. Did you mean 'ranker'?");
  EXPECT_EQ(refusal_of("[[ranker]]\nkind = \"olranknet\"\n", {parse_override("ranker.olranknte.alpha=1")}),
            "--set ranker.olranknte.alpha: Unknown ranker 'olranknte'. Did you mean 'olranknet'?");
}

TEST(ConfigurationTest, UsersInheritFromClicksAnywhereInTheFile) {
  const Configuration configuration = from_text(
      "[[user]]\n"
      "name = \"mine\"\n"
      "kind = \"dependent\"\n"
      "click = [0, 0.5, 1]\n"
      "stop = [0.1, 0.2, 0.3]\n"
      "[[user]]\n"
      "name = \"yours\"\n"
      "click = [1, 1]\n"
      "noise = 0.5\n"
      "examination = [0.9]\n"
      "[clicks]\n"
      "models = [\"yours\", \"perfect\"]\n"
      "kind = \"position\"\n"
      "noise = 0.125\n"
      "[protocol]\n"
      "name = \"reference\"\n",
      {parse_override("clicks.position_bias=0.75")});
  ASSERT_EQ(configuration.users.size(), 2U);
  const UserSettings& mine = configuration.users[0];
  EXPECT_EQ(mine.kind, ClickKind::kDependent);
  EXPECT_EQ(mine.click, (std::vector<double>{0.0, 0.5, 1.0}));
  EXPECT_EQ(mine.stop, (std::vector<double>{0.1, 0.2, 0.3}));
  EXPECT_EQ(mine.stop_draw, StopDraw::kEveryDoc);
  EXPECT_EQ(mine.noise, 0.125);
  const UserSettings& yours = configuration.users[1];
  EXPECT_EQ(yours.kind, ClickKind::kPosition);
  EXPECT_EQ(yours.noise, 0.5);
  EXPECT_EQ(yours.position_bias, 0.75);
  EXPECT_EQ(yours.examination, std::vector<double>{0.9});

  const std::string printed = print_configuration(configuration);
  EXPECT_EQ(print_configuration(from_text(printed)), printed);
  EXPECT_TRUE(contains(printed, "[[user]]\nname = \"mine\""));
  EXPECT_FALSE(contains(print_configuration(from_text("")), "[[user]]"));
}

TEST(ConfigurationTest, RefusesOverridesOfUsers) {
  for (const std::string path : {"user.mine.noise", "user.noise"}) {
    EXPECT_EQ(message_of<InvalidArgument>([&] { parse_override(path + "=0.5"); }),
              "--set " + path +
                  ": Users can be described only in the configuration file; put the key under the user's "
                  "[[user]] there.");
  }
}

}  // namespace
}  // namespace olrank
