#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/data/synthetic.h"
#include "core/runtime/execution_context.h"

namespace olrank {
namespace {

SyntheticParts made_of(const std::string& source, int threads = 1) {
  ExecutionContext context(threads);
  return make_synthetic(source, context);
}

/// The first queries of `large` are the queries of `small`, to the bit.
void expect_prefix(const Dataset& small, const Dataset& large) {
  ASSERT_LE(small.queries(), large.queries());
  for (std::int64_t query = 0; query < small.queries(); ++query) {
    ASSERT_EQ(small.qid(query), large.qid(query));
    ASSERT_TRUE(std::ranges::equal(small.grades_of(query), large.grades_of(query))) << "query " << query;
    const FeatureMatrix a = small.features_of(query);
    const FeatureMatrix b = large.features_of(query);
    ASSERT_TRUE(std::equal(a.values, a.values + a.docs * a.features, b.values)) << "query " << query;
  }
}

const std::vector<std::string> kSources = {"synth:mslr-like?queries=30&test_queries=10",
                                           "synth:yahoo-like?queries=30&test_queries=10", "synth:small",
                                           "synth:realisable?units=4"};

TEST(SyntheticRepeat, SameBitsOnAnyThreads) {
  for (const std::string& source : kSources) {
    const SyntheticParts one = made_of(source, 1);
    for (const int threads : {2, 4}) {
      const SyntheticParts many = made_of(source, threads);
      EXPECT_EQ(one.train.fingerprint(), many.train.fingerprint()) << source << " on " << threads;
      EXPECT_EQ(one.vali.fingerprint(), many.vali.fingerprint()) << source << " on " << threads;
      EXPECT_EQ(one.test.fingerprint(), many.test.fingerprint()) << source << " on " << threads;
      expect_prefix(one.train, many.train);
    }
  }
}

TEST(SyntheticRepeat, LargerSetStartsWithSmallerSet) {
  for (const std::string family : {"mslr-like", "yahoo-like", "small", "realisable"}) {
    const SyntheticParts few = made_of("synth:" + family + "?queries=7&test_queries=3");
    const SyntheticParts many = made_of("synth:" + family + "?queries=23&test_queries=11");
    expect_prefix(few.train, many.train);
    expect_prefix(few.vali, many.vali);
    expect_prefix(few.test, many.test);
  }
}

// Known answers: they change when, and only when, generated data changes. Then every figure measured on it
// has to be measured again, docs/SYNTHETIC.md's table first.
TEST(SyntheticRepeat, FingerprintsKeepTheirBits) {
  const SyntheticParts mslr = made_of(kSources[0]);
  EXPECT_EQ(mslr.train.fingerprint().hex(), "ca9afc00d5b8b06e87d12a66b99e8db1");
  EXPECT_EQ(mslr.vali.fingerprint().hex(), "a153c06e3c755d8b5504b81e1a4ccde7");
  EXPECT_EQ(mslr.test.fingerprint().hex(), "2b28571a598c98f7ae02defe250f30fe");
  EXPECT_EQ(made_of(kSources[1]).train.fingerprint().hex(), "71ae3e9a6b8f270bbdc98ad74b4233e3");
  EXPECT_EQ(made_of(kSources[2]).train.fingerprint().hex(), "647f7e901add358ecafddda234614816");
  EXPECT_EQ(
      made_of("synth:small?seed=2&features=60&noise=0.3&nonlinearity=0.9&docs=33").test.fingerprint().hex(),
      "29e7ada7982a6edacb3b89343618955b");
}

TEST(SyntheticRepeat, SeedsAndPartsDiffer) {
  const SyntheticParts one = made_of("synth:small?queries=20");
  const SyntheticParts two = made_of("synth:small?queries=20&seed=2");
  EXPECT_NE(one.train.fingerprint(), two.train.fingerprint());
  EXPECT_NE(one.vali.all_features().values[0], one.test.all_features().values[0]);
  EXPECT_NE(one.train.all_features().values[0], one.test.all_features().values[0]);
}

}  // namespace
}  // namespace olrank
