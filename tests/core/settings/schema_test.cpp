#include "core/settings/schema.h"

#include <gtest/gtest.h>

#include "core/settings/setting_sources.h"
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

TEST(SchemaTest, DroppedNamesAreRefusedUnlessTheyNameWhatHolds) {
  EXPECT_EQ(
      refusal_of("training_blocks", std::int64_t{8}),
      "here: The setting training_blocks has gone, as the training kernel takes the whole GPU: remove "
      "it.");
  Basket basket;
  EXPECT_NO_THROW(assign_setting(Basket::schema(), &basket, "training_blocks", std::int64_t{0}, "here"));
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

}  // namespace
}  // namespace olrank
