#include "core/data/synthetic_source.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "core/data/synthetic.h"
#include "core/error.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

std::string refusal_of(std::string_view source) {
  return message_of<InvalidArgument>([&] { parse_synthetic_source(source); });
}

void expect_message(std::string_view source, std::string_view part) {
  EXPECT_NE(refusal_of(source).find(part), std::string::npos) << source << " gave: " << refusal_of(source);
}

TEST(SyntheticSource, FamiliesSetDefaults) {
  const SyntheticSource mslr = parse_synthetic_source("synth:mslr-like");
  EXPECT_EQ(mslr.family, SyntheticFamily::kMslrLike);
  EXPECT_EQ(mslr.features, 136);
  EXPECT_EQ(mslr.docs, 120);
  EXPECT_EQ(mslr.queries, 1000);
  EXPECT_EQ(mslr.test_queries, 250);
  EXPECT_EQ(parse_synthetic_source("synth:yahoo-like").features, 700);
  EXPECT_EQ(parse_synthetic_source("synth:yahoo-like").docs, 24);
  EXPECT_EQ(parse_synthetic_source("synth:small?").docs, 10);
}

TEST(SyntheticSource, ReadsEveryKey) {
  const SyntheticSource source = parse_synthetic_source(
      "synth:small?queries=7&test_queries=3&docs=5&features=12&noise=0.25&nonlinearity=1&seed="
      "18446744073709551615");
  EXPECT_EQ(source.queries, 7);
  EXPECT_EQ(source.test_queries, 3);
  EXPECT_EQ(source.docs, 5);
  EXPECT_EQ(source.features, 12);
  EXPECT_EQ(source.noise, 0.25);
  EXPECT_EQ(source.nonlinearity, 1.0);
  EXPECT_EQ(source.seed, UINT64_MAX);
}

TEST(SyntheticSource, RealisableDataHasKeysOfItsOwn) {
  const SyntheticSource source =
      parse_synthetic_source("synth:realisable?docs=2&features=2&units=5&gap=0.25");
  EXPECT_EQ(source.docs, 2);
  EXPECT_EQ(source.features, 2);
  EXPECT_EQ(source.units, 5);
  EXPECT_EQ(source.gap, 0.25);
  EXPECT_EQ(source.queries, 20);
  EXPECT_EQ(source.test_queries, 20);
  expect_message("synth:realisable?noise=1", "Unknown key 'noise' of synth:realisable.");
  expect_message("synth:small?gap=1", "Unknown key 'gap' of synth:small.");
  expect_message("synth:realisable?units=1", "must be 0 or at least 2, not 1");
  expect_message("synth:realisable?docs=33", "from 2 to 32, not '33'");
}

TEST(SyntheticSource, TestQueriesAreAFifthOfManyQueries) {
  EXPECT_EQ(parse_synthetic_source("synth:mslr-like?queries=5000").test_queries, 1000);
  EXPECT_EQ(parse_synthetic_source("synth:mslr-like?queries=10").test_queries, 250);
  EXPECT_EQ(parse_synthetic_source("synth:mslr-like?test_queries=9&queries=5000").test_queries, 9);
}

TEST(SyntheticSource, UnknownNamesGetSuggestions) {
  expect_message("synth:mslrlike", "Did you mean 'mslr-like'?");
  expect_message("synth:smal?queries=3", "Did you mean 'small'?");
  expect_message("synth:", "The data sets are mslr-like, yahoo-like, small and realisable.");
  expect_message("synth:small?querys=3", "Unknown key 'querys' of synth:small. Did you mean 'queries'?");
  expect_message("synth:small?test-queries=3", "Did you mean 'test_queries'?");
  expect_message("synth:small?=3", "Unknown key ''");
  expect_message("syn:small", "must have the form synth:NAME?key=value&key=value, not 'syn:small'");
}

TEST(SyntheticSource, RefusesValuesOutOfBounds) {
  expect_message("synth:small?queries=0",
                 "'queries' of a synthetic source must be an integer from 1 to 10000000");
  expect_message("synth:small?test_queries=10000001", "'test_queries'");
  expect_message("synth:small?docs=100001", "from 1 to 100000, not '100001'");
  expect_message("synth:small?features=9", "from 10 to 100000, not '9'");
  expect_message("synth:small?noise=-0.1", "a number from 0 to 100, not '-0.1'");
  expect_message("synth:small?noise=nan", "not 'nan'");
  expect_message("synth:small?nonlinearity=1.5", "from 0 to 1, not '1.5'");
  expect_message("synth:small?seed=-1", "'seed'");
  expect_message("synth:small?queries=1.5", "not '1.5'");
  expect_message("synth:small?queries=", "not ''");
  expect_message("synth:small?queries=99999999999999999999", "'queries'");
}

TEST(SyntheticSource, RefusesMalformedSettings) {
  expect_message("synth:small?queries", "'queries' in 'synth:small?queries' must have the form key=value");
  expect_message("synth:small?queries=3&&seed=1",
                 "'' in 'synth:small?queries=3&&seed=1' must have the form key=value");
  expect_message("synth:small?seed=1&seed=1", "sets the key 'seed' twice");
}

TEST(SyntheticSource, RefusesOversizedDataBeforeAllocation) {
  ExecutionContext context;
  EXPECT_THROW(make_synthetic("synth:mslr-like?queries=10000000&docs=100000", context), InvalidArgument);
}

}  // namespace
}  // namespace olrank
