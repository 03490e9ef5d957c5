#include "logs/log_view.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/random/rng_stream.h"
#include "logs/direct_method.h"
#include "logs/list_features.h"
#include "logs/log_reader.h"
#include "logs/shown_lists.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

constexpr const char* kThreeLists =
    R"({"round":1,"impression":"x-1","clicks":[1,0],"qid":"jacket","time":1764158400000,"snapshot":0,"explore":true,"shown":["c","a"],"propensity":[0.5,1],"unshown":["b"],"incumbent":["a","b","c"],"inputs":[[1],[0],[2]],"check":"0"}
{"round":2,"impression":"x-2","clicks":[0,0,0],"qid":"jacket","time":1764158401000,"snapshot":1,"explore":false,"shown":["a","b","c"],"incumbent":["a","b","c"],"inputs":[[1],[0],[2]],"check":"0"}
{"round":3,"impression":"x-3","clicks":[0,1],"qid":"hat","shown":["h","c"],"inputs":[[1],[0]],"check":"0"}
)";

std::string shown_as(const LogFilter& filter) {
  const TemporaryFolder folder;
  std::ofstream(folder / "log") << kThreeLists;
  std::string text;
  show_log(folder / "log", filter, {false, 0}, [&](std::string_view part) { text += part; });
  return text;
}

TEST(LogView, ShowsListsAsText) {
  LogFilter first;
  first.limit = 1;
  EXPECT_EQ(shown_as(first),
            "round 1, 2025-11-26T12:00:00.000Z, query jacket, impression x-1, by the model of round 0, "
            "explored\n"
            "  shown: c*, a\n"
            "  not shown: b\n"
            "  propensity: 0.5, 1\n"
            "  incumbent: a, b, c\n");
  LogFilter last;
  last.query = "hat";
  EXPECT_EQ(shown_as(last), "round 3, query hat, impression x-3\n  shown: h, c*\n");
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
  EXPECT_TRUE(contains(text, "lists without clicks        33.3 %\n"));
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

TEST(LogReader, LeavesOutALastLineThatIsBeingWritten) {
  const TemporaryFolder folder;
  const std::string line(kFirstLine);
  for (std::size_t length = 0; length < line.size(); ++length)
    EXPECT_EQ(rounds_in(folder / "log", line + "\n" + line.substr(0, length)).size(), 1U) << length;
}

TEST(LogReader, RefusesABrokenLineBeforeOthersAndACompleteOneThatIsWrong) {
  const TemporaryFolder folder;
  const std::string line(kFirstLine);
  EXPECT_TRUE(contains(
      message_of([&] { rounds_in(folder / "log", line + "\n" + line.substr(0, 20) + "\n" + line); }),
      "log:2:"));
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
  expect_cases("logs/log_view_test.txt", "features", refused_features);
}

/// All lists of a source; each as "impression query: shown; clicked shown with *".
class ShownListsTest : public ::testing::Test {
 protected:
  std::string lists_of(ShownListFormat format, std::string_view text, std::string_view events = "") {
    const TemporaryFolder folder;
    std::ofstream(folder / "lists") << text;
    std::ofstream(folder / "events") << events;
    ShownListSource source = source_;
    source.format = format;
    source.lists = folder / "lists";
    source.events = folder / "events";
    source.first_rank = format == ShownListFormat::kJsonLines ? 0 : 1;
    const auto lists = ShownLists::open(source);
    std::string all;
    for (ShownListRecord list; lists->next(list);) {
      const FeedbackRecord& record = list.record;
      all += record.impression + "|" + record.query + "|" + std::to_string(record.time) + "|";
      for (std::int64_t doc = 0; doc < std::ssize(record.docs); ++doc) {
        all += record.docs[doc].text;
        if (doc < record.shown() && record.clicks[doc] != 0) all += '*';
        if (doc >= record.shown()) all += '-';
      }
      all += '\n';
    }
    empty_ = lists->empty_lists();
    stray_ = lists->stray_clicks();
    return all;
  }
  std::string refused(ShownListFormat format, std::string_view text, std::string_view events = "") {
    return message_of([&] { lists_of(format, text, events); });
  }

  ShownListSource source_;
  std::int64_t empty_ = 0;
  std::int64_t stray_ = 0;
};

TEST_F(ShownListsTest, ReadsJsonLines) {
  EXPECT_EQ(lists_of(ShownListFormat::kJsonLines,
                     R"({"query":"hat","docs":["a","b","c"],"clicks":["c",0],"time":1764158400000}

{"query":7,"docs":[5,6],"clicks":[],"impression":"i","time":"2025-11-26T12:00:00Z","unshown":["d"]}
{"query":7,"docs":[5,6],"clicks":["6","6"],"incumbent":[6,5],"propensity":[0.5,1],"price":[1]})"),
            "|hat|1764158400000|a*bc*\ni|7|1764158400000|56d-\n|7|0|56*\n");
}

TEST_F(ShownListsTest, RefusesBrokenJsonLines) {
  expect_cases("logs/log_view_test.txt", "lists in JSON",
               [&](const std::string& line) { return refused(ShownListFormat::kJsonLines, line); });
}

TEST_F(ShownListsTest, ReadsCsv) {
  EXPECT_EQ(lists_of(ShownListFormat::kCsv,
                     "list,query,doc,rank,clicked,time\n"
                     "i1,hat,b,2,true,\ni1,hat,a,1,0,\n"
                     "i2,hat,a,1,1,2025-11-26 12:00:00\n"),
            "i1|hat|0|ab*\ni2|hat|1764158400000|a*\n");
  // Lists of a query are told apart by their time.
  EXPECT_EQ(lists_of(ShownListFormat::kCsv,
                     "query,doc,rank,clicked,time\nhat,a,1,0,1764158400000\nhat,a,1,1,1764158400001\n"),
            "|hat|1764158400000|a\n|hat|1764158400001|a*\n");
  source_.columns = ColumnNames::parse("list=session,doc=sku,rank=position,clicked=click");
  EXPECT_EQ(lists_of(ShownListFormat::kCsv, "session,sku,position,click\ns,a,1,1\n"), "s|s|0|a*\n");
}

TEST_F(ShownListsTest, RefusesBrokenCsv) {
  expect_cases("logs/log_view_test.txt", "lists in CSV",
               [&](const std::string& rows) { return refused(ShownListFormat::kCsv, rows); });
}

TEST_F(ShownListsTest, ReadsUserBehaviorInsights) {
  source_.actions = {"click", "add_to_cart"};
  EXPECT_EQ(
      lists_of(
          ShownListFormat::kUbi,
          R"({"query_id":"u1","user_query":"hat","timestamp":"2025-11-26T12:00:00.000Z","query_response_hit_ids":["a","b","c"]}
{"_index":"ubi_queries","_source":{"query_id":"u2","user_query":"hat","timestamp":1764158400000,"query_response_object_ids":["b"]}}
{"query_id":"u3","user_query":"nothing","query_response_hit_ids":[]}
{"query_id":"u4","user_query":"nothing","query_response_hit_ids":null})",
          R"({"query_id":"u1","action_name":"click","event_attributes":{"object":{"object_id":"c"},"position":{"ordinal":9}}}
{"query_id":"u1","action_name":"click","event_attributes":{"object":{"object_id":"c"}}}
{"_source":{"query_id":"u1","action_name":"add_to_cart","event_attributes":{"position":{"ordinal":1}}}}
{"query_id":"u1","action_name":"hover","event_attributes":{"object":{"object_id":"b"}}}
{"query_id":"u9","action_name":"click","event_attributes":{"object":{"object_id":"c"}}}
{"query_id":null,"action_name":"click","event_attributes":{}})"),
      "u1|hat|1764158400000|a*bc*\nu2|hat|1764158400000|b\n");
  EXPECT_EQ(empty_, 2);
  EXPECT_EQ(stray_, 2);
}

TEST_F(ShownListsTest, RefusesBrokenUserBehaviorInsights) {
  const std::string query = R"({"query_id":"u1","user_query":"hat","query_response_hit_ids":["a","b"]})";
  expect_cases("logs/log_view_test.txt", "events",
               [&](const std::string& event) { return refused(ShownListFormat::kUbi, query, event); });
  expect_cases("logs/log_view_test.txt", "queries",
               [&](const std::string& queries) { return refused(ShownListFormat::kUbi, queries); });
}

RngStream draws_of(std::uint32_t number) {
  return RngStream(make_key({.seed = 43, .purpose = Purpose::kProbe}), number);
}

// Five documents, each at all ranks, users who examine by rank.
class DirectMethodTest : public ::testing::Test {
 protected:
  static constexpr int kDocs = 5;
  static constexpr int kRanks = 3;
  static constexpr std::array<double, kDocs> kAttraction = {0.8, 0.6, 0.4, 0.2, 0.1};
  static constexpr std::array<double, kRanks> kExamination = {1.0, 0.6, 0.3};

  static DirectMethod fitted(ClickReward reward) {
    DirectMethod method(FittedModel::kPosition, reward, kRanks);
    RngStream draws = draws_of(1);
    for (int list = 0; list < 20'000; ++list) {
      std::vector<std::int32_t> shown = {0, 1, 2, 3, 4};
      draws.shuffle(std::span(shown));
      std::vector<std::uint8_t> clicks;
      double worth = 0.0;
      for (int rank = 0; rank < kRanks; ++rank) {
        clicks.push_back(draws.uniform() < kExamination[rank] * kAttraction[shown[rank]] ? 1 : 0);
        worth += 3.0 * clicks.back();
      }
      method.add(std::span(shown).first(kRanks), clicks, worth);
    }
    method.fit({.count = kDocs});
    return method;
  }
  static double click(int rank, int doc) { return kExamination[rank] * kAttraction[doc]; }
};

TEST_F(DirectMethodTest, KnowsWhatListsAreWorth) {
  const std::vector<std::int32_t> list = {4, 0, 2};
  const double first = click(0, 4), second = click(1, 0), third = click(2, 2);
  const std::array<double, 4> truths = {
      first + second + third, first + second / std::log2(3.0) + third / 2.0,
      1.0 - (1.0 - first) * (1.0 - second) * (1.0 - third), 3.0 * (first + second + third)};
  std::size_t place = 0;
  for (const auto& [reward, name] : EnumNames<ClickReward>::values) {
    DirectMethod method = fitted(reward);
    const DirectMethod::Forecast told = method.forecast(list);
    EXPECT_NEAR(told.reward, truths[place], 0.02 * truths[place] + 0.01) << name;
    EXPECT_NEAR(told.by_exposure, truths[place], 0.02 * truths[place] + 0.01) << name;
    EXPECT_EQ(told.unseen, 0.0);
    std::vector<double> ranks(kRanks);
    method.expect(list, ranks);
    EXPECT_NEAR(ranks[0] + ranks[1] + ranks[2], told.reward, 1e-12) << name;
    ++place;
  }
}

TEST_F(DirectMethodTest, NeedsAClick) {
  DirectMethod method(FittedModel::kPosition, ClickReward::kClicks, kRanks);
  const std::vector<std::int32_t> docs = {0, 1};
  const std::vector<std::uint8_t> clicks = {0, 0};
  method.add(docs, clicks, 0.0);
  EXPECT_THROW(method.fit({.count = 2}), InvalidArgument);
}

// 60,000 draws: the share of each list is within 4.5 deviations of its probability, which 120 lists leave
// with probability below 1e-3.
TEST(ListPolicyTest, DrawsListsWithTheProbabilitiesThatItSays) {
  const std::vector<double> scores = {0.5, 0.0, 0.5, -1.0};
  for (const char* name : {"greedy", "plackett-luce", "epsilon=0.3"}) {
    const ListPolicy policy = ListPolicy::parse(name);
    constexpr int kDraws = 60'000;
    std::array<int, 64> counts{};
    for (int draw = 0; draw < kDraws; ++draw) {
      RngStream coins = draws_of(static_cast<std::uint32_t>(draw));
      std::array<std::int32_t, 3> list{};
      policy.draw(scores, coins, list);
      ++counts[16 * list[0] + 4 * list[1] + list[2]];
    }
    for (std::int32_t code = 0; code < 64; ++code) {
      const std::array<std::int32_t, 3> list = {code / 16, code / 4 % 4, code % 4};
      if (list[0] == list[1] || list[0] == list[2] || list[1] == list[2]) {
        EXPECT_EQ(counts[code], 0);
        continue;
      }
      std::array<double, 3> given{};
      policy.probabilities(scores, list, given);
      const double p = given[0] * given[1] * given[2];
      EXPECT_NEAR(counts[code], kDraws * p, 4.5 * std::sqrt(kDraws * p * (1.0 - p)) + 1e-9)
          << name << ' ' << code;
    }
  }
}

FeedbackRecord list_with(const std::string& names, std::vector<float> inputs) {
  FeedbackRecord record;
  record.docs = {{"a", false}, {"b", false}};
  record.feature_names = names;
  record.columns = std::ssize(inputs) / 2;
  record.inputs = std::move(inputs);
  return record;
}

TEST(FeatureMap, PutsInputsInTheOrderOfTheModel) {
  FeatureMap map({{"price", "age"}, {0.5F, -1.0F}, {"colour"}, {{"cost", "price"}}});
  const auto mapped = [&map](FeedbackRecord record) {
    EXPECT_EQ(map.apply(record), "");
    EXPECT_EQ(record.feature_names, R"(["price","age"])");
    EXPECT_EQ(record.columns, 2);
    return record.inputs;
  };
  using Row = std::vector<float>;
  EXPECT_EQ(mapped(list_with(R"(["price","age"])", {1, 2, 3, 4})), (Row{1, 2, 3, 4}));
  EXPECT_EQ(mapped(list_with(R"(["age","price"])", {1, 2, 3, 4})), (Row{2, 1, 4, 3}));
  EXPECT_EQ(mapped(list_with(R"(["age","cost"])", {1, 2, 3, 4})), (Row{2, 1, 4, 3}));
  EXPECT_EQ(mapped(list_with(R"(["price"])", {1, 2})), (Row{1, -1, 2, -1}));
  EXPECT_EQ(mapped(list_with(R"(["colour=red","age","colour[0]"])", {7, 1, 7, 7, 2, 7})),
            (Row{0.5F, 1, 0.5F, 2}));
  EXPECT_EQ(mapped(list_with("", {1, 2, 3, 4})), (Row{1, 2, 3, 4}));  // positions decide
}

TEST(FeatureMap, RefusesWhatTheModelLacks) {
  FeatureMap map({{"price", "age"}, {}, {"colour"}, {{"cost", "price"}}});
  const auto wrong = [&map](const std::string& names, std::vector<float> inputs) {
    FeedbackRecord record = list_with(names, std::move(inputs));
    return map.apply(record);
  };
  EXPECT_TRUE(wrong(R"(["price","colours"])", {1, 2, 3, 4})
                  .starts_with("The list has the feature 'colours', which the model lacks: "));
  EXPECT_EQ(wrong(R"(["price","cost"])", {1, 2, 3, 4}), "The list has the feature 'price' twice.");
  EXPECT_EQ(wrong(R"(["age"])", {1, 2, 3, 4}),
            "The list has 2 inputs per document and 1 name in 'feature_names'.");
  EXPECT_EQ(wrong(R"(["age"])", {1, 2}), "");  // a refusal does not last
}

TEST(FeatureMap, LeavesListsOfAModelWithoutNamesAsTheyAre) {
  FeatureMap map({});
  FeedbackRecord record = list_with(R"(["age","price"])", {1, 2, 3, 4});
  const FeedbackRecord before = record;
  EXPECT_EQ(map.apply(record), "");
  EXPECT_EQ(record, before);
}

TEST(FeatureMap, NamesListsWithoutNamesByTheFirstOnes) {
  FeatureMap map({{"age", "new"}, {0.0F, 9.0F}, {"price"}, {}, "advice", {"price", "age"}});
  FeedbackRecord record = list_with("", {1, 2, 3, 4});
  EXPECT_EQ(map.apply(record), "");
  EXPECT_EQ(record.inputs, (std::vector<float>{2, 9, 4, 9}));
}

TEST(FeatureNames, TellFeaturesApartUnlessTheyCountThem) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(telling_names({"price", "age"}), (Names{"price", "age"}));
  EXPECT_EQ(telling_names({"f1", "f2"}), Names());
  EXPECT_EQ(telling_names({"f2", "f1"}), (Names{"f2", "f1"}));
  EXPECT_EQ(telling_names({"price", "7"}), Names());
  FittedNormaliser kept;
  kept.features = 3;
  kept.kept = {0, 2};
  EXPECT_EQ(names_of_inputs({"a", "b", "c"}, kept), (Names{"a", "c"}));
}

}  // namespace
}  // namespace olrank
