#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "core/error.h"
#include "core/settings/schema.h"
#include "core/settings/setting_sources.h"
#include "core/settings/toml_document.h"
#include "core/settings/value.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"

namespace olrank {

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
    static const Schema schema =
        SchemaBuilder<Part>("basket", "").field("weight", &Part::weight, "how heavy", above(0, 2)).build();
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
                                     .field("count", &Basket::count, "how many", {1})
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
  expect_cases("core/refusals.txt", "toml", [](const std::string& text) { return refusal_of(text); });
  for (const char* file : {"/dev/zero", "/nonexistent/x.toml"})
    EXPECT_THROW(read_toml(file), InvalidArgument) << file;
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

/// The TOML of what `value_of` makes of "kind text", or "refused".
template <class ValueOf>
std::string value_of_kind(const std::string& line, const ValueOf& value_of) {
  static const std::map<std::string, SettingKind> kinds = {{"switch", SettingKind::kSwitch},
                                                           {"integer", SettingKind::kInteger},
                                                           {"real", SettingKind::kReal},
                                                           {"text", SettingKind::kText},
                                                           {"integers", SettingKind::kIntegers},
                                                           {"reals", SettingKind::kReals},
                                                           {"texts", SettingKind::kTexts},
                                                           {"switches", SettingKind::kSwitches},
                                                           {"real|auto", SettingKind::kRealOrAuto},
                                                           {"reals|auto", SettingKind::kRealsOrAuto}};
  const std::size_t blank = line.find(' ');
  try {
    return to_toml(value_of(kinds.at(line.substr(0, blank)), line.substr(blank + 1)));
  } catch (const InvalidArgument&) {
    return "refused";
  }
}

TEST(SettingValueTest, ReadsOrRefusesCommandLineValues) {
  expect_cases("core/refusals.txt", "values of a command line", [](const std::string& line) {
    return value_of_kind(
        line, [](SettingKind kind, const std::string& text) { return parse_setting(kind, text); });
  });
}

TEST(SettingValueTest, ConvertsOrRefusesFileValues) {
  expect_cases("core/refusals.txt", "values of a file", [](const std::string& line) {
    return value_of_kind(line, [](SettingKind kind, const std::string& text) {
      const TomlDocument document = parse_toml("[t]\nkey = " + text + "\n", "test");
      return convert_setting(kind, document.tables[0].entries.at(0).value);
    });
  });
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
      std::vector<std::int64_t>{1, 2, 3},
      std::vector<double>{0.5, 2.0},
      std::vector<std::string>{"a", "b"},
      std::vector<bool>{true, false},
  };
  for (const SettingValue& value : values) {
    const TomlDocument document = parse_toml("[t]\nkey = " + to_toml(value) + "\n", "test");
    ASSERT_EQ(document.tables.size(), 1U);
    EXPECT_EQ(document.tables[0].entries.at(0).value, value) << to_toml(value);
  }
}

}  // namespace
}  // namespace olrank
