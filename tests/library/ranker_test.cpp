#include "olrank/ranker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

class LibraryRankerTest : public testing::TestWithParam<const char*> {};

TEST_P(LibraryRankerTest, SavesAndLoadsToTheSameBits) {
  const TemporaryFolder folder;
  Ranker whole(options_of(GetParam()));
  play(whole, 1, 20);
  whole.save(folder.path() / "state");
  Ranker loaded = Ranker::load(folder.path() / "state");
  EXPECT_EQ(loaded.rounds(), 20U);
  EXPECT_EQ(loaded.fingerprint(), whole.fingerprint());
  play(whole, 21, 30);
  play(loaded, 21, 30);
  EXPECT_EQ(loaded.fingerprint(), whole.fingerprint());
}

TEST_P(LibraryRankerTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  RankerOptions options = options_of(GetParam());
  Ranker one(options);
  options.threads = 2;
  Ranker two(options);
  play(one, 1, 10);
  play(two, 1, 10);
  EXPECT_EQ(one.fingerprint(), two.fingerprint());
}

TEST_P(LibraryRankerTest, LearnsTheListsOfALogAsItsOwn) {
  Ranker shows(options_of(GetParam()));
  Ranker learns(options_of(GetParam()));
  for (std::uint32_t round = 1; round <= 8; ++round) {
    const std::vector<float> docs = docs_of(round);
    const ShownList list = shows.rank(docs, "query");
    shows.learn(list, clicks_on(list, docs));
    const ShownList same = learns.shown_list(docs, list.docs, "query");
    EXPECT_EQ(same.scores.size(), list.scores.size());
    learns.learn(same, clicks_on(list, docs));
    EXPECT_EQ(learns.fingerprint(), shows.fingerprint()) << "round " << round;
  }
}

TEST_P(LibraryRankerTest, LearnsWhatUsersClick) {
  Ranker ranker(options_of(GetParam()));
  play(ranker, 1, 150);
  // The clicked documents' first feature is above 0.6: their scores are the higher ones in most pairs.
  int right = 0;
  int pairs = 0;
  for (std::uint32_t round = 1001; round <= 1010; ++round) {
    const std::vector<float> docs = docs_of(round);
    const std::vector<float> scores = ranker.score(docs);
    for (std::int64_t i = 0; i < kDocs; ++i) {
      for (std::int64_t j = 0; j < kDocs; ++j) {
        if (!(docs[i * kFeatures] > 0.6F) || docs[j * kFeatures] > 0.6F) continue;
        ++pairs;
        right += scores[i] > scores[j] ? 1 : 0;
      }
    }
  }
  EXPECT_GT(right, 0.7 * pairs) << right << " of " << pairs;
}

INSTANTIATE_TEST_SUITE_P(Kinds, LibraryRankerTest,
                         testing::Values("pairrank", "olranknet", "p2linrank", "p2neurrank", "pdgd"));

TEST(LibraryRankerTest, ReportsCertainPairsAndWidths) {
  RankerOptions options = options_of("pairrank");
  options.settings["alpha"] = "0.01";
  Ranker ranker(options);
  play(ranker, 1, 100);
  const std::vector<float> docs = docs_of(200);
  const ShownList list = ranker.rank(docs, "q", true);
  ASSERT_EQ(list.docs.size(), 10U);
  ASSERT_EQ(list.scores.size(), static_cast<std::size_t>(kDocs));
  ASSERT_EQ(list.widths.size(), static_cast<std::size_t>(kDocs * kDocs));
  EXPECT_FALSE(list.certain.empty());
  for (const CertainPair& pair : list.certain) {
    EXPECT_GT(list.scores[pair.first], list.scores[pair.second]);
    const double width = list.widths[pair.first * kDocs + pair.second];
    EXPECT_GT(width, 0.0);
    const double margin = list.scores[pair.first] - list.scores[pair.second];
    EXPECT_GT(0.5 * std::tanh(0.5 * margin), 0.01 * width);
  }
}

TEST(LibraryRankerTest, LooksAtWidthsWithoutChangingAnything) {
  Ranker ranker(options_of("pairrank"));
  play(ranker, 1, 20);
  const std::string before = ranker.fingerprint();
  const std::vector<float> docs = docs_of(300);
  const std::vector<double> widths = ranker.widths(docs);
  EXPECT_EQ(ranker.fingerprint(), before);
  EXPECT_EQ(ranker.rank(docs, {}, true).widths, widths);
  Ranker bandit(options_of("pdgd"));
  EXPECT_EQ(message_of<InvalidArgument>([&] { bandit.widths(docs); }).find("A 'pdgd' has no widths: "), 0U);
}

TEST(LibraryRankerTest, ShowsFewerRanksOnRequest) {
  RankerOptions options = options_of("pairrank");
  options.settings["alpha"] = "0.01";
  Ranker ranker(options);
  play(ranker, 1, 30);
  Ranker twin = Ranker::from_bytes(ranker.bytes());
  const std::vector<float> docs = docs_of(400);
  const ShownList three = ranker.rank(docs, {}, false, 3);
  const ShownList ten = twin.rank(docs);
  EXPECT_EQ(three.docs, std::vector<std::int32_t>(ten.docs.begin(), ten.docs.begin() + 3));
  EXPECT_LT(three.certain.size(), ten.certain.size());
  for (const CertainPair& pair : three.certain) {
    EXPECT_EQ(std::count(three.docs.begin(), three.docs.end(), pair.first), 1);
    EXPECT_EQ(std::count(three.docs.begin(), three.docs.end(), pair.second), 1);
  }
  EXPECT_EQ(message_of<InvalidArgument>([&] { ranker.rank(docs, {}, false, 11); }),
            "This ranker makes lists of 10 ranks, not 11: create it with cutoff = 11.");
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
  EXPECT_NE(unknown_kind.find("not 'pairank'. Did you mean 'pairrank'?"), std::string::npos)
      << unknown_kind;
  const std::string unknown_key = message_of<InvalidArgument>([] {
    Ranker ranker({.features = 2, .settings = {{"widht", "5"}}});
  });
  EXPECT_NE(unknown_key.find("'widht'"), std::string::npos) << unknown_key;
  EXPECT_NE(unknown_key.find("'width'"), std::string::npos) << unknown_key;

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

TEST(LibraryRankerTest, RewardsCountPairsAsOften) {
  const std::vector<std::uint8_t> clicks = {0, 1, 0, 1, 0, 0, 0, 0, 0, 0};
  const auto scores_after = [&](std::vector<double> rewards) {
    Ranker ranker(options_of("pairrank"));
    ranker.learn(ranker.rank(docs_of(1)), clicks, rewards);
    return ranker.score(docs_of(2));
  };
  const std::vector<float> plain = scores_after({});
  EXPECT_EQ(scores_after(std::vector<double>(10, 1.0)), plain);
  EXPECT_NE(scores_after({0, 1, 0, 10, 0, 0, 0, 0, 0, 0}), plain);
  Ranker ranker(options_of("pairrank"));
  const ShownList list = ranker.rank(docs_of(1));
  EXPECT_EQ(message_of<InvalidArgument>([&] { ranker.learn(list, clicks, std::vector<double>(3)); }),
            "There are 3 rewards for 10 shown documents: give one for each rank.");
  std::vector<double> wrong(10, 1.0);
  wrong[1] = -2.0;
  EXPECT_EQ(message_of<InvalidArgument>([&] { ranker.learn(list, clicks, wrong); }),
            "The reward at rank 2 is -2: it must be a number of at least 0.");
  wrong[1] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(message_of<InvalidArgument>([&] { ranker.learn(list, clicks, wrong); }),
            "The reward at rank 2 is inf: it must be a number of at least 0.");
  Ranker remembers(options_of("clickgp"));
  remembers.learn(remembers.rank(docs_of(1)), clicks, std::vector<double>(10, 2.0));
  Ranker duels(options_of("dbgd"));
  const ShownList other = duels.rank(docs_of(1));
  EXPECT_EQ(message_of<InvalidArgument>([&] { duels.learn(other, clicks, std::vector<double>(10, 1.0)); }),
            "A 'dbgd' learns from clicks alone: leave rewards out.");
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
  EXPECT_NE(refusal.find("Only a clickgp remembers documents"), std::string::npos) << refusal;
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
