#include "logs/shown_lists.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

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
  for (const auto& [line, sentence] : std::vector<std::pair<const char*, const char*>>{
           {"query,doc", "lists:1:1: The line is not a JSON object."},
           {R"({"docs":["a"],"clicks":[]})", "'query' is missing."},
           {R"({"query":"q","clicks":[]})", "'docs' is missing."},
           {R"({"query":"q","docs":["a"]})", "'clicks' is missing."},
           {R"({"query":"q","docs":[],"clicks":[]})", "'docs' is empty"},
           {R"({"query":"q","docs":["a",""],"clicks":[]})", "'docs[1]' must be an ID"},
           {R"({"query":"q","docs":["7",7],"clicks":[]})", "'docs[1]': Document '7' is in the list twice."},
           {R"({"query":"q","docs":["a"],"clicks":["b"]})", "'clicks[0]': Document 'b' was not shown."},
           {R"({"query":"q","docs":["a"],"clicks":[1]})",
            "'clicks[0]': Rank 1 was not shown; ranks go from 0 to 0."},
           {R"({"query":"q","docs":["a"],"clicks":[-1]})", "Rank -1 was not shown"},
           {R"({"query":"q","docs":["a"],"clicks":[0.5]})", "'clicks[0]' must be an ID"},
           {R"({"query":"q","docs":["a"],"clicks":0})", "'clicks' must be an array."},
           {R"({"query":"q","docs":["a"],"clicks":[],"time":1764158400})", "not seconds"},
           {R"({"query":"q","docs":["a"],"clicks":[],"time":"noon"})", "'time' must be milliseconds"},
           {R"({"query":"q","docs":["a"],"clicks":[],"propensity":[0]})",
            "'propensity[0]' must be above 0"},
           {R"({"query":"q","docs":["a"],"clicks":[],"propensity":[1,1]})", "'propensity' has 2 values"},
           {R"({"query":"q","docs":["a"],"clicks":[],"unshown":["a"]})",
            "'unshown': Document 'a' was shown."},
           {R"({"query":"q","docs":["a"],"clicks":[],"incumbent":["a","a"]})",
            "'incumbent[1]': Document 'a'"}})
    EXPECT_NE(refused(ShownListFormat::kJsonLines, line).find(sentence), std::string::npos)
        << line << "\n"
        << refused(ShownListFormat::kJsonLines, line);
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
  const std::string header = "list,query,doc,rank,clicked,time\n";
  for (const auto& [rows, sentence] : std::vector<std::pair<const char*, const char*>>{
           {"i,q,a,1\n", "lists:2:1: The line has 4 fields, and the header has 6."},
           {"i,q,a,1.5,0,\n", "'rank' must be an integer, not '1.5'."},
           {"i,q,a,,0,\n", "'rank' must be an integer, not ''."},
           {"i,q,a,1,2,\n", "'clicked' must be 0, 1, false or true, not '2'."},
           {"i,q,,1,0,\n", "'doc' is empty."},
           {"i,q,a,0,0,\n", "'rank' is 0, but the next rank of list 'i' is 1"},
           {"i,q,a,1,0,\ni,q,b,3,0,\n", "lists:3:1: 'rank' is 3, but the next rank of list 'i' is 2"},
           {"i,q,a,1,0,\ni,q,b,1,0,\n", "lists:3:1: 'rank' is 1, but the next rank of list 'i' is 2"},
           {"i,q,a,1,0,\ni,q,a,2,0,\n", "lists:3:1: 'doc': Document 'a' is in the list twice."},
           {"i,q,a,1,0,\ni,p,b,2,0,\n", "'query' is 'p', but the list began with 'q'."},
           {"i,q,a,1,0,\nj,q,a,1,0,\ni,q,b,2,0,\n", "The rows of list 'i' are not together"},
           {"i,q,\"a,1,0,\n", "Field 3 begins with a quote"},
           {"i,q,a,1,0,yesterday\n", "'time' must be milliseconds"}})
    EXPECT_NE(refused(ShownListFormat::kCsv, header + rows).find(sentence), std::string::npos)
        << rows << refused(ShownListFormat::kCsv, header + rows);
  EXPECT_NE(refused(ShownListFormat::kCsv, "query,doc,rank\n").find("no column 'clicked'"),
            std::string::npos);
  EXPECT_NE(refused(ShownListFormat::kCsv, "\n").find("has no header"), std::string::npos);
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
  for (const auto& [event, sentence] : std::vector<std::pair<const char*, const char*>>{
           {"{", "events:1:1: The line is not a JSON object."},
           {R"({"query_id":"u1"})", "'action_name' is missing."},
           {R"({"query_id":"u1","action_name":"select"})",
            "No event has the action click, but the file has select"},
           {R"({"query_id":"u1","action_name":"click"})", "'event_attributes.object.object_id' is missing"},
           {R"({"query_id":"u1","action_name":"click","event_attributes":{"object":{"object_id":"z"}}})",
            "events:1:1: 'event_attributes.object.object_id': Document 'z' was not shown for query 'u1'."},
           {R"({"query_id":"u1","action_name":"click","event_attributes":{"position":{"ordinal":1.5}}})",
            "'event_attributes.position.ordinal' must be an integer, not 1.5."},
           {R"({"query_id":"u1","action_name":"click","event_attributes":{"position":{"ordinal":3}}})",
            "Rank 3 was not shown for query 'u1'; ranks go from 1 to 2."}})
    EXPECT_NE(refused(ShownListFormat::kUbi, query, event).find(sentence), std::string::npos)
        << event << "\n"
        << refused(ShownListFormat::kUbi, query, event);
  EXPECT_NE(refused(ShownListFormat::kUbi, query + "\n" + query)
                .find("lists:2:1: 'query_id': Query 'u1' appears twice."),
            std::string::npos);
  EXPECT_NE(refused(ShownListFormat::kUbi, R"({"query_id":"u1","query_response_hit_ids":["a"]})")
                .find("'user_query' is missing."),
            std::string::npos);
  EXPECT_NE(refused(ShownListFormat::kUbi, R"({"_source":[]})").find("'_source' must be an object."),
            std::string::npos);
}

}  // namespace
}  // namespace olrank
