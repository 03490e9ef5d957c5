#include "apps/configuration.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

Configuration from_text(const std::string& text, const std::vector<SettingOverride>& overrides = {}) {
  const TemporaryFolder folder;
  std::ofstream(folder / "c.toml") << text;
  return resolve_configuration(folder / "c.toml", overrides);
}

std::string complaint(const std::string& text, const std::vector<SettingOverride>& overrides = {}) {
  try {
    from_text(text, overrides);
  } catch (const InvalidArgument& error) {
    const std::string message = error.what();
    const std::size_t file = message.find("c.toml:");
    return file == std::string::npos ? message : message.substr(file);
  }
  return "none";
}

TEST(ConfigurationTest, ProtocolAndKindChooseDefaultsWhereverTheyStand) {
  const Configuration configuration = from_text(
      "[[ranker]]\n"
      "alpha = 0.7\n"
      "kind = \"pdgd\"\n"
      "[[ranker]]\n"
      "kind = \"pairrank\"\n"
      "list = \"certain\"\n"
      "[protocol]\n"
      "name = \"reference\"\n");
  ASSERT_EQ(configuration.rankers.size(), 2U);
  EXPECT_EQ(configuration.rankers[0].name, "pdgd");
  EXPECT_EQ(configuration.rankers[0].explore.alpha, 0.7);
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

TEST(ConfigurationTest, OverridesReachAllRankersOrOne) {
  const std::string text = "[[ranker]]\nname = \"a\"\n[[ranker]]\nname = \"b\"\n";
  const Configuration configuration =
      from_text(text, {parse_override("ranker.alpha=0.5"), parse_override("ranker.b.alpha=0.9"),
                       parse_override("protocol.rounds=7")});
  EXPECT_EQ(configuration.rankers[0].explore.alpha, 0.5);
  EXPECT_EQ(configuration.rankers[1].explore.alpha, 0.9);
  EXPECT_EQ(configuration.protocol.rounds, 7);
}

TEST(ConfigurationTest, PrintedFormGivesItself) {
  const Configuration configuration = from_text(
      "[protocol]\nname = \"reference\"\nseeds = \"1-5\"\n[[ranker]]\nname = \"a\"\nalpha = "
      "0.3333333333333333\n"
      "[[ranker]]\nkind = \"mgd\"\n[data]\nsource = \"a \\\"quoted\\\" folder\"\n");
  const std::string printed = print_configuration(configuration);
  EXPECT_EQ(print_configuration(from_text(printed)), printed);
}

TEST(ConfigurationTest, ComplaintsNameThePlaceAndTheNearest) {
  EXPECT_EQ(complaint("[protocol]\nruonds = 3\n"),
            "c.toml:2:1: Unknown key 'ruonds' in [protocol]; the nearest known one is 'rounds'.");
  EXPECT_EQ(complaint("[protokol]\nrounds = 3\n"),
            "c.toml:1:1: Unknown table 'protokol'; the nearest known one is 'protocol'.");
  EXPECT_EQ(complaint("rounds = 3\n"),
            "c.toml:1:10: 'rounds' stands above all tables; put it under one of data, protocol, clicks, "
            "ranker or run.");
  EXPECT_EQ(complaint("[ranker]\nalpha = 1\n"), "c.toml:1:1: This table is written [[ranker]].");
  EXPECT_EQ(complaint("[[run]]\nout = \"x\"\n").substr(0, 7), "c.toml:");
  EXPECT_EQ(complaint("[[ranker]]\nalpha = -1\n"), "c.toml:2:9: 'alpha' is -1.0 but must be at least 0.");
  EXPECT_EQ(complaint("[[ranker]]\n[[ranker]]\n"),
            "Two rankers are called 'olranknet'; give each [[ranker]] a name of its own.");
  EXPECT_EQ(complaint("[[ranker]]\nname = \"a/b\"\n").substr(0, 23), "The ranker's name 'a/b'");
  EXPECT_EQ(complaint("[protocol]\nseeds = [1, 1]\n"),
            "The list protocol.seeds names something twice; each would be the same trial.");
  EXPECT_EQ(complaint("[clicks]\nmodels = []\n"),
            "The list clicks.models is empty; it needs at least one.");
  EXPECT_EQ(complaint("[run]\ndevice = \"gpu\"\n"),
            "'gpu' is not a device: use auto, cpu, cuda or cuda:N.");
}

TEST(ConfigurationTest, OverridesAreCheckedToo) {
  EXPECT_THROW(parse_override("alpha=1"), InvalidArgument);
  EXPECT_THROW(parse_override("ranker.alpha"), InvalidArgument);
  EXPECT_THROW(parse_override("data.x.source=1"), InvalidArgument);
  EXPECT_EQ(complaint("", {parse_override("rankre.alpha=1")}),
            "--set rankre.alpha: Unknown table 'rankre'; the nearest known one is 'ranker'.");
  EXPECT_EQ(complaint("", {parse_override("ranker.olranknte.alpha=1")}),
            "--set ranker.olranknte.alpha: There is no ranker 'olranknte'; the nearest is 'olranknet'.");
}

}  // namespace
}  // namespace olrank
