#include "olrank/model.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

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
  EXPECT_NE(unknown.find("'loss'"), std::string::npos) << unknown;
}

}  // namespace
}  // namespace olrank
