#include "report/markup.h"

#include <gtest/gtest.h>

#include <string>

namespace olrank {
namespace {

TEST(Markup, EscapesHtml) {
  EXPECT_EQ(escape_html("<a href=\"x\">'&</a>"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&lt;/a&gt;");
  EXPECT_EQ(escape_html("μ ± ½"), "μ ± ½");
}

TEST(Markup, EscapesLatex) {
  EXPECT_EQ(
      escape_latex("50%_$x^2 {a&b}#~\\<"),
      "50\\%\\_\\$x\\textasciicircum{}2 \\{a\\&b\\}\\#\\textasciitilde{}\\textbackslash{}\\textless{}");
  // Two hyphens would become a dash.
  EXPECT_EQ(escape_latex("--α=1|\"ν²"), "-{}-$\\alpha$=1\\textbar{}\\symbol{34}$\\nu$$^2$");
  EXPECT_EQ(escape_latex("naïve 学 þ\x01"), "naïve ? ??");
}

TEST(Markup, ReplacesInvalidUtf8AndControlCharacters) {
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(clean_utf8("a\x01\xffz\xc3"), "a" + replacement + replacement + "z" + replacement);
  EXPECT_EQ(clean_utf8("\xed\xa0\x80").substr(0, 3), replacement);  // half of a surrogate pair
  EXPECT_EQ(clean_utf8("\xf0\x9f\x99\x82"), "\xf0\x9f\x99\x82");
}

TEST(Markup, SlugsAreLettersDigitsAndHyphens) {
  EXPECT_EQ(name_slug("<b>a_user & b"), "b-a-user-b");
  EXPECT_EQ(name_slug("ν²"), "x");
  EXPECT_EQ(name_slug(std::string(99, 'a')).size(), 60U);
}

TEST(Shortened, KeepsBothEndsAndFits) {
  EXPECT_EQ(shortened("short", 11.0, 100.0), "short");
  const std::string text = shortened("a-very-long-name-of-a-ranker-with-alpha=0.1", 11.0, 100.0);
  EXPECT_LE(text_width(text, 11.0), 100.0);
  EXPECT_GT(text_width(text, 11.0), 85.0);
  EXPECT_EQ(text.substr(0, 6), "a-very");
  EXPECT_EQ(text.substr(text.size() - 4), "=0.1");
}

}  // namespace
}  // namespace olrank
