#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "olrank/data.h"
#include "olrank/evaluation.h"
#include "olrank/experiment.h"
#include "olrank/model.h"
#include "olrank/ranker.h"
#include "olrank/settings.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

struct Arrays {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  std::vector<std::uint8_t> grades = {0, 2, 1};
  std::vector<std::int64_t> offsets = {0, 2, 3};

  RankingData data(std::vector<std::string> names = {}) const {
    return RankingData::of(nullptr, values, 2, grades, offsets, std::move(names));
  }
};

TEST(RankingDataTest, IsAViewOfArrays) {
  const Arrays arrays;
  const RankingData data = arrays.data();
  EXPECT_EQ(data.values().data(), arrays.values.data());
  EXPECT_EQ(data.docs(), 3);
  EXPECT_EQ(data.queries(), 2);
  EXPECT_EQ(data.features(), 2);
  EXPECT_EQ(data.name(1), "2");
  EXPECT_EQ(arrays.data({"jacket", "coat"}).name(1), "coat");
}

TEST(RankingDataTest, KeepsTheOwnerOfItsArraysAlive) {
  auto owner = std::make_shared<Arrays>();
  const std::weak_ptr<Arrays> watched = owner;
  auto data = std::make_unique<RankingData>(
      RankingData::of(owner, owner->values, 2, owner->grades, owner->offsets));
  owner.reset();
  EXPECT_FALSE(watched.expired());
  data.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(RankingDataTest, ReadsBackWhatItWrites) {
  const TemporaryFolder folder;
  const Arrays arrays;
  const RankingData data = arrays.data({"a", "b"});
  data.write(folder / "data.txt");
  EXPECT_EQ(RankingData::load((folder / "data.txt").string()).fingerprint(), data.fingerprint());
}

TEST(RankingDataTest, RefusesArraysThatDoNotFit) {
  const Arrays usual;
  const std::pair<Arrays, std::string> rows[] = {
      {{{1, 2, 3, 4, 5}}, "There are 5 feature values for 3 grades and 2 features: give 6."},
      {{usual.values, usual.grades, {0, 2}}, "The offsets of queries must begin with 0 and end with 3."},
      {{usual.values, usual.grades, {0, 2, 2, 3}}, "Query 1 has no documents: leave it out."},
      {{{1, 2, 3, std::nanf(""), 5, 6}}, "Feature 2 of document 1 is not finite."},
      {{usual.values, {0, 2, 32}}, "The grade of document 2 is 32: it must be 0 to 31."}};
  for (const auto& [arrays, message] : rows)
    EXPECT_EQ(message_of<InvalidArgument>([&, &wrong = arrays] { wrong.data(); }), message);
  EXPECT_EQ(message_of<InvalidArgument>([] { Arrays().data({"one"}); }),
            "There are 1 names for 2 queries.");
}

// The first query is ordered wrongly, the second has one relevant document.
TEST(MeasureScoresTest, GivesMeansAndTheValuesOfQueries) {
  const Arrays arrays;
  const MetricValues values = measure_scores(arrays.data(), std::vector<double>{2, 1, 0},
                                             {.at = {1, 2}, .metrics = {"map@1"}, .by_query = true});
  EXPECT_EQ(values.queries, 2);
  ASSERT_EQ(values.means.front().first, "ndcg@1");
  EXPECT_EQ(values.means.front().second, 0.5);
  EXPECT_EQ(values.by_query[0][0], 0.0);
  EXPECT_EQ(values.by_query[1][0], 1.0);
  EXPECT_NEAR(values.by_query[0][1], 1.0 / std::log2(3.0), 1e-15);
  EXPECT_EQ(values.means.back().first, "map@1");
  EXPECT_EQ(message_of<InvalidArgument>([&] {
              measure_scores(arrays.data(), std::vector<double>{2, 1, 0}, {.convention = "letr"});
            }).find("convention must be"),
            0U);
}

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

  const std::filesystem::path alone = folder / "alone/model.safetensors";
  std::filesystem::create_directory(alone.parent_path());
  std::filesystem::copy(played.out / "trials/pairrank/perfect/fold1/seed1/model.safetensors", alone);
  EXPECT_NE(message_of<InvalidArgument>([&] {
              Ranker::load(alone.parent_path());
            }).find("goes on from its trial's checkpoint"),
            std::string::npos);
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
  EXPECT_TRUE(
      contains(message_of<InvalidArgument>([&] { play_experiment(options); }), "already contains results"));
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

const FitOptions kFew = {.settings = {{"loss", "listnet"}, {"network", "linear"}, {"epochs", "3"}}};

TEST(FitModelTest, HasTheSameBitsOnAnyNumberOfThreadsAndInItsFile) {
  const TemporaryFolder folder;
  const RankingData data = RankingData::load("synth:small?queries=20");
  FitOptions two = kFew;
  two.threads = 2;
  const Model model = fit_model(data, {}, kFew);
  EXPECT_EQ(fit_model(data, {}, two).bytes(), model.bytes());
  model.save(folder / "model.safetensors");
  const Model loaded = Model::load(folder / "model.safetensors");
  EXPECT_EQ(loaded.score(data.values(), data.offsets()), model.score(data.values(), data.offsets()));
  FitOptions other = kFew;
  other.settings["epochs"] = "2";
  EXPECT_NE(fit_model(data, {}, other).bytes(), model.bytes());
}

// Inputs are normalised by query.
TEST(ModelTest, ScoresQueriesByThemselves) {
  const RankingData data = RankingData::load("synth:small?queries=20");
  const Model model = fit_model(data, {}, kFew);
  const std::vector<double> all = model.score(data.values(), data.offsets());
  const std::int64_t first = data.offsets()[3];
  const std::int64_t last = data.offsets()[4];
  const auto query = data.values().subspan(first * data.features(), (last - first) * data.features());
  EXPECT_EQ(model.score(query), std::vector<double>(all.begin() + first, all.begin() + last));
}

TEST(ModelTest, RefusesWhatItCannotScore) {
  const RankingData data = RankingData::load("synth:small?queries=20");
  const Model model = fit_model(data, {}, kFew);
  EXPECT_EQ(message_of<InvalidArgument>([&] { model.score(std::vector<float>(7)); }),
            "There are 7 feature values: give every document 10, one document at least.");
  EXPECT_EQ(message_of<InvalidArgument>([&] {
              model.score(std::vector<float>(20), std::vector<std::int64_t>{0, 3});
            }),
            "The offsets of queries must rise from 0 to the 2 documents.");
  const std::string unknown = message_of<InvalidArgument>([&] {
    fit_model(data, {}, {.settings = {{"los", "listnet"}}});
  });
  EXPECT_TRUE(contains(unknown, "'loss'"));
}

}  // namespace
}  // namespace olrank
