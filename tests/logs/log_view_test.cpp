#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <string>

#include "core/error.h"
#include "logs/list_features.h"
#include "logs/log_reader.h"
#include "logs/log_view.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

constexpr const char* kThreeLists =
    R"({"round":1,"impression":"x-1","clicks":[1,0],"qid":"jacket","time":1764158400000,"snapshot":0,"explore":true,"shown":["c","a"],"propensity":[0.5,1],"unshown":["b"],"incumbent":["a","b","c"],"inputs":[[1],[0],[2]],"check":"0"}
{"round":2,"impression":"x-2","clicks":[0,0,0],"qid":"jacket","time":1764158401000,"snapshot":1,"explore":false,"shown":["a","b","c"],"incumbent":["a","b","c"],"inputs":[[1],[0],[2]],"check":"0"}
{"round":3,"impression":"x-3","clicks":[0,1],"qid":"hat","shown":["h","c"],"inputs":[[1],[0]],"check":"0"}
)";

std::string shown_as(const LogFilter& filter, bool json) {
  const TemporaryFolder folder;
  std::ofstream(folder / "log") << kThreeLists;
  std::string text;
  show_log(folder / "log", filter, {json, 0}, [&](std::string_view part) { text += part; });
  return text;
}

std::int64_t lists_of(const LogFilter& filter) {
  const std::string text = shown_as(filter, true);
  return std::count(text.begin(), text.end(), '\n');
}

TEST(LogView, ShowsListsAsText) {
  LogFilter first;
  first.limit = 1;
  EXPECT_EQ(shown_as(first, false),
            "round 1, 2025-11-26T12:00:00.000Z, query jacket, impression x-1, by the model of round 0, "
            "explored\n"
            "  shown: c*, a\n"
            "  not shown: b\n"
            "  propensity: 0.5, 1\n"
            "  incumbent: a, b, c\n");
  LogFilter last;
  last.query = "hat";
  EXPECT_EQ(shown_as(last, false), "round 3, query hat, impression x-3\n  shown: h, c*\n");
}

TEST(LogView, ShowsLinesWithoutInputs) {
  LogFilter last;
  last.from_round = 3;
  EXPECT_EQ(
      shown_as(last, true),
      "{\"round\":3,\"impression\":\"x-3\",\"clicks\":[0,1],\"qid\":\"hat\",\"shown\":[\"h\",\"c\"]}\n");
}

TEST(LogView, FiltersByEachField) {
  LogFilter filter;
  EXPECT_EQ(lists_of(filter), 3);
  filter.clicked = true;
  EXPECT_EQ(lists_of(filter), 2);
  filter.to_round = 2;
  EXPECT_EQ(lists_of(filter), 1);
  filter.clicked = false;
  filter.query = "jacket";
  filter.impression = "x-2";
  EXPECT_EQ(lists_of(filter), 1);
  filter.from_round = 3;
  EXPECT_EQ(lists_of(filter), 0);
}

TEST(LogView, CountsWhatALogHolds) {
  const TemporaryFolder folder;
  std::ofstream(folder / "log") << kThreeLists;
  const nlohmann::ordered_json json = log_statistics(folder / "log");
  EXPECT_EQ(json["records"], 3);
  EXPECT_EQ(json["time"]["last"], "2025-11-26T12:00:01.000Z");
  EXPECT_EQ(json["queries"], 2);
  EXPECT_EQ(json["documents"], 4);
  EXPECT_EQ(json["shown"].dump(), R"({"mean":2.3333333333333335,"least":2,"most":3})");
  EXPECT_EQ(json["clicks"], 2);
  EXPECT_DOUBLE_EQ(json["without_clicks"], 1.0 / 3.0);
  EXPECT_DOUBLE_EQ(json["explored"], 0.5);
  EXPECT_DOUBLE_EQ(json["with_propensity"], 1.0 / 3.0);
  EXPECT_EQ(json["snapshots"].dump(), R"({"first":0,"last":1})");
  EXPECT_DOUBLE_EQ(json["incumbent"]["share"], 2.0 / 3.0);
  EXPECT_DOUBLE_EQ(json["incumbent"]["kendall_tau"], 0.0);  // −1 and 1
  EXPECT_DOUBLE_EQ(json["incumbent"]["same_list"], 0.5);
  ASSERT_EQ(json["ranks"].size(), 3U);
  EXPECT_EQ(json["ranks"][2].dump(), R"({"rank":3,"lists":1,"clicks":0,"click_rate":0.0})");
  const std::string text = log_statistics_text(json, 100);
  EXPECT_NE(text.find("lists without clicks        33.3 %\n"), std::string::npos) << text;
}

TEST(LogView, CountsNothingInAnEmptyLog) {
  const TemporaryFolder folder;
  std::ofstream(folder / "log").flush();
  const nlohmann::ordered_json json = log_statistics(folder / "log");
  EXPECT_EQ(json["records"], 0);
  EXPECT_TRUE(json["clicks_per_list"].is_null());
  EXPECT_EQ(log_statistics_text(json, 100), "records                     0\n");
}

constexpr std::string_view kFirstLine = R"({"round":7,"qid":"q","shown":["a","b"],"clicks":[0,1]})";

/// The rounds of a log with these bytes.
std::vector<std::uint64_t> rounds_in(const std::filesystem::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
  LogReader log(file);
  std::vector<std::uint64_t> rounds;
  for (FeedbackRecord record; log.next(record);) rounds.push_back(record.round);
  return rounds;
}

TEST(LogReader, TakesTracesAndRecordsWithoutARound) {
  const TemporaryFolder folder;
  const std::string text = std::string(R"({"config":{"a":1}})") + "\n" + std::string(kFirstLine) + "\n\n" +
                           R"({"qid":"q","shown":[3],"clicks":[0]})" + "\n";
  EXPECT_EQ(rounds_in(folder / "log", text), (std::vector<std::uint64_t>{7, 2}));
}

TEST(LogReader, FindsTheLogOfAStateFolder) {
  const TemporaryFolder folder;
  std::ofstream(folder / "feedback.jsonl") << kFirstLine;
  LogReader log(folder / "");
  FeedbackRecord record;
  EXPECT_TRUE(log.next(record));
  EXPECT_EQ(log.line(), kFirstLine);
  EXPECT_FALSE(log.next(record));
}

TEST(LogReader, LeavesOutALastLineThatIsBeingWritten) {
  const TemporaryFolder folder;
  const std::string line(kFirstLine);
  for (std::size_t length = 0; length < line.size(); ++length)
    EXPECT_EQ(rounds_in(folder / "log", line + "\n" + line.substr(0, length)).size(), 1U) << length;
}

TEST(LogReader, RefusesABrokenLineBeforeOthersAndACompleteOneThatIsWrong) {
  const TemporaryFolder folder;
  const std::string line(kFirstLine);
  EXPECT_NE(message_of([&] {
              rounds_in(folder / "log", line + "\n" + line.substr(0, 20) + "\n" + line);
            }).find("log:2:"),
            std::string::npos);
  EXPECT_THROW(rounds_in(folder / "log", R"({"qid":"q","shown":[3],"clicks":[0,1]})"), DataError);
}

ListFeatures features_in(std::string_view text, const std::string& columns = "") {
  const TemporaryFolder folder;
  std::ofstream(folder / "features") << text;
  return ListFeatures::read(folder / "features", ColumnNames::parse(columns));
}

std::string refused_features(std::string_view text) {
  return message_of([&] { features_in(text); });
}

TEST(ListFeatures, ReadsCsvAndJsonLines) {
  for (const ListFeatures& features : {features_in("\xEF\xBB\xBF"
                                                   "f1,doc,query,f2\r\n1,a,\"x, y\",2\r\n3,a,,4\r\n"),
                                       features_in(R"({"query":"x, y","doc":"a","features":[1,2]})"
                                                   "\n"
                                                   R"({"doc":"a","features":[3,4]})")}) {
    ASSERT_EQ(features.features(), 2);
    const float* of_query = features.find("x, y", "a");
    ASSERT_NE(of_query, nullptr);
    EXPECT_EQ(of_query[0], 1.0F);
    EXPECT_EQ(of_query[1], 2.0F);
    const float* of_all = features.find("other", "a");
    ASSERT_NE(of_all, nullptr);
    EXPECT_EQ(of_all[1], 4.0F);
    EXPECT_EQ(features.find("x, y", "b"), nullptr);
  }
}

TEST(ListFeatures, FindsColumnsByTheirNames) {
  EXPECT_NE(features_in("sku,f\na,1\n", "doc=sku").find("", "a"), nullptr);
  EXPECT_NE(features_in("doc,f\na,1\n", "doc=sku").find("", "a"), nullptr);
  EXPECT_THROW(ColumnNames::parse("docs=a"), InvalidArgument);
  EXPECT_THROW(ColumnNames::parse("doc"), InvalidArgument);
  EXPECT_THROW(ColumnNames::parse("doc=a,doc=b"), InvalidArgument);
}

TEST(ListFeatures, RefusesWhatItCannotJoin) {
  for (const auto& [text, sentence] : std::vector<std::pair<const char*, const char*>>{
           {"", "has no features"},
           {"doc,f\n", "has no features"},
           {"id,f\na,1\n", "no column 'doc'"},
           {"doc\na\n", "The document has no features"},
           {"doc,f\na,1\na,2\n", "features:3:1: Document 'a' appears twice."},
           {"doc,f\na,one\n", "'f' must be a finite number, not 'one'"},
           {"doc,f\na,1e60\n", "'f' must be a finite number"},
           {"doc,f\na,\n", "'f' must be a finite number, not ''"},
           {"doc,f\na,1,2\n", "The line has 3 fields, and the header has 2"},
           {"doc,f\n\xFF,1\n", "not UTF-8"},
           {R"({"doc":"a","features":[1]})"
            "\nb,2\n",
            "features:2:1: The line is not a JSON object."},
           {R"({"doc":"a","features":[1,"2"]})", "'features[1]' must be a finite number."},
           {R"({"doc":"a","features":[1]})"
            "\n"
            R"({"doc":"b","features":[1,2]})",
            "has 2 features"},
           {R"({"features":[1]})", "'doc' is missing."}})
    EXPECT_NE(refused_features(text).find(sentence), std::string::npos) << text << "\n"
                                                                        << refused_features(text);
}

}  // namespace
}  // namespace olrank
