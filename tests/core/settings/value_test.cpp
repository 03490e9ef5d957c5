#include "core/settings/value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/settings/toml_document.h"

namespace olrank {
namespace {

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
