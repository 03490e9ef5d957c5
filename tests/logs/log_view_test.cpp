#include "logs/log_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.h"
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

}  // namespace
}  // namespace olrank
