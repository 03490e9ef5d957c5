#include "olrank/experiment.h"

#include <gtest/gtest.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "olrank/ranker.h"
#include "olrank/settings.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

ExperimentOptions small(const TemporaryFolder& folder) {
  ExperimentOptions options;
  options.configuration = R"(
[data]
source = "synth:small?queries=20"
[protocol]
rounds = 6
eval_every = 3
seeds = [1]
[clicks]
models = ["perfect"]
[run]
device = "cpu"
[[ranker]]
kind = "pairrank"
)";
  options.out = (folder / "out").string();
  return options;
}

TEST(PlayExperimentTest, TellsItsEventsAndLeavesAFolder) {
  const TemporaryFolder folder;
  ExperimentOptions options = small(folder);
  std::multiset<std::string> events;
  options.on_event = [&](std::string_view event) {
    events.insert(nlohmann::json::parse(event)["event"].get<std::string>());
  };
  const PlayedExperiment played = play_experiment(options);
  EXPECT_EQ(played.signal, 0);
  EXPECT_TRUE(played.failures.empty());
  EXPECT_EQ(events.count("experiment_started"), 1U);
  EXPECT_EQ(events.count("evaluation"), 3U);
  EXPECT_EQ(events.count("finished"), 1U);
  EXPECT_TRUE(std::filesystem::exists(played.out / "report.html"));
  EXPECT_TRUE(std::filesystem::exists(played.out / "summary.csv"));
  const std::vector<ExperimentFigure> figures = experiment_figures(played.out);
  ASSERT_FALSE(figures.empty());
  EXPECT_EQ(figures.front().svg.find("<svg"), 0U);
  EXPECT_NE(experiment_figures(played.out, true).front().svg, figures.front().svg);

  // The ranker of its trial goes on.
  Ranker ranker = Ranker::load(played.out / "trials/pairrank/perfect/fold1/seed1");
  EXPECT_EQ(ranker.rounds(), 6U);
  EXPECT_EQ(ranker.kind(), "pairrank");
  const std::string state = ranker.bytes();
  EXPECT_EQ(Ranker::from_bytes(state).fingerprint(), ranker.fingerprint());
}

TEST(PlayExperimentTest, RefusesWhatTheProgramRefuses) {
  const TemporaryFolder folder;
  ExperimentOptions options = small(folder);
  options.configuration += "widht = 3\n";
  options.origin = "mine.toml";
  EXPECT_EQ(message_of<InvalidArgument>([&] { play_experiment(options); }).find("mine.toml:14:1: "), 0U);
  options = small(folder);
  options.configuration += "[sweep]\nalpha = [0.1, 0.2]\n";
  EXPECT_NE(message_of<InvalidArgument>([&] { play_experiment(options); }), "");
  options = small(folder);
  play_experiment(options);
  EXPECT_NE(message_of<InvalidArgument>([&] { play_experiment(options); }).find("already contains results"),
            std::string::npos);
  options.earlier = EarlierResults::kResume;
  EXPECT_EQ(play_experiment(options).signal, 0);
}

TEST(SettingsJsonTest, DescribesEverySetting) {
  const auto tables = nlohmann::json::parse(settings_json())["tables"];
  std::set<std::string> names;
  for (const auto& table : tables) {
    names.insert(table["table"].get<std::string>());
    for (const auto& setting : table["settings"]) {
      EXPECT_FALSE(setting["help"].get<std::string>().empty()) << setting;
      EXPECT_FALSE(setting["kind"].get<std::string>().empty()) << setting;
    }
  }
  EXPECT_TRUE(names.contains("ranker"));
  EXPECT_TRUE(names.contains("train"));
  EXPECT_TRUE(names.contains("data"));
}

}  // namespace
}  // namespace olrank
