#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/data/synthetic.h"
#include "core/data/synthetic_plan.h"
#include "core/error.h"
#include "core/runtime/execution_context.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

SyntheticParts make(const std::string& source, int threads = 1) {
  ExecutionContext context(threads);
  return make_synthetic(source, context);
}

double product(std::span<const float> a, std::span<const float> b) {
  double sum = 0.0;
  for (std::size_t c = 0; c < a.size(); ++c) sum += double{a[c]} * double{b[c]};
  return sum;
}

double correlation(const std::vector<float>& a, const std::vector<float>& b) {
  const auto n = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
  return (product(a, b) - n * mean_a * mean_b) /
         std::sqrt((product(a, a) - n * mean_a * mean_a) * (product(b, b) - n * mean_b * mean_b));
}

TEST(SyntheticContent, ValuesAreFiniteAndNeverNegativeZero) {
  for (const char* source :
       {"synth:mslr-like?queries=50", "synth:yahoo-like?queries=50", "synth:small", "synth:small?docs=1",
        "synth:mslr-like?queries=5&features=1000", "synth:yahoo-like?queries=5&features=37"}) {
    const SyntheticParts parts = make(source);
    for (const Dataset* part : {&parts.train, &parts.vali, &parts.test}) {
      for (std::int64_t doc = 0; doc < part->docs(); ++doc) {
        for (const float value : part->all_features().doc(doc)) {
          ASSERT_TRUE(std::isfinite(value)) << source;
          ASSERT_FALSE(value == 0.0F && std::signbit(value)) << source;
        }
      }
    }
  }
}

TEST(SyntheticContent, MslrLikeGradesHaveDocumentedShares) {
  for (const char* seed : {"1", "4"}) {
    const SyntheticParts parts = make(std::string("synth:mslr-like?features=10&seed=") + seed);
    std::vector<double> shares(5);
    for (const std::uint8_t grade : parts.train.all_grades())
      shares.at(grade) += 100.0 / static_cast<double>(parts.train.docs());
    EXPECT_NEAR(shares[0], 52.0, 2.0) << seed;
    EXPECT_NEAR(shares[1], 32.0, 2.0) << seed;
    EXPECT_NEAR(shares[2], 13.0, 2.0) << seed;
    EXPECT_NEAR(shares[3], 2.0, 0.7) << seed;
    EXPECT_NEAR(shares[4], 1.0, 0.7) << seed;
  }
}

/// The relevance that the grades of a part (0 training, 1 validation, 2 test) come from, before query
/// effects and noise: drawn again as docs/SYNTHETIC.md says.
std::vector<double> relevance_of(const std::string& text, std::uint64_t part, const Dataset& data) {
  const SyntheticSource source = parse_synthetic_source(text);
  const SyntheticPlan plan = make_synthetic_plan(source);
  const PhiloxKey key = key_of_part(source, part);
  const PhiloxKey vector_key = key_of_part(source, kSyntheticVectorPart + part);
  std::vector<double> relevance;
  std::vector<double> vector(source.embedding);
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    const auto number = static_cast<std::uint32_t>(query);
    for (std::uint32_t doc = 0; doc < data.docs_of(query); ++doc) {
      RngStream stream(key, number, doc);
      const SyntheticSignals signals = plan.relevance.draw(stream);
      double of_vector = 0.0;
      if (source.has_embedding()) {
        RngStream of_query(vector_key, number, kSyntheticQueryPlace);
        RngStream of_doc(vector_key, number, doc);
        plan.vectors.draw(of_query, of_doc, vector);
        of_vector = std::inner_product(vector.begin(), vector.end(), plan.vectors.relevance.begin(), 0.0);
      }
      relevance.push_back(plan.relevance_of(signals, of_vector));
    }
  }
  return relevance;
}

TEST(SyntheticContent, WithoutNoiseGradesFollowRelevance) {
  const std::string source = "synth:mslr-like?queries=20&test_queries=20&noise=0";
  const SyntheticParts parts = make(source);
  for (const auto& [part, data] :
       {std::pair{0, &parts.train}, std::pair{1, &parts.vali}, std::pair{2, &parts.test}}) {
    const std::vector<double> relevance = relevance_of(source, part, *data);
    ASSERT_EQ(std::ssize(relevance), data->docs());
    for (std::int64_t query = 0; query < data->queries(); ++query) {
      std::vector<std::pair<double, int>> docs;
      for (std::int64_t doc = data->offset(query); doc < data->offset(query + 1); ++doc) {
        const auto i = static_cast<std::size_t>(doc);
        docs.emplace_back(relevance[i], data->all_grades()[i]);
      }
      std::sort(docs.begin(), docs.end());
      for (std::size_t i = 1; i < docs.size(); ++i) ASSERT_GE(docs[i].second, docs[i - 1].second);
    }
  }
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

constexpr const char* kVectors = "synth:small?queries=40&test_queries=40&embedding=96&subspace=3";

TEST(SyntheticVectors, HaveNormOneBehindTheOrdinaryFeatures) {
  const Dataset with = make(kVectors).train;
  const Dataset without = make("synth:small?queries=40&test_queries=40").train;
  ASSERT_EQ(with.features(), 106);
  ASSERT_EQ(with.docs(), without.docs());
  const Dataset grouped = make(std::string(kVectors) + "&group_share=0.4").train;
  ASSERT_EQ(grouped.features(), 107);
  std::set<float> groups;
  for (std::int64_t doc = 0; doc < with.docs(); ++doc) {
    const auto row = with.all_features().doc(doc);
    ASSERT_TRUE(std::ranges::equal(row.first(10), without.all_features().doc(doc))) << doc;
    ASSERT_TRUE(std::ranges::equal(row, grouped.all_features().doc(doc).first(106))) << doc;
    ASSERT_EQ(grouped.all_grades()[doc], with.all_grades()[doc]);
    const auto vector = row.subspan(10);
    ASSERT_NEAR(product(vector, vector), 1.0, 1e-6) << doc;
    groups.insert(grouped.all_features().doc(doc)[106]);
  }
  EXPECT_EQ(groups, (std::set<float>{0.0F, 1.0F}));
}

// Three texts are drawn as documents are, so that similarities are numbers within [−1, 1], and the part of
// relevance that vectors have is a multiple of their sum: the share 1/2 of a variance of 1. What is left of
// relevance without it depends on other draws. Over some 400 documents a correlation of 0.71 has a standard
// error of 0.025, and one of 0 has 0.05.
TEST(SyntheticVectors, ProjectionExplainsHalfOfRelevance) {
  const std::string projected = "synth:small?queries=80&embedding=96&subspace=3&projection=1";
  const Dataset data = make(projected).train;
  ASSERT_EQ(data.features(), 13);
  const std::vector<double> relevance = relevance_of(projected, 0, data);
  const std::vector<double> own = relevance_of("synth:small?queries=80", 0, data);
  std::vector<float> sums;
  std::vector<float> all;
  std::vector<float> of_vector;
  for (std::int64_t doc = 0; doc < data.docs(); ++doc) {
    float sum = 0.0F;
    for (const float similarity : data.all_features().doc(doc).subspan(10)) {
      ASSERT_LE(std::abs(similarity), 1.0F);
      sum += similarity;
    }
    sums.push_back(sum);
    all.push_back(static_cast<float>(relevance[doc]));
    of_vector.push_back(static_cast<float>(relevance[doc] - std::sqrt(0.5) * own[doc]));
  }
  EXPECT_GT(correlation(sums, of_vector), 0.99999);
  EXPECT_NEAR(correlation(sums, all), std::sqrt(0.5), 0.1);
}

const std::vector<std::string> kSources = {"synth:mslr-like?queries=30&test_queries=10",
                                           "synth:yahoo-like?queries=30&test_queries=10", "synth:small",
                                           "synth:realisable?units=4", kVectors};

TEST(SyntheticRepeat, SameBitsOnAnyThreads) {
  for (const std::string& source : kSources) {
    const SyntheticParts one = make(source, 1);
    for (const int threads : {2, 4}) {
      const SyntheticParts many = make(source, threads);
      EXPECT_EQ(one.train.fingerprint(), many.train.fingerprint()) << source << " on " << threads;
      EXPECT_EQ(one.vali.fingerprint(), many.vali.fingerprint()) << source << " on " << threads;
      EXPECT_EQ(one.test.fingerprint(), many.test.fingerprint()) << source << " on " << threads;
      expect_prefix(one.train, many.train);
    }
  }
}

TEST(SyntheticRepeat, LargerSetStartsWithSmallerSet) {
  for (const std::string family : {"mslr-like", "yahoo-like", "small", "realisable"}) {
    const SyntheticParts few = make("synth:" + family + "?queries=7&test_queries=3");
    const SyntheticParts many = make("synth:" + family + "?queries=23&test_queries=11");
    expect_prefix(few.train, many.train);
    expect_prefix(few.vali, many.vali);
    expect_prefix(few.test, many.test);
  }
}

// Known answers: they change when, and only when, generated data changes. Then every figure measured on it
// has to be measured again, docs/SYNTHETIC.md's table first.
TEST(SyntheticRepeat, FingerprintsKeepTheirBits) {
  const SyntheticParts mslr = make(kSources[0]);
  EXPECT_EQ(mslr.train.fingerprint().hex(), "ca9afc00d5b8b06e87d12a66b99e8db1");
  EXPECT_EQ(mslr.vali.fingerprint().hex(), "a153c06e3c755d8b5504b81e1a4ccde7");
  EXPECT_EQ(mslr.test.fingerprint().hex(), "2b28571a598c98f7ae02defe250f30fe");
  EXPECT_EQ(make(kSources[1]).train.fingerprint().hex(), "71ae3e9a6b8f270bbdc98ad74b4233e3");
  EXPECT_EQ(make(kSources[2]).train.fingerprint().hex(), "647f7e901add358ecafddda234614816");
  EXPECT_EQ(
      make("synth:small?seed=2&features=60&noise=0.3&nonlinearity=0.9&docs=33").test.fingerprint().hex(),
      "29e7ada7982a6edacb3b89343618955b");
  EXPECT_EQ(make(kVectors).train.fingerprint().hex(), "ecfb08f2448e7321b12765a05986c794");
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
}

TEST(SyntheticSource, TestQueriesAreAFifthOfManyQueries) {
  EXPECT_EQ(parse_synthetic_source("synth:mslr-like?queries=5000").test_queries, 1000);
  EXPECT_EQ(parse_synthetic_source("synth:mslr-like?queries=10").test_queries, 250);
  EXPECT_EQ(parse_synthetic_source("synth:mslr-like?test_queries=9&queries=5000").test_queries, 9);
}

TEST(SyntheticSource, RefusesWhatItDoesNotKnow) {
  expect_cases("core/refusals.txt", "synthetic sources", [](const std::string& source) {
    return message_of<InvalidArgument>([&] { parse_synthetic_source(source); });
  });
}

TEST(SyntheticSource, RefusesOversizedDataBeforeAllocation) {
  ExecutionContext context;
  EXPECT_THROW(make_synthetic("synth:mslr-like?queries=10000000&docs=100000", context), InvalidArgument);
}

// Features are stored as floats: each is off by at most 2⁻²⁵, and no target here multiplies that by 10.
constexpr double kRounding = 1e-6;

TEST(RealisableTarget, EveryQueryHasOneDocumentOfEachGradeOnTheUnitSphere) {
  ExecutionContext context;
  for (const std::string source :
       {"synth:realisable", "synth:realisable?units=4&docs=7&features=5&gap=0.3"}) {
    const SyntheticSource parsed = parse_synthetic_source(source);
    const RealisableTarget target(parsed);
    const Dataset train = make_synthetic(source, context).train;
    std::vector<std::uint8_t> first_grades;
    for (std::int64_t query = 0; query < train.queries(); ++query) {
      const FeatureMatrix docs = train.features_of(query);
      const auto grades = train.grades_of(query);
      ASSERT_EQ(docs.docs, parsed.docs);
      for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
        const std::vector<double> x(docs.doc(doc).begin(), docs.doc(doc).end());
        EXPECT_NEAR(product(docs.doc(doc), docs.doc(doc)), 1.0, kRounding);
        const double level = (grades[doc] - 0.5 * static_cast<double>(parsed.docs - 1)) * parsed.gap;
        EXPECT_NEAR(target.at(x), level, kRounding) << source << ", query " << query;
      }
      first_grades.push_back(grades[0]);
      std::vector<std::uint8_t> sorted(grades.begin(), grades.end());
      std::sort(sorted.begin(), sorted.end());
      for (std::int64_t grade = 0; grade < parsed.docs; ++grade) EXPECT_EQ(sorted[grade], grade);
    }
    // The target is linear without hidden units, and with some it is not.
    const FeatureMatrix docs = train.features_of(0);
    std::vector<double> sum;
    for (std::int64_t feature = 0; feature < docs.features; ++feature)
      sum.push_back(double{docs.doc(0)[feature]} + double{docs.doc(1)[feature]});
    const double levels = parsed.gap * (train.grades_of(0)[0] + train.grades_of(0)[1] + 1.0 -
                                        static_cast<double>(parsed.docs));
    EXPECT_EQ(std::abs(target.at(sum) - levels) <= 2.0 * kRounding, parsed.units == 0) << source;
    // In some order: of 20 queries, all would begin with the same grade once in 4¹⁹ seeds.
    EXPECT_NE(*std::ranges::min_element(first_grades), *std::ranges::max_element(first_grades));
  }
}

}  // namespace
}  // namespace olrank
