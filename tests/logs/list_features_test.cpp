#include "logs/list_features.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

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
