#include "core/settings/toml_document.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

TEST(TomlDocumentTest, KeepsOrderAndPositions) {
  const TomlDocument document = parse_toml(
      "[zebra]\n"
      "b = 1\n"
      "a = \"x\"\n"
      "[[ranker]]\n"
      "name = \"one\"\n"
      "[[ranker]]\n"
      "[alpha.beta]\n"
      "c = [1, 2]\n",
      "f.toml");
  ASSERT_EQ(document.tables.size(), 5U);
  EXPECT_EQ(document.tables[0].name, "zebra");
  EXPECT_EQ(document.tables[0].entries.at(0).key, "b");
  EXPECT_EQ(document.tables[0].entries.at(1).key, "a");
  EXPECT_EQ(document.tables[0].entries.at(1).origin, "f.toml:3:5");
  EXPECT_EQ(document.tables[0].entries.at(1).key_origin, "f.toml:3:1");
  EXPECT_TRUE(document.tables[1].repeated);
  EXPECT_TRUE(document.tables[2].repeated);
  EXPECT_TRUE(document.tables[2].entries.empty());
  EXPECT_EQ(document.tables[4].name, "alpha.beta");
}

std::string refusal_of(std::string_view text) {
  return message_of<InvalidArgument>([&] { parse_toml(text, "f.toml"); });
}

TEST(TomlDocumentTest, ErrorsHaveLineAndColumn) {
  EXPECT_EQ(refusal_of("[a]\nb = \n").substr(0, 9), "f.toml:2:");
  EXPECT_EQ(refusal_of("[a]\nb = 1\nb = 2\n").substr(0, 9), "f.toml:3:");
  EXPECT_EQ(refusal_of("[a]\nb = 1979-05-27\n"),
            "f.toml:2:5: 'a.b' has a value of a type that no setting accepts.");
  EXPECT_EQ(refusal_of("[a]\nb = [1, \"x\"]\n"),
            "f.toml:2:5: 'a.b' must be a list of strings, of numbers or of booleans.");
  EXPECT_EQ(refusal_of("a = 1\n"), kNoError);
}

TEST(TomlDocumentTest, RefusesWhatTheParserMustNotSee) {
  // The parser would look for white space at the character.
  for (const std::string place : {"", "a = 1", "a = [1=\"\"\"", "a = 8.'", "a = \"\\"}) {
    const std::string refusal = refusal_of("\n" + place + "\xC3\xA9");
    EXPECT_EQ(refusal.substr(0, 9), "f.toml:2:");
    EXPECT_NE(refusal.find("characters beyond ASCII"), refusal.npos) << refusal;
  }
  EXPECT_EQ(refusal_of("\na = \"\"\"b\\ \n \xC3\xA9\"\"\""),
            "f.toml:2: Behind a backslash that ends a line, write a character beyond ASCII as \\uXXXX.");
  EXPECT_NE(refusal_of("a = \"\xC3\""), kNoError);
  EXPECT_EQ(refusal_of("\"\\u001b\" = 1"), "f.toml:1:1: The key '\\x1b' has a control character.");
  EXPECT_EQ(refusal_of("\xEF\xBB\xBF\"\xC3\xA9\" = \"\"\"a\"\"\"\"\"\n#\xC3\xA9\n[b]\nc = ['', \"\", 'd']"),
            kNoError);
}

TEST(TomlDocumentTest, RefusesKeysOfManyParts) {
  std::string deep;
  for (int part = 0; part < 100'000; ++part) deep += "a.";
  for (const std::string& text :
       {"b = 1\n" + deep + "a = 1\n", "\n[" + deep + "a]\n", "\nb = { " + deep + "a = 1 }\n"})
    EXPECT_EQ(refusal_of(text), "f.toml:2: A key has more than 64 parts.") << text.substr(0, 20);
  std::string quoted;
  for (int part = 0; part < 100'000; ++part) quoted += "\"a\".'b'.";
  EXPECT_EQ(refusal_of(quoted + "a = 1"), "f.toml:1: A key has more than 64 parts.");
  // Dots elsewhere are none of a key.
  const std::string dots(200, '.');
  std::string numbers = "0.5";
  for (int number = 0; number < 200; ++number) numbers += ", 0.5";
  EXPECT_EQ(refusal_of("a = \"" + dots + "\\\"" + dots + "\"\nb = [" + numbers + "] # " + dots + "\nc = '" +
                       dots + "'\nd = \"\"\"\n" + dots + "\"\n" + dots + "\"\"\"\ne = '''" + dots + "\n" +
                       dots + "'''\n"),
            kNoError);
}

TEST(TomlDocumentTest, RefusesLargeFiles) {
  EXPECT_THROW(read_toml("/dev/zero"), InvalidArgument);
}

TEST(TomlDocumentTest, MissingFileIsUsageError) {
  EXPECT_THROW(read_toml("/nonexistent/x.toml"), InvalidArgument);
}

}  // namespace
}  // namespace olrank
