#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/settings/schema.h"
#include "core/settings/setting_sources.h"
#include "core/settings/toml_document.h"
#include "core/settings/value.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

struct Wheel {
  double spoke_length = 0.3;
  static const Schema& schema() {
    static const Schema schema = SchemaBuilder<Wheel>("wheel", "A wheel.")
                                     .field("spoke_length", &Wheel::spoke_length, "hub | rim")
                                     .unit("m")
                                     .symbol("r")
                                     .above(0)
                                     .flag("spokes")
                                     .build();
    return schema;
  }
};

TEST(ReferencePageTest, ShowsKeyFlagsDefaultAllowedValuesAndMeaning) {
  const Wheel defaults;
  const SchemaWithDefaults tables[] = {{&Wheel::schema(), &defaults}};
  const std::string page = reference_page(tables);
  EXPECT_NE(page.find("## `[wheel]`\n\nA wheel.\n"), std::string::npos);
  EXPECT_NE(
      page.find(
          "| `spoke_length` | `--spokes`, `--wheel-spoke-length` | `0.3` | a finite number, above 0 | "
          "hub \\| rim (r) [m] |\n"),
      std::string::npos)
      << page;
}

TEST(ReferencePageTest, OmitsFlagsOfFileOnlyTables) {
  Schema schema = Wheel::schema();
  schema.repeated = true;
  schema.file_only = true;
  const Wheel defaults;
  const SchemaWithDefaults tables[] = {{&schema, &defaults}};
  const std::string page = reference_page(tables);
  EXPECT_NE(page.find("| key | default | allowed | meaning |\n|---|---|---|---|\n"
                      "| `spoke_length` | `0.3` | a finite number, above 0 | hub \\| rim (r) [m] |\n"),
            std::string::npos)
      << page;
  EXPECT_EQ(page.find("`--spoke"), std::string::npos) << page;
}

}  // namespace

enum class Fruit { kApple, kPear };
template <>
struct EnumNames<Fruit> {
  static constexpr std::array values = {std::pair{Fruit::kApple, std::string_view("apple")},
                                        std::pair{Fruit::kPear, std::string_view("pear")}};
};

namespace {

struct Part {
  double weight = 0.5;
  static const Schema& schema() {
    static const Schema schema = SchemaBuilder<Part>("basket", "")
                                     .field("weight", &Part::weight, "how heavy")
                                     .above(0)
                                     .at_most(2)
                                     .build();
    return schema;
  }
};

struct Basket {
  Fruit fruit = Fruit::kApple;
  int count = 3;
  std::vector<std::string> labels = {"a"};
  Part part;

  static const Schema& schema() {
    static const Schema schema = SchemaBuilder<Basket>("basket", "What is carried.")
                                     .field("fruit", &Basket::fruit, "what")
                                     .field("count", &Basket::count, "how many")
                                     .at_least(1)
                                     .field("labels", &Basket::labels, "names")
                                     .one_of({"a", "b"})
                                     .include(&Basket::part, Part::schema())
                                     .build();
    return schema;
  }
};

std::string refusal_of(std::string_view key, const SettingValue& value) {
  Basket basket;
  return message_of<InvalidArgument>(
      [&] { assign_setting(Basket::schema(), &basket, key, value, "here"); });
}

TEST(SchemaTest, AssignsAndPrints) {
  Basket basket;
  assign_setting(Basket::schema(), &basket, "fruit", std::string("pear"), "here");
  assign_setting(Basket::schema(), &basket, "weight", std::int64_t{2}, "here");
  assign_setting_text(Basket::schema(), &basket, "labels", "b,a", "here");
  EXPECT_EQ(basket.fruit, Fruit::kPear);
  EXPECT_EQ(basket.part.weight, 2.0);
  EXPECT_EQ(print_settings(Basket::schema(), &basket),
            "[basket]\nfruit = \"pear\"\ncount = 3\nlabels = [\"b\", \"a\"]\nweight = 2.0\n");
}

TEST(SchemaTest, ErrorsListAllowedValues) {
  EXPECT_EQ(refusal_of("cuont", std::int64_t{1}),
            "here: Unknown key 'cuont' in [basket]. Did you mean 'count'?");
  EXPECT_EQ(refusal_of("count", std::int64_t{0}), "here: 'count' must be at least 1, not 0.");
  EXPECT_EQ(refusal_of("weight", 0.0), "here: 'weight' must be above 0 and at most 2, not 0.0.");
  EXPECT_EQ(refusal_of("weight", 2.5), "here: 'weight' must be above 0 and at most 2, not 2.5.");
  EXPECT_EQ(refusal_of("count", std::string("x")), "here: 'count' must be an integer, not '\"x\"'.");
  EXPECT_EQ(refusal_of("fruit", std::string("peer")),
            "here: 'fruit' must be apple or pear, not 'peer'. Did you mean 'pear'?");
  EXPECT_EQ(refusal_of("labels", std::vector<std::string>{"a", "c"}),
            "here: 'labels' must be a or b, not 'c'.");
}

TEST(SchemaTest, SettingsOfEarlierVersionsAreRefusedExceptTheirFixedValueInFiles) {
  for (const DroppedSetting& dropped : kDroppedSettings) {
    Basket basket;
    const Schema schema = SchemaBuilder<Basket>(std::string(dropped.table), "").build();
    const auto written = [&](std::string_view value) {
      const TomlDocument document = parse_toml(
          "[" + schema.table + "]\n" + std::string(dropped.key) + " = " + std::string(value), "f");
      SettingSources::apply_table(schema, &basket, document.tables.front());
    };
    const std::string sentence = "'" + std::string(dropped.key) + "' " + std::string(dropped.sentence);
    EXPECT_EQ(message_of<InvalidArgument>(
                  [&] { assign_setting_text(schema, &basket, dropped.key, dropped.fixed, "here"); }),
              "here: " + sentence);
    EXPECT_NO_THROW(written(dropped.fixed)) << dropped.key;
    EXPECT_TRUE(message_of<InvalidArgument>([&] { written("\"other\""); }).ends_with(sentence));
  }
  EXPECT_EQ(dropped_sentence("--data-features-as").value().substr(0, 25), "--data-features-as is gon");
  EXPECT_EQ(dropped_sentence("--features-as").value().substr(0, 20), "--features-as is gon");
  EXPECT_FALSE(dropped_sentence("--alpha"));
}

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

using Integers = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;
using Switches = std::vector<bool>;

TEST(SettingValueTest, ParsesCommandLineValues) {
  EXPECT_EQ(parse_setting(SettingKind::kSwitch, "true"), SettingValue(true));
  EXPECT_EQ(parse_setting(SettingKind::kInteger, " -7 "), SettingValue(std::int64_t{-7}));
  EXPECT_EQ(parse_setting(SettingKind::kReal, "1e-3"), SettingValue(1e-3));
  EXPECT_EQ(parse_setting(SettingKind::kReal, "10"), SettingValue(10.0));
  EXPECT_EQ(parse_setting(SettingKind::kText, "\"a b\""), SettingValue(std::string("a b")));
  EXPECT_EQ(parse_setting(SettingKind::kText, "synth:x?a=1&b=2"),
            SettingValue(std::string("synth:x?a=1&b=2")));
  EXPECT_EQ(parse_setting(SettingKind::kIntegers, "1-3,7"), SettingValue(Integers{1, 2, 3, 7}));
  EXPECT_EQ(parse_setting(SettingKind::kIntegers, "[4, 5]"), SettingValue(Integers{4, 5}));
  EXPECT_EQ(parse_setting(SettingKind::kTexts, "a, 'b',\"c\""), SettingValue(Texts{"a", "b", "c"}));
  EXPECT_EQ(parse_setting(SettingKind::kSwitches, "[true,false]"), SettingValue(Switches{true, false}));
  EXPECT_EQ(parse_setting(SettingKind::kRealOrAuto, "\"auto\""), SettingValue(std::string("auto")));
  EXPECT_EQ(parse_setting(SettingKind::kRealOrAuto, "2"), SettingValue(2.0));
  EXPECT_EQ(parse_setting(SettingKind::kRealsOrAuto, "auto"), SettingValue(std::string("auto")));
  EXPECT_EQ(parse_setting(SettingKind::kRealsOrAuto, "[2]"), SettingValue(2.0));
  EXPECT_EQ(parse_setting(SettingKind::kRealsOrAuto, "[1, 2.5]"), SettingValue(std::vector{1.0, 2.5}));
}

TEST(SettingValueTest, RefusesInvalidValues) {
  const std::pair<SettingKind, const char*> wrong[] = {
      {SettingKind::kSwitch, "yes"},
      {SettingKind::kInteger, "1.5"},
      {SettingKind::kInteger, ""},
      {SettingKind::kInteger, "1x"},
      {SettingKind::kReal, "nan"},
      {SettingKind::kReal, "inf"},
      {SettingKind::kReal, "0x10"},
      {SettingKind::kIntegers, "3-1"},
      {SettingKind::kIntegers, "1-99999999"},
      {SettingKind::kIntegers, "a"},
      {SettingKind::kReals, "1,,2"},
      {SettingKind::kSwitches, "true,yes"},
      {SettingKind::kIntegers, "1-"},
      {SettingKind::kInteger, "99999999999999999999"},
      {SettingKind::kRealOrAuto, "automatic"},
      {SettingKind::kRealOrAuto, "inf"},
      {SettingKind::kRealsOrAuto, "[]"},
      {SettingKind::kRealsOrAuto, "1,inf"},
  };
  for (const auto& [kind, text] : wrong) EXPECT_THROW(parse_setting(kind, text), InvalidArgument) << text;
}

TEST(SettingValueTest, ConvertsFileValues) {
  EXPECT_EQ(convert_setting(SettingKind::kReal, std::int64_t{3}), SettingValue(3.0));
  EXPECT_EQ(convert_setting(SettingKind::kIntegers, std::int64_t{3}), SettingValue(Integers{3}));
  EXPECT_EQ(convert_setting(SettingKind::kIntegers, std::string("1-3")), SettingValue(Integers{1, 2, 3}));
  EXPECT_EQ(convert_setting(SettingKind::kTexts, std::string("a")), SettingValue(Texts{"a"}));
  EXPECT_EQ(convert_setting(SettingKind::kSwitches, true), SettingValue(Switches{true}));
  EXPECT_EQ(convert_setting(SettingKind::kSwitches, Texts{}), SettingValue(Switches{}));
  EXPECT_EQ(convert_setting(SettingKind::kIntegers, Texts{}), SettingValue(Integers{}));
  EXPECT_EQ(convert_setting(SettingKind::kRealsOrAuto, Integers{1, 2}),
            SettingValue(std::vector{1.0, 2.0}));
  EXPECT_THROW(convert_setting(SettingKind::kRealsOrAuto, Texts{"auto"}), InvalidArgument);
  EXPECT_THROW(convert_setting(SettingKind::kInteger, 3.0), InvalidArgument);
  EXPECT_THROW(convert_setting(SettingKind::kText, std::int64_t{3}), InvalidArgument);
  EXPECT_THROW(convert_setting(SettingKind::kReal, std::numeric_limits<double>::quiet_NaN()),
               InvalidArgument);
}

TEST(SettingValueTest, RoundTripsThroughToml) {
  const SettingValue values[] = {
      true,
      std::int64_t{-9'000'000'000},
      0.1,
      1.0 / 3.0,
      10.0,
      5e-324,
      1.7976931348623157e308,
      std::string("quotes \" and \\ and\nnew lines and ünïcode"),
      Integers{1, 2, 3},
      std::vector<double>{0.5, 2.0},
      Texts{"a", "b"},
      Switches{true, false},
  };
  for (const SettingValue& value : values) {
    const TomlDocument document = parse_toml("[t]\nkey = " + to_toml(value) + "\n", "test");
    ASSERT_EQ(document.tables.size(), 1U);
    EXPECT_EQ(document.tables[0].entries.at(0).value, value) << to_toml(value);
  }
}

}  // namespace
}  // namespace olrank
