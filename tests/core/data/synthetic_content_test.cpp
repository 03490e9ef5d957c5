#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/synthetic.h"
#include "core/runtime/execution_context.h"

namespace olrank {
namespace {

SyntheticParts make(const std::string& source) {
  ExecutionContext context;
  return make_synthetic(source, context);
}

std::vector<float> column_of(const Dataset& data, std::int64_t column) {
  std::vector<float> values;
  for (std::int64_t doc = 0; doc < data.docs(); ++doc) {
    values.push_back(data.all_features().values[doc * data.features() + column]);
  }
  return values;
}

double correlation(const std::vector<float>& a, const std::vector<float>& b) {
  const auto n = static_cast<double>(a.size());
  double sum_a = 0.0;
  double sum_b = 0.0;
  double sum_aa = 0.0;
  double sum_bb = 0.0;
  double sum_ab = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum_a += a[i];
    sum_b += b[i];
    sum_aa += static_cast<double>(a[i]) * a[i];
    sum_bb += static_cast<double>(b[i]) * b[i];
    sum_ab += static_cast<double>(a[i]) * b[i];
  }
  return (sum_ab - sum_a * sum_b / n) /
         std::sqrt((sum_aa - sum_a * sum_a / n) * (sum_bb - sum_b * sum_b / n));
}

bool constant_in_every_query(const Dataset& data, std::int64_t column) {
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    const FeatureMatrix docs = data.features_of(query);
    for (std::int64_t doc = 1; doc < docs.docs; ++doc) {
      if (docs.doc(doc)[column] != docs.doc(0)[column]) {
        return false;
      }
    }
  }
  return true;
}

// The shares asked for are 52/32/13/2/1 % within 2 points, the rare ones within 0.7. Query effects make the
// documents of a query alike: the share of grade 0 of 1,000 queries has a standard error of about half a
// point and that of the calibration sample a third, so 2 points are more than three standard errors.
TEST(SyntheticContent, MslrLikeGradesHaveDocumentedShares) {
  for (const char* seed : {"1", "2", "3", "4", "5"}) {
    const SyntheticParts parts = make(std::string("synth:mslr-like?features=10&seed=") + seed);
    std::array<double, 5> shares{};
    for (const std::uint8_t grade : parts.train.all_grades()) shares.at(grade) += 1.0;
    for (double& share : shares) share *= 100.0 / static_cast<double>(parts.train.docs());
    EXPECT_NEAR(shares[0], 52.0, 2.0) << seed;
    EXPECT_NEAR(shares[1], 32.0, 2.0) << seed;
    EXPECT_NEAR(shares[2], 13.0, 2.0) << seed;
    EXPECT_NEAR(shares[3], 2.0, 0.7) << seed;
    EXPECT_NEAR(shares[4], 1.0, 0.7) << seed;
  }
}

// docs · (¼ + 0.9 (u² + v)): from 0.25 to 2.05 of the mean, standard deviation 0.374 of it, so that a mean
// over 1,000 queries of 120 has a standard error of 1.4.
TEST(SyntheticContent, DocsPerQueryVaryAroundMean) {
  const SyntheticParts parts = make("synth:mslr-like?features=10");
  std::int64_t fewest = parts.train.docs();
  std::int64_t most = 0;
  for (std::int64_t query = 0; query < parts.train.queries(); ++query) {
    fewest = std::min(fewest, parts.train.docs_of(query));
    most = std::max(most, parts.train.docs_of(query));
  }
  EXPECT_NEAR(static_cast<double>(parts.train.docs()) / 1000.0, 120.0, 6.0);
  EXPECT_GE(fewest, 30);
  EXPECT_LE(fewest, 40);
  EXPECT_LE(most, 246);
  EXPECT_GE(most, 220);
  const SyntheticParts yahoo = make("synth:yahoo-like?features=10");
  EXPECT_NEAR(static_cast<double>(yahoo.train.docs()) / 1000.0, 24.0, 1.2);
  const SyntheticParts single = make("synth:small?docs=1");
  for (std::int64_t query = 0; query < single.train.queries(); ++query)
    EXPECT_GE(single.train.docs_of(query), 1);
}

TEST(SyntheticContent, MslrLikeHasMixedFeatureKinds) {
  const SyntheticParts parts = make("synth:mslr-like?queries=100&test_queries=2");
  ASSERT_EQ(parts.train.features(), 136);
  std::set<std::int64_t> constant;
  int binary = 0;
  int heavy = 0;
  int ratios = 0;
  for (std::int64_t column = 0; column < 136; ++column) {
    if (constant_in_every_query(parts.train, column)) constant.insert(column);
    std::vector<float> values = column_of(parts.train, column);
    std::sort(values.begin(), values.end());
    const std::set<float> different(values.begin(), values.end());
    const bool whole =
        std::all_of(values.begin(), values.end(), [](float v) { return v == std::floor(v); });
    EXPECT_GT(different.size(), 1U) << column;
    if (different == std::set<float>{0.0F, 1.0F}) ++binary;
    if (whole && values.back() > 50.0F * std::max(1.0F, values[values.size() / 2])) ++heavy;
    if (!whole && values.front() >= 0.0F && values.back() <= 1.0F) ++ratios;
  }
  // Groups of five from column 0: the kinds' pattern has query constants in groups 3 (like the inverse
  // document frequencies of MSLR-WEB) and 16.
  EXPECT_EQ(constant, (std::set<std::int64_t>{15, 16, 17, 18, 19, 80, 81, 82, 83, 84}));
  EXPECT_EQ(binary, 15);
  EXPECT_GE(heavy, 30);
  EXPECT_GE(ratios, 50);
  // Columns of a group correlate, columns of different groups do not.
  EXPECT_GT(correlation(column_of(parts.train, 0), column_of(parts.train, 4)), 0.7);
  EXPECT_LT(std::abs(correlation(column_of(parts.train, 0), column_of(parts.train, 10))), 0.1);
}

TEST(SyntheticContent, YahooLikeMissesHalfOfFeatures) {
  const SyntheticParts parts = make("synth:yahoo-like?queries=200&test_queries=2");
  ASSERT_EQ(parts.train.features(), 700);
  double missing = 0.0;
  for (std::int64_t doc = 0; doc < parts.train.docs(); ++doc) {
    const auto row = parts.train.all_features().doc(doc);
    const double share = static_cast<double>(std::count(row.begin(), row.end(), 0.0F)) / 700.0;
    // Features go missing in about 140 groups of five: 5 points are a standard deviation.
    EXPECT_GT(share, 0.25);
    EXPECT_LT(share, 0.75);
    missing += share;
  }
  EXPECT_NEAR(missing / static_cast<double>(parts.train.docs()), 0.5, 0.02);
}

TEST(SyntheticContent, ValuesAreFiniteAndNeverNegativeZero) {
  for (const char* source :
       {"synth:mslr-like?queries=50", "synth:yahoo-like?queries=50", "synth:small",
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

TEST(SyntheticContent, QueryIdsAreUnique) {
  const SyntheticParts parts = make("synth:small");
  std::set<std::string_view> qids;
  for (const Dataset* part : {&parts.train, &parts.vali, &parts.test}) {
    for (std::int64_t query = 0; query < part->queries(); ++query) {
      EXPECT_TRUE(qids.insert(part->qid(query)).second) << part->qid(query);
    }
  }
}

TEST(SyntheticContent, WithoutNoiseGradesFollowRelevance) {
  const std::string source = "synth:mslr-like?queries=20&test_queries=20&noise=0";
  ExecutionContext context;
  const SyntheticParts parts = make_synthetic(source, context);
  for (const auto& [part, data] :
       {std::pair{SyntheticPart::kTrain, &parts.train}, std::pair{SyntheticPart::kVali, &parts.vali},
        std::pair{SyntheticPart::kTest, &parts.test}}) {
    const std::vector<double> relevance = synthetic_relevance(source, part, context);
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

// Mean 0, variance 1: noise and query effects are stated in its standard deviations. Over 30,000 documents
// the mean has a standard error of 0.006 and the variance, of a distribution without long tails, about
// 0.008.
TEST(SyntheticContent, RelevanceIsStandardised) {
  ExecutionContext context;
  for (const char* source :
       {"synth:mslr-like?test_queries=250&nonlinearity=0", "synth:mslr-like?test_queries=250",
        "synth:mslr-like?test_queries=250&nonlinearity=1&seed=9"}) {
    double sum = 0.0;
    double sum_sq = 0.0;
    const std::vector<double> relevance = synthetic_relevance(source, SyntheticPart::kTest, context);
    for (const double value : relevance) {
      sum += value;
      sum_sq += value * value;
    }
    const double mean = sum / static_cast<double>(relevance.size());
    EXPECT_NEAR(mean, 0.0, 0.04) << source;
    EXPECT_NEAR(sum_sq / static_cast<double>(relevance.size()) - mean * mean, 1.0, 0.05) << source;
  }
}

}  // namespace
}  // namespace olrank
