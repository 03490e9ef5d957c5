#include "sim/recorded_feedback.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/feedback/feedback_record.h"
#include "core/io/atomic_file.h"
#include "core/io/byte_stream.h"
#include "core/random/rng_stream.h"
#include "tests/core/metrics/small_data.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

using Docs = std::vector<std::int32_t>;
using Clicks = std::vector<std::uint8_t>;

Dataset letor_data() {
  return make_dataset({{"10", {1, 0, 2}, {"GX1", "GX2", "say \"\\hi"}},
                       {"q-11", {0, 1}, {}},
                       {"12", {1, 1, 0}, {"twin", "twin", ""}}});
}

RecordedFeedback read(const std::string& bytes) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "r.jsonl", bytes);
  return RecordedFeedback::read(folder / "r.jsonl", letor_data());
}

std::string refusal_of(const std::string& bytes) {
  const std::string message = message_of<DataError>([&] { read(bytes); });
  return message == kNoError ? message : message.substr(message.find("r.jsonl:") + 8);
}

void expect_record(const RecordedFeedback& recorded, std::int64_t index, std::int64_t query,
                   const Docs& shown, const Clicks& clicks) {
  const RecordedFeedback::Record record = recorded.at(index);
  EXPECT_EQ(record.query, query) << index;
  EXPECT_EQ(Docs(record.shown.begin(), record.shown.end()), shown) << index;
  EXPECT_EQ(Clicks(record.clicks.begin(), record.clicks.end()), clicks) << index;
}

const std::string kGood = R"({"qid": "10", "shown": [2, 0], "clicks": [0, 1]})";

TEST(RecordedFeedbackTest, ReadsIndicesAndNames) {
  const RecordedFeedback recorded =
      read(kGood + "\n" +
           R"({"clicks": [true, false], "shown": [1, 0], "qid": "q-11"})"
           "\r\n"
           " \t\n"
           R"({"qid": 10, "shown": ["say \"\\hi", 1, "GX1"], "clicks": [1, 0, false]})"
           "\n"
           R"({"qid": "12", "shown": [0, 1], "clicks": [0, 0]})");
  ASSERT_EQ(recorded.rounds(), 4);
  expect_record(recorded, 0, 0, {2, 0}, {0, 1});
  expect_record(recorded, 1, 1, {1, 0}, {1, 0});
  expect_record(recorded, 2, 0, {2, 1, 0}, {1, 0, 0});
  expect_record(recorded, 3, 2, {0, 1}, {0, 0});
}

TEST(RecordedFeedbackTest, RefusesALogWhoseEarlierRoundsAreElsewhere) {
  const auto line = [](std::uint64_t round) {
    return record_line(round, R"(,"qid":"10","shown":[0],"clicks":[1])");
  };
  EXPECT_EQ(read(line(1) + line(2)).rounds(), 2);
  for (const std::uint64_t round : {2, 10, 123}) {
    const std::string message = message_of<DataError>([&] { read(line(round)); });
    EXPECT_TRUE(contains(message, "1:1: Earlier rounds of this log are in other files"));
  }
}

TEST(RecordedFeedbackTest, IgnoresOtherFieldsOfATrace) {
  const RecordedFeedback recorded = read(
      R"({"config": {"shown": 3, "qid": [], "clicks": {"shown": "x"}}})"
      "\n"
      R"({"round": 1, "qid": "10", "docs": 3, "scores": [1e-3, -2.5, 0.0], "shown": [0, 1], "clicks": [1, 0], )"
      R"("pairs": [[0, 1], []], "ndcg": 0.5, "step": null, "width_sq": [[0, 1], [{"qid": 7}]], "more": "]}"})");
  ASSERT_EQ(recorded.rounds(), 1);
  expect_record(recorded, 0, 0, {0, 1}, {1, 0});
  // With a query, a line is a round whatever else it says.
  EXPECT_EQ(read(R"({"config": 1, "qid": "10", "shown": [0], "clicks": [0]})").rounds(), 1);
}

TEST(RecordedFeedbackTest, MistakesHaveLineAndColumn) {
  for (const char* section : {"queries and documents", "types", "rewards", "keys", "JSON", "no rounds"})
    expect_cases("sim/recorded_feedback_test.txt", section, refusal_of);
}

TEST(RecordedFeedbackTest, ReadsRewards) {
  const std::string rewarded =
      R"({"qid": "10", "shown": [2, 0, 1], "clicks": [1, 0, 1], "rewards": [10, 0, 0.5]})";
  const RecordedFeedback plain = read(kGood + "\n" + kGood);
  EXPECT_TRUE(plain.at(0).rewards.empty());
  const RecordedFeedback mixed = read(kGood + "\n" + rewarded + "\n" + kGood);
  const auto rewards = [&](std::int64_t round) {
    const auto of_round = mixed.at(round).rewards;
    return std::vector<double>(of_round.begin(), of_round.end());
  };
  EXPECT_EQ(rewards(0), (std::vector<double>{0, 1}));
  EXPECT_EQ(rewards(1), (std::vector<double>{10, 0, 0.5}));
  EXPECT_EQ(rewards(2), (std::vector<double>{0, 1}));
  const std::string other =
      R"({"qid": "10", "shown": [2, 0, 1], "clicks": [1, 0, 1], "rewards": [9, 0, 0.5]})";
  EXPECT_NE(read(rewarded).fingerprint(), read(other).fingerprint());
}

TEST(RecordedFeedbackTest, RefusesFileWithoutRounds) {
  const TemporaryFolder folder;
  EXPECT_THROW(RecordedFeedback::read(folder / "missing.jsonl", letor_data()), IoError);
  EXPECT_THROW(RecordedFeedback::read(folder.path(), letor_data()), IoError);
}

TEST(RecordedFeedbackTest, DamagedLineIsReadOrRefusedWithPosition) {
  const std::string good =
      R"({"qid": "10", "x": [1.5, "a\"", null], "shown": ["GX1", 2], "clicks": [0, true]})";
  FeedbackRecord line;
  ReplayColumns columns;
  ASSERT_FALSE(parse_replay_line(good, line, columns));
  for (std::size_t size = 1; size < good.size(); ++size) {
    const auto failure = parse_replay_line(std::string_view(good).substr(0, size), line, columns);
    ASSERT_TRUE(failure) << size;
    EXPECT_GE(failure->column, 1);
    EXPECT_LE(failure->column, static_cast<std::int64_t>(size) + 1);
  }
  const std::string_view bytes = "{}[]\",:\\0-1e.tn \t\x01\xFF";
  int refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char byte : bytes) {
      std::string changed = good;
      changed[at] = byte;
      const auto failure = parse_replay_line(changed, line, columns);
      if (!failure) continue;
      ++refused;
      EXPECT_GE(failure->column, 1);
      EXPECT_LE(failure->column, std::ssize(good) + 1);
    }
  }
  EXPECT_GT(refused, 500);
}

std::string compressed(const std::string& bytes, Compression compression) {
  std::string result;
  const auto compressor = Compressor::make(compression, [&](std::string_view piece) { result += piece; });
  compressor->write(bytes);
  compressor->finish();
  return result;
}

/// All that was shown and clicked comes back, however many blocks and lines it takes.
TEST(RecordedFeedbackTest, LongRecordingRoundTripsThroughEveryCompression) {
  constexpr std::uint32_t kRounds = 40'000;
  const std::vector<std::int64_t> docs_of = {3, 2, 3};
  const std::vector<std::string> qids = {"\"10\"", "\"q-11\"", "12"};
  std::string text;
  std::vector<std::int64_t> queries;
  std::vector<Docs> shown;
  std::vector<Clicks> clicks;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    RngStream coins = test_coins(round);
    const std::uint32_t query = coins.index(3);
    Docs docs;
    for (std::int32_t doc = 0; doc < docs_of[query]; ++doc) docs.push_back(doc);
    coins.shuffle(std::span(docs));
    docs.resize(1 + coins.index(static_cast<std::uint32_t>(docs.size())));
    Clicks clicked;
    text += "{\"qid\":" + qids[query] + ",\"shown\":[";
    for (std::size_t rank = 0; rank < docs.size(); ++rank) {
      const bool by_name = query == 0 && docs[rank] < 2 && coins.index(2) == 0;
      text += rank > 0 ? "," : "";
      text += by_name ? fmt::format("\"GX{}\"", docs[rank] + 1) : fmt::format("{}", docs[rank]);
      clicked.push_back(static_cast<std::uint8_t>(coins.index(2)));
    }
    text += "],\"note\":\"" + std::string(coins.index(100), 'x') + "\",\"clicks\":[";
    for (std::size_t rank = 0; rank < docs.size(); ++rank) {
      text += fmt::format("{}{}", rank > 0 ? "," : "", clicked[rank]);
    }
    text += "]}\n";
    queries.push_back(query);
    shown.push_back(docs);
    clicks.push_back(clicked);
  }
  ASSERT_GT(text.size(), std::size_t{3} << 20);
  const Fingerprint plain = read(text).fingerprint();
  for (const Compression compression : {Compression::kNone, Compression::kGzip, Compression::kZstd}) {
    const RecordedFeedback recorded = read(compressed(text, compression));
    ASSERT_EQ(recorded.rounds(), kRounds);
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      expect_record(recorded, round, queries[round], shown[round], clicks[round]);
      if (HasFailure()) return;
    }
    EXPECT_EQ(recorded.fingerprint(), plain);
  }
  const std::string whole = compressed(text, Compression::kGzip);
  EXPECT_TRUE(contains(refusal_of(whole.substr(0, whole.size() / 2)), "The gzip data is truncated."));
}

/// Rounds of 10, and one of them with rewards.
TEST(RecordedFeedbackTest, RoundsBeyondTheLimitAreTheSameInFiles) {
  constexpr std::int64_t kRounds = 120'000;
  for (const std::int64_t rewarded : {std::int64_t{-1}, std::int64_t{3}, kRounds / 2, kRounds - 1}) {
    std::string text;
    for (std::int64_t round = 0; round < kRounds; ++round) {
      text +=
          fmt::format(R"({{"qid":"10","shown":[{},{}],"clicks":[{},{}]{}}})", round % 3, (round + 1) % 3,
                      round % 2, round % 5 == 0 ? 1 : 0, round == rewarded ? R"(,"rewards":[0.5,3])" : "");
      text += '\n';
    }
    const TemporaryFolder folder;
    write_file_atomically(folder / "r.jsonl", text);
    const FeatureStore store(1'000, std::filesystem::current_path());
    const auto dense = RecordedFeedback::read(folder / "r.jsonl", letor_data());
    const auto stored = RecordedFeedback::read(folder / "r.jsonl", letor_data(), 1'000, &store);
    EXPECT_EQ(stored.fingerprint(), dense.fingerprint());
    ASSERT_EQ(stored.rounds(), kRounds);
    for (std::int64_t round = 0; round < kRounds; ++round) {
      const RecordedFeedback::Record wanted = dense.at(round);
      const RecordedFeedback::Record found = stored.at(round);
      ASSERT_EQ(found.query, wanted.query);
      ASSERT_TRUE(std::ranges::equal(found.shown, wanted.shown)) << round;
      ASSERT_TRUE(std::ranges::equal(found.clicks, wanted.clicks)) << round;
      ASSERT_TRUE(std::ranges::equal(found.rewards, wanted.rewards)) << round;
    }
    ASSERT_EQ(stored.at(kRounds - 1).rewards.empty(), rewarded < 0);
  }
}

TEST(RecordedFeedbackTest, FingerprintCoversRounds) {
  const Fingerprint good = read(kGood).fingerprint();
  EXPECT_EQ(read(R"({"shown": [2, "GX1"], "qid": 10, "x": 1, "clicks": [false, true]})").fingerprint(),
            good);
  EXPECT_NE(read(R"({"qid": "10", "shown": [2, 0], "clicks": [1, 1]})").fingerprint(), good);
  EXPECT_NE(read(R"({"qid": "10", "shown": [2, 1], "clicks": [0, 1]})").fingerprint(), good);
  EXPECT_NE(read(R"({"qid": "12", "shown": [2, 0], "clicks": [0, 1]})").fingerprint(), good);
  EXPECT_NE(read(kGood + "\n" + kGood).fingerprint(), good);
}

TEST(RecordedFeedbackTest, RefusesEndlessRecordings) {
  const TemporaryFolder folder;
  std::string lines;
  for (int round = 0; round < 100; ++round) lines += kGood + "\n";
  write_file_atomically(folder / "r.jsonl", lines);
  EXPECT_EQ(RecordedFeedback::read(folder / "r.jsonl", letor_data(), 10'000).rounds(), 100);
  // 26 bytes a round, and 8 more.
  EXPECT_TRUE(contains(
      message_of<DataError>([&] { RecordedFeedback::read(folder / "r.jsonl", letor_data(), 1'000); }),
      "r.jsonl:39:1: The first 39 rounds need 1.0 kB of memory, but --max-memory allows 1.0 kB."));
  std::string list = R"({"qid": "10", "shown": [0)";
  for (int doc = 0; doc < 1'000'000; ++doc) list += ",0";
  EXPECT_TRUE(contains(refusal_of(list), "A list of more than 1000000 documents was never shown."));
}

}  // namespace
}  // namespace olrank
