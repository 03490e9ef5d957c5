#include "olrank/c_api.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "olrank/model.h"
#include "olrank/ranker.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

constexpr std::int64_t kInputs = 6;
constexpr std::int64_t kRows = 15;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
const char* const kPairRank[] = {"kind", "pairrank", "alpha", "0.01", "seed", "7", nullptr};

using RankerHandle = std::unique_ptr<olrank_ranker, decltype(&olrank_ranker_free)>;
using ModelHandle = std::unique_ptr<olrank_model, decltype(&olrank_model_free)>;
using ListHandle = std::unique_ptr<olrank_list, decltype(&olrank_list_free)>;

RankerHandle ranker_of(const char* const* settings) {
  olrank_ranker* ranker = nullptr;
  EXPECT_EQ(olrank_ranker_create(kInputs, settings, &ranker), OLRANK_OK) << olrank_last_error();
  return {ranker, &olrank_ranker_free};
}

ListHandle list_of(olrank_ranker* ranker, const std::vector<float>& values) {
  olrank_list* list = nullptr;
  EXPECT_EQ(olrank_ranker_rank(ranker, values.data(), kRows, "q", 0, &list), OLRANK_OK)
      << olrank_last_error();
  return {list, &olrank_list_free};
}

std::vector<float> values_of(int round) {
  std::vector<float> values(kRows * kInputs);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::fmod(0.618034 * static_cast<double>(i + 1) * (round + 1), 1.0));
  return values;
}

std::vector<std::uint8_t> clicks_on(const olrank_list& list, const std::vector<float>& values) {
  std::vector<std::uint8_t> clicks;
  for (std::int64_t rank = 0; rank < list.ranks; ++rank)
    clicks.push_back(values[list.docs[rank] * kInputs] > 0.6F ? 1 : 0);
  return clicks;
}

/// The sentence of a call that has to fail with `status`.
std::string sentence(olrank_status expected, olrank_status status) {
  EXPECT_EQ(status, expected) << olrank_last_error();
  return olrank_last_error();
}

TEST(CInterfaceTest, RanksLearnsAndScoresAsTheClassesDo) {
  const TemporaryFolder folder;
  const std::string state = (folder / "state").string();
  const std::string file = (folder / "model.safetensors").string();
  RankerHandle ranker = ranker_of(kPairRank);
  Ranker twin({.kind = "pairrank", .features = kInputs, .seed = 7, .settings = {{"alpha", "0.01"}}});
  std::int64_t certain = 0;
  for (int round = 1; round <= 60; ++round) {
    if (round == 30) {  // goes on from its file
      ASSERT_EQ(olrank_ranker_save(ranker.get(), state.c_str()), OLRANK_OK) << olrank_last_error();
      olrank_ranker* loaded = nullptr;
      ASSERT_EQ(olrank_ranker_load(state.c_str(), 1, 0, nullptr, &loaded), OLRANK_OK)
          << olrank_last_error();
      ranker.reset(loaded);
    }
    const std::vector<float> values = values_of(round);
    const ListHandle list = list_of(ranker.get(), values);
    const ShownList expected = twin.rank(values, "q");
    ASSERT_EQ(std::vector(list->docs, list->docs + list->ranks), expected.docs);
    ASSERT_EQ(std::vector(list->scores, list->scores + list->all_docs), expected.scores);
    ASSERT_EQ(list->certain_pairs, std::ssize(expected.certain));
    for (std::int64_t pair = 0; pair < list->certain_pairs; ++pair) {
      EXPECT_EQ(list->certain[pair].first, expected.certain[pair].first);
      EXPECT_EQ(list->certain[pair].second, expected.certain[pair].second);
    }
    certain += list->certain_pairs;
    EXPECT_EQ(list->propensity == nullptr, expected.propensity.empty());
    const std::vector<std::uint8_t> clicks = clicks_on(*list, values);
    std::vector<double> rewards;
    if (round % 2 == 0) rewards.assign(clicks.size(), 2.0);
    ASSERT_EQ(olrank_ranker_learn(ranker.get(), list.get(), clicks.data(),
                                  rewards.empty() ? nullptr : rewards.data(), list->ranks),
              OLRANK_OK)
        << olrank_last_error();
    twin.learn(expected, clicks, rewards);
  }
  EXPECT_GT(certain, 0);

  const std::vector<float> values = values_of(100);
  std::vector<float> scores(kRows);
  ASSERT_EQ(olrank_ranker_score(ranker.get(), values.data(), kRows, scores.data()), OLRANK_OK);
  EXPECT_EQ(scores, twin.score(values));
  ASSERT_EQ(olrank_ranker_save_model(ranker.get(), file.c_str()), OLRANK_OK) << olrank_last_error();
  olrank_model* loaded = nullptr;
  ASSERT_EQ(olrank_model_load(file.c_str(), 0, &loaded), OLRANK_OK) << olrank_last_error();
  const ModelHandle model(loaded, &olrank_model_free);
  std::int64_t features = 0;
  ASSERT_EQ(olrank_model_features(loaded, &features), OLRANK_OK);
  EXPECT_EQ(features, kInputs);
  const std::vector<std::int64_t> offsets = {0, 4, kRows};
  std::vector<double> of_model(kRows);
  ASSERT_EQ(olrank_model_score(loaded, values.data(), kRows, offsets.data(), 2, of_model.data()),
            OLRANK_OK);
  EXPECT_EQ(of_model, Model::load(file).score(values, offsets));
  ASSERT_EQ(olrank_model_score(loaded, values.data(), kRows, nullptr, 0, of_model.data()), OLRANK_OK);
  EXPECT_EQ(of_model, Model::load(file).score(values));
  EXPECT_EQ(olrank_version(), library_version());
}

TEST(CInterfaceTest, SaysTheProbabilityOfEachRank) {
  const char* const settings[] = {"kind", "pdgd", "cutoff", "3", nullptr};
  const RankerHandle ranker = ranker_of(settings);
  const ListHandle list = list_of(ranker.get(), values_of(1));
  EXPECT_EQ(list->ranks, 3);
  ASSERT_NE(list->propensity, nullptr);
  EXPECT_NEAR(list->propensity[0], 1.0 / kRows, 1e-6);
}

TEST(CInterfaceTest, RefusesInOneSentence) {
  const TemporaryFolder folder;
  constexpr olrank_status kWrong = OLRANK_INVALID_ARGUMENT;
  olrank_model* model = nullptr;
  olrank_ranker* none = nullptr;
  EXPECT_EQ(sentence(kWrong, olrank_model_load(nullptr, 0, &model)), "file is NULL.");
  EXPECT_EQ(sentence(kWrong, olrank_model_load("model.safetensors", 0, nullptr)), "model is NULL.");
  const std::string missing = (folder / "missing").string();
  const std::string of_missing = sentence(OLRANK_IO_ERROR, olrank_model_load(missing.c_str(), 0, &model));
  EXPECT_TRUE(contains(of_missing, missing));
  EXPECT_EQ(of_missing.back(), '.');
  sentence(OLRANK_IO_ERROR, olrank_ranker_load(missing.c_str(), 1, 0, nullptr, &none));
  const std::string damaged = (folder / "damaged").string();
  std::ofstream(damaged) << "no model";
  sentence(OLRANK_DATA_ERROR, olrank_model_load(damaged.c_str(), 0, &model));
  EXPECT_EQ(model, nullptr);

  const auto created = [&](std::int64_t features, std::vector<const char*> settings) {
    settings.push_back(nullptr);
    return sentence(kWrong, olrank_ranker_create(features, settings.data(), &none));
  };
  EXPECT_EQ(sentence(kWrong, olrank_ranker_create(2, nullptr, nullptr)), "ranker is NULL.");
  EXPECT_EQ(created(0, {}), "features must be at least 1, not 0.");
  EXPECT_EQ(created(kMost, {"kind", "olranknet"}),
            "features must be at most 10000000, not 9223372036854775807.");
  EXPECT_TRUE(contains(created(2, {"widht", "5"}), "Did you mean 'width'?"));
  EXPECT_EQ(created(2, {"width"}), "The setting 'width' has no value.");
  EXPECT_EQ(created(2, {"seed", "-1"}), "seed must be 0 to 9223372036854775807, not -1.");
  EXPECT_EQ(created(2, {"threads", "many"}), "threads must be an integer, not 'many'.");
  EXPECT_EQ(none, nullptr);

  const RankerHandle ranker = ranker_of(kPairRank);
  std::vector<float> values = values_of(1);
  const auto ranked = [&](const float* from, std::int64_t docs, std::int64_t ranks = 0) {
    olrank_list* list = nullptr;
    return sentence(kWrong, olrank_ranker_rank(ranker.get(), from, docs, nullptr, ranks, &list));
  };
  EXPECT_EQ(ranked(nullptr, 3), "values is NULL.");
  EXPECT_EQ(ranked(values.data(), -1), "values cannot have -1 rows.");
  EXPECT_EQ(ranked(values.data(), kMost / 4), "values cannot have 2305843009213693951 rows.");
  const ListHandle list = list_of(ranker.get(), values);
  const std::vector<std::uint8_t> clicks(10);
  EXPECT_EQ(sentence(kWrong, olrank_ranker_learn(ranker.get(), nullptr, clicks.data(), nullptr, 10)),
            "list is NULL.");
  EXPECT_EQ(sentence(kWrong, olrank_ranker_learn(ranker.get(), list.get(), nullptr, nullptr, 10)),
            "clicks is NULL.");
  EXPECT_EQ(sentence(kWrong, olrank_ranker_learn(nullptr, list.get(), clicks.data(), nullptr, 10)),
            "ranker is NULL.");
  sentence(OLRANK_IO_ERROR, olrank_ranker_save(ranker.get(), (missing + "/state").c_str()));

  const std::string file = (folder / "model.safetensors").string();
  ASSERT_EQ(olrank_ranker_save_model(ranker.get(), file.c_str()), OLRANK_OK);
  ASSERT_EQ(olrank_model_load(file.c_str(), 0, &model), OLRANK_OK);
  const ModelHandle owned(model, &olrank_model_free);
  std::vector<double> scores(kRows);
  const auto scored = [&](const std::vector<std::int64_t>& offsets, std::int64_t queries) {
    return sentence(
        kWrong, olrank_model_score(model, values.data(), kRows, offsets.empty() ? nullptr : offsets.data(),
                                   queries, scores.data()));
  };
  EXPECT_EQ(scored({}, 2), "offsets is NULL.");
  olrank_model_free(nullptr);
  olrank_list_free(nullptr);
  olrank_ranker_free(nullptr);
}

TEST(CInterfaceTest, KeepsTheErrorOfEachThread) {
  EXPECT_EQ(olrank_model_load(nullptr, 0, nullptr), OLRANK_INVALID_ARGUMENT);
  std::string before = "something";
  std::thread([&] { before = olrank_last_error(); }).join();
  EXPECT_EQ(before, "");
  EXPECT_STREQ(olrank_last_error(), "model is NULL.");
}

}  // namespace
}  // namespace olrank
