#include "olrank/ranker.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "olrank/model.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

constexpr std::int64_t kFeatures = 6;
constexpr std::int64_t kDocs = 15;

RankerOptions options_of(const std::string& kind) {
  RankerOptions options;
  options.kind = kind;
  options.features = kFeatures;
  if (kind == "olranknet" || kind == "ollambdarank" || kind == "p2neurrank")
    options.settings = {{"width", "8"}, {"steps", "5"}};
  return options;
}

/// Features of a round's query, a function of the round alone.
std::vector<float> docs_of(std::uint32_t round) {
  std::vector<float> docs(kDocs * kFeatures);
  std::uint32_t state = 12345 + 977 * round;
  for (float& value : docs) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(state >> 8) / 16777216.0F;
  }
  return docs;
}

std::vector<std::uint8_t> clicks_on(const ShownList& list, std::span<const float> docs) {
  std::vector<std::uint8_t> clicks;
  for (const std::int32_t doc : list.docs) clicks.push_back(docs[doc * kFeatures] > 0.6F ? 1 : 0);
  return clicks;
}

void play(Ranker& ranker, std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t round = first; round <= last; ++round) {
    const std::vector<float> docs = docs_of(round);
    const ShownList list = ranker.rank(docs);
    ranker.learn(list, clicks_on(list, docs));
  }
}

// tests/python/test_ranker.py plays the same class: its lists, states, widths and rewards.
TEST(LibraryRankerTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  for (const char* kind : {"pairrank", "olranknet", "p2linrank", "p2neurrank", "pdgd"}) {
    RankerOptions options = options_of(kind);
    Ranker one(options);
    options.threads = 2;
    Ranker two(options);
    play(one, 1, 10);
    play(two, 1, 10);
    EXPECT_EQ(one.fingerprint(), two.fingerprint()) << kind;
  }
}

TEST(LibraryRankerTest, TakesAnswersInAnyOrderAndEachOnce) {
  Ranker ranker(options_of("pairrank"));
  const std::vector<float> first_docs = docs_of(1);
  const std::vector<float> second_docs = docs_of(2);
  const ShownList first = ranker.rank(first_docs);
  const ShownList second = ranker.rank(second_docs);
  EXPECT_GT(ranker.learn(second, clicks_on(second, second_docs)), 0);
  ranker.learn(first, clicks_on(first, first_docs));
  EXPECT_EQ(message_of<InvalidArgument>([&] { ranker.learn(first, clicks_on(first, first_docs)); }),
            "List 1 was answered already.");
}

TEST(LibraryRankerTest, RefusesWhatItCannotUse) {
  EXPECT_EQ(message_of<InvalidArgument>([] { Ranker ranker({.kind = "pairrank"}); }),
            "features must be at least 1, not 0.");
  const std::string unknown_kind =
      message_of<InvalidArgument>([] { Ranker ranker({.kind = "pairank", .features = 2}); });
  EXPECT_EQ(unknown_kind.find("kind must be clickgp, pairrank, "), 0U) << unknown_kind;
  EXPECT_TRUE(contains(unknown_kind, "not 'pairank'. Did you mean 'pairrank'?"));
  const std::string unknown_key = message_of<InvalidArgument>([] {
    Ranker ranker({.features = 2, .settings = {{"widht", "5"}}});
  });
  EXPECT_TRUE(contains(unknown_key, "'widht'"));
  EXPECT_TRUE(contains(unknown_key, "'width'"));

  Ranker ranker(options_of("pairrank"));
  EXPECT_EQ(message_of<InvalidArgument>([&] { ranker.rank(std::vector<float>(7)); }),
            "There are 7 feature values: give every document 6, one document at least.");
  std::vector<float> docs = docs_of(1);
  docs[7] = std::nanf("");
  EXPECT_EQ(message_of<InvalidArgument>([&] { ranker.rank(docs); }),
            "Feature 2 of document 1 is not finite.");
  RankerOptions raw = options_of("pairrank");
  raw.normalise = "none";
  Ranker unscaled(raw);
  docs[7] = 2e12F;
  EXPECT_EQ(message_of<InvalidArgument>([&] { unscaled.rank(docs); }),
            "Feature 2 of document 1 gives the input 2e+12, beyond the limit of ±1e+12: normalise the "
            "features.");
  const ShownList list = ranker.rank(docs_of(1));
  EXPECT_EQ(message_of<InvalidArgument>([&] { ranker.learn(list, std::vector<std::uint8_t>(3)); }),
            "There are 3 clicks for 10 shown documents: give one value for each rank, 0 or 1.");
  std::vector<std::uint8_t> clicks(10);
  clicks[4] = 2;
  EXPECT_EQ(message_of<InvalidArgument>([&] { ranker.learn(list, clicks); }),
            "The click at rank 5 is 2: it must be 0 or 1.");
  Ranker other(options_of("pairrank"));
  EXPECT_EQ(message_of<InvalidArgument>([&] { other.learn(list, std::vector<std::uint8_t>(10)); }),
            "This list is not from this ranker: give it to the ranker whose rank() made it.");
  EXPECT_EQ(message_of<InvalidArgument>(
                [] { Ranker ranker({.kind = "dbgd", .features = 2, .normalise = "zscore"}); }),
            "normalise: 'zscore' needs the means and deviations of a data set: scale the "
            "features yourself and choose 'none', or choose 'query-minmax'.");
}

TEST(LibraryRankerTest, RefusesRewardsAndWidthsThatThereAreNone) {
  const std::vector<std::uint8_t> clicks = {0, 1, 0, 1, 0, 0, 0, 0, 0, 0};
  Ranker ranker(options_of("pairrank"));
  const ShownList list = ranker.rank(docs_of(1));
  for (const auto& [reward, said] :
       {std::pair{-2.0, "-2"}, std::pair{std::numeric_limits<double>::infinity(), "inf"}}) {
    std::vector<double> rewards(10, 1.0);
    rewards[1] = reward;
    EXPECT_EQ(message_of<InvalidArgument>([&] { ranker.learn(list, clicks, rewards); }),
              std::string("The reward at rank 2 is ") + said + ": it must be a number of at least 0.");
  }
  Ranker bandit(options_of("pdgd"));
  EXPECT_TRUE(contains(message_of<InvalidArgument>([&] { bandit.widths(docs_of(1)); }),
                       "A 'pdgd' has no widths: "));
}

TEST(LibraryRankerTest, SavesASnapshotThatKnowsItsDocuments) {
  const TemporaryFolder folder;
  Ranker ranker(options_of("clickgp"));
  for (std::uint32_t round = 0; round < 20; ++round) {
    const std::vector<float> docs = docs_of(round % 2);
    const ShownList list = ranker.rank(docs, round % 2 == 0 ? "a" : "b");
    std::vector<std::uint8_t> clicks;
    for (const std::int32_t doc : list.docs) clicks.push_back(doc % 3 == 0 ? 1 : 0);
    ranker.learn(list, clicks);
  }
  ranker.save(folder / "ranker");
  const Model model = Model::load(folder / "ranker");
  const std::vector<std::string> names = {"a", "b"};
  std::vector<float> both = docs_of(0);
  const std::vector<float> second = docs_of(1);
  both.insert(both.end(), second.begin(), second.end());
  const std::int64_t offsets[] = {0, kDocs, 2 * kDocs};
  const std::vector<double> scores = model.score(both, offsets, names);
  const ShownList first_list = ranker.rank(docs_of(0), "a");
  for (std::int64_t doc = 0; doc < kDocs; ++doc)
    EXPECT_EQ(static_cast<float>(scores[doc]), first_list.scores[doc]);
  EXPECT_EQ(model.score(second, {}, std::span(names).last(1)),
            std::vector<double>(scores.begin() + kDocs, scores.end()));
  EXPECT_NE(model.score(second, {}, std::span(names).first(1)),
            std::vector<double>(scores.begin() + kDocs, scores.end()));
  EXPECT_EQ(model.score(second, {}, std::span(names).first(1)), model.score(second));
  EXPECT_EQ(message_of<InvalidArgument>([&] { model.score(second, {}, names); }),
            "There are 2 names of 1 queries and 0 IDs of 15 documents: give one for each.");
  EXPECT_EQ(message_of<InvalidArgument>([&] { model.score(second, {}, {}, names); }),
            "There are 0 names of 1 queries and 2 IDs of 15 documents: give one for each.");

  Ranker forgets(options_of("pairrank"));
  forgets.save(folder / "pairrank");
  const std::string refusal = message_of<IoError>([&] { Model::load(folder / "pairrank"); });
  EXPECT_TRUE(contains(refusal, "Only a clickgp remembers documents"));
}

TEST(LibraryRankerTest, RefusesListsThatNoUserSaw) {
  Ranker ranker(options_of("pairrank"));
  const auto refused = [&](std::vector<std::int32_t> shown) {
    return message_of<InvalidArgument>([&] { ranker.shown_list(docs_of(1), shown); });
  };
  EXPECT_EQ(refused({}), "The list is empty: a list shows one document at least.");
  EXPECT_EQ(refused({0, 15}),
            "The list shows document 15, but the query has 15: documents are numbered from 0.");
  EXPECT_EQ(refused({-1}),
            "The list shows document -1, but the query has 15: documents are numbered from 0.");
  EXPECT_EQ(refused({3, 1, 3}), "The list shows document 3 twice.");
  EXPECT_EQ(refused({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}),
            "The list shows 11 documents, but this ranker's lists have at most 10: create the ranker with "
            "cutoff = 11.");
  EXPECT_EQ(ranker.rounds(), 0U);
}

TEST(LibraryRankerTest, BanditsLearnFromTheirLatestListOnly) {
  Ranker ranker(options_of("dbgd"));
  const ShownList first = ranker.rank(docs_of(1));
  ranker.rank(docs_of(2));
  EXPECT_EQ(message_of<InvalidArgument>([&] { ranker.learn(first, std::vector<std::uint8_t>(10)); }),
            "A 'dbgd' learns from its latest list only, which is 2, not 1.");
}

}  // namespace
}  // namespace olrank
