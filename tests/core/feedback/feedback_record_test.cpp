#include "core/feedback/feedback_record.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace olrank {
namespace {

FeedbackRecord small_record() {
  FeedbackRecord record;
  record.impression = "a1-7";
  record.query = "jacket";
  record.docs = {{"a", false}, {"3", true}, {"unseen", false}};
  record.has_unshown = true;
  record.clicks = {0, 1};
  record.columns = 2;
  record.inputs = {0.5F, 1.0F, 0.0F, -2.25F, 0.1F, 3e-40F};
  return record;
}

std::string_view without_newline(const std::string& line) {
  return std::string_view(line).substr(0, line.size() - 1);
}

FeedbackRecord read(std::string_view line) {
  FeedbackRecord record;
  const auto failure = parse_record(line, record);
  EXPECT_FALSE(failure) << failure->message;
  return record;
}

std::string refusal_of(std::string_view line) {
  FeedbackRecord record;
  const auto failure = parse_record(line, record);
  return failure ? failure->message : "nothing";
}

TEST(FeedbackRecord, IsAJsonLine) {
  const std::string line = record_line(12, record_body(small_record()));
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["round"], 12);
  EXPECT_EQ(json["impression"], "a1-7");
  EXPECT_EQ(json["qid"], "jacket");
  EXPECT_EQ(json["shown"], nlohmann::json::parse(R"(["a", 3])"));
  EXPECT_EQ(json["unshown"], nlohmann::json::parse(R"(["unseen"])"));
  EXPECT_EQ(json["clicks"], nlohmann::json::parse("[0, 1]"));
  EXPECT_EQ(json["inputs"].size(), 3U);
  EXPECT_EQ(line.back(), '\n');
}

TEST(FeedbackRecord, RoundTripsExactly) {
  FeedbackRecord record = small_record();
  record.query = "a \"quoted\"\nbreak \\ and \xC3\xA9";
  record.docs[0].text = "tab\there";
  // Floats whose shortest digits lie near the midpoint of two floats would round twice via double.
  constexpr float kLargest = std::numeric_limits<float>::max();
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  record.inputs = {1.0F / 3.0F, kLargest, -kTiny, 16777217.0F, 8.589973e9F, -0.0F};
  FeedbackRecord whole = record;  // a list that showed all of its documents
  whole.docs.pop_back();
  whole.inputs.resize(4);
  for (const bool has_unshown : {true, false}) {
    whole.has_unshown = has_unshown;
    whole.round = 5;
    EXPECT_EQ(read(without_newline(record_line(5, record_body(whole)))), whole);
  }
  whole.experiment = "0d2ecefdec8a";
  whole.arm = "drafted";
  whole.bucket = 9999;
  whole.teams = "A";
  whole.candidate = {{"7", true}, {"x", false}};
  whole.schema = "0123456789abcdef0123456789abcdef";
  whole.feature_names = R"(["a \"quoted\" name","é"])";
  whole.rewards.assign(whole.clicks.size(), 0.1);
  EXPECT_EQ(read(without_newline(record_line(5, record_body(whole)))), whole);
  record.round = 5;
  EXPECT_EQ(read(without_newline(record_line(5, record_body(record)))), record);
}

TEST(FeedbackRecord, KeepsHowTheListWasShown) {
  FeedbackRecord record = small_record();
  record.time = 1'764'158'400'123;
  record.snapshot = 41;
  record.explored = false;
  record.propensity = {0.1, 1.0 / 3.0};
  record.incumbent = {{"3", true}, {"a", false}};
  record.round = 12;
  EXPECT_EQ(read(without_newline(record_line(12, record_body(record)))), record);
}

FeedbackRecord by_version() {
  FeedbackRecord record = small_record();
  record.inputs.clear();
  record.columns = 0;
  record.rest = {{"left", false}};
  record.versions = {7, 0, 1, 9'007'199'254'740'992};
  record.given = {{0, 1, -0.0F}, {0, 3, 0.1F}, {1, 0, 3.0F}, {3, 2, 1e30F}};
  record.round = 12;
  return record;
}

TEST(FeedbackRecord, HasVersionsInPlaceOfInputs) {
  const FeedbackRecord record = by_version();
  const std::string line = record_line(12, record_body(record));
  EXPECT_TRUE(contains(
      line,
      R"("versions":[7,0,1,9007199254740992],"rest":["left"],"given":[[0,1,-0.0,3,0.1],[1,0,3],[3,2,1e+30]],"check")"));
  EXPECT_EQ(read(without_newline(line)), record);
  EXPECT_TRUE(std::signbit(read(without_newline(line)).given[0].value));
  const FeedbackRecord both =
      read(R"({"qid":"q","shown":["a"],"clicks":[0],"versions":[1],"given":[[0,0,1]],"inputs":[[2]]})");
  EXPECT_TRUE(both.versions.empty());
  EXPECT_TRUE(both.given.empty());
}

// Older and foreign logs.
TEST(FeedbackRecord, TakesForeignValuesOfItsOwnKeysForAbsent) {
  const std::string line =
      R"({"qid":"q","shown":["a","b"],"clicks":[0,1],"time":"noon","explore":0.1,"snapshot":null,)"
      R"("propensity":0.5,"incumbent":{"a":1}})";
  const FeedbackRecord record = read(line);
  EXPECT_EQ(record.time, 0);
  EXPECT_EQ(record.snapshot, -1);
  EXPECT_FALSE(record.explored);
  EXPECT_TRUE(record.propensity.empty());
  EXPECT_TRUE(record.incumbent.empty());
}

TEST(FeedbackRecord, HasALetterForEachDocumentOfAServiceWithGroups) {
  FeedbackRecord record = small_record();
  EXPECT_FALSE(contains(record_body(record), "groups"));
  record.groups = {DocGroup::kA, static_cast<DocGroup>(2), DocGroup::kB};
  record.round = 5;
  const std::string line = record_line(5, record_body(record));
  EXPECT_EQ(nlohmann::json::parse(line)["groups"], "ACB");
  EXPECT_EQ(read(without_newline(line)), record);
}

TEST(FeedbackRecord, ChecksumDetectsEveryChangedByte) {
  const std::string whole = record_line(3, record_body(small_record()));
  const std::string line(without_newline(whole));
  ASSERT_TRUE(has_valid_check(line));
  for (std::size_t at = 0; at < line.size(); ++at) {
    std::string changed = line;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(has_valid_check(changed)) << at;
    EXPECT_FALSE(has_valid_check(line.substr(0, at))) << at;
  }
}

TEST(FeedbackRecord, RefusesALineThatHasChanged) {
  const std::string whole = record_line(3, record_body(small_record()));
  const std::string line(without_newline(whole));
  FeedbackRecord record;
  ReplayColumns columns;
  std::string changed = line;
  changed.replace(changed.find("\"clicks\":[0"), 11, "\"clicks\":[1");
  ASSERT_NE(changed, line);
  for (const auto& failure : {parse_record(changed, record), parse_replay_line(changed, record, columns)}) {
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->column, static_cast<std::int64_t>(line.find("\"check\":") + 9));
    EXPECT_TRUE(failure->message.starts_with(
        "The line has changed since it was written: its 'check' does not match."))
        << failure->message;
  }
  EXPECT_FALSE(parse_record(line + "\r", record));  // as an editor of another system leaves it
  EXPECT_FALSE(parse_record(changed.substr(0, changed.find(",\"check\"")) + "}", record));
  EXPECT_FALSE(
      parse_record(R"({"qid":"1","shown":["a"],"clicks":[0],"check":"of another program"})", record));
}

TEST(FeedbackRecord, ReadsReplayLines) {
  const FeedbackRecord record = read(
      R"({"qid": 10, "shown": ["x", 2], "clicks": [true, 0], "ndcg": 0.5, "pairs": [[1, 2]], "extra": {"a": []}})");
  EXPECT_EQ(record.query, "10");
  EXPECT_EQ(record.docs, (std::vector<DocId>{{"x", false}, {"2", true}}));
  EXPECT_EQ(record.clicks, (std::vector<std::uint8_t>{1, 0}));
  EXPECT_TRUE(record.inputs.empty());
}

TEST(FeedbackRecord, KeepsTheDigitsOfLargeNumbers) {
  const FeedbackRecord record =
      read(R"({"qid":18446744073709551615,"shown":[18446744073709551615,-1],"clicks":[0,1]})");
  EXPECT_EQ(record.query, "18446744073709551615");
  EXPECT_EQ(record.docs[0], (DocId{"18446744073709551615", true}));
  EXPECT_EQ(record.docs[1], (DocId{"-1", true}));
}

TEST(FeedbackRecord, ReportsInvalidLines) {
  expect_cases("core/feedback/feedback_record_test.txt", "lines", refusal_of);
}

}  // namespace
}  // namespace olrank
