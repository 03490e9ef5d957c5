#include <gtest/gtest.h>

#include <string>

#include "serve/requests.h"

namespace olrank {
namespace {

TEST(QueryText, LosesWhiteSpaceAndCase) {
  EXPECT_EQ(normalised_query("  Rain \t\n JACKET "), "rain jacket");
  EXPECT_EQ(normalised_query("\u00a0red\u2003\u3000shoe\u0085"), "red shoe");
  EXPECT_EQ(normalised_query(" \n "), "");
  EXPECT_EQ(normalised_query("STRASSE"), normalised_query("Straße"));
  EXPECT_EQ(normalised_query("ÄÖÜ ÇÞ Ÿ ŁÓDŹ ẠỲ"), "äöü çþ ÿ łódź ạỳ");
  EXPECT_EQ(normalised_query("ΌΔΟΣ οδός"), "όδοσ οδόσ");
  EXPECT_EQ(normalised_query("ЖЁЙ Ґ Ѐ Ӏ"), "жёй ґ ѐ ӏ");
  // Signs between letters, and letters that it does not know.
  EXPECT_EQ(normalised_query("×÷ Ա 東京 😀 @[`{"), "×÷ Ա 東京 😀 @[`{");
}

TEST(QueryText, HasAccentsInTheirLetters) {
  EXPECT_EQ(normalised_query("Cafe\u0301"), normalised_query("CAFÉ"));
  EXPECT_EQ(normalised_query("e\u0323\u0302"), "ệ");
  EXPECT_EQ(normalised_query("E\u0302\u0323"), "ệ");
  EXPECT_EQ(normalised_query("и\u0306"), "й");
  EXPECT_EQ(normalised_query("S\u0326T\u0326 \u01CD"), normalised_query("ȘȚ a\u030C"));
  EXPECT_EQ(normalised_query("ϊ\u0301"), "ΐ");
  // No letter has these, and an accent alone stays.
  EXPECT_EQ(normalised_query("q\u0301 \u0301"), "q\u0301 \u0301");
}

TEST(QueryText, IsItsOwnNormalForm) {
  for (const char* text : {"İI ẞ", "Ǹx Ĳŉ", "a\u0315\u0300", "ﬁ Ⅷ ＡＢ"}) {
    const std::string once = normalised_query(text);
    EXPECT_EQ(normalised_query(once), once);
  }
}

}  // namespace
}  // namespace olrank
