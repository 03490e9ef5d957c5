#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/data/normaliser.h"
#include "core/data/normaliser_text.h"
#include "core/error.h"
#include "core/random/rng_stream.h"
#include "tests/core/data/letor_support.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

/// Seven features: normal ones on different scales, one constant everywhere, one within each query.
Dataset random_data(int queries, std::uint32_t number) {
  RngStream rng(make_key({.seed = 2, .purpose = Purpose::kProbe}), number);
  std::string text;
  for (int query = 0; query < queries; ++query) {
    const double within = rng.normal();
    const std::uint32_t docs = 1 + rng.index(40);
    for (std::uint32_t doc = 0; doc < docs; ++doc) {
      text += fmt::format("{} qid:{} 1:{} 2:{} 3:0.1 4:{} 5:{} 7:{}\n", rng.index(3), query, rng.normal(),
                          1e6 * rng.normal() + 3e6, within, std::exp(8 * rng.uniform()), -rng.uniform());
    }
  }
  return read_text(text);
}

double raw(const Dataset& data, std::int64_t doc, std::int64_t feature) {
  return data.all_features().doc(doc)[feature];
}

constexpr std::int64_t kCosines = 3;

bool is_constant(std::int64_t feature) {
  return feature == 2 || feature == 5;
}

TEST(Normaliser, NoneLeavesDataUnchanged) {
  ExecutionContext context;
  const Dataset data = random_data(5, 0);
  const FittedNormaliser fitted = fit_normaliser(Normalisation::kNone, data, false, context);
  EXPECT_TRUE(same_content(fitted.apply(data, context), data));
}

TEST(Normaliser, RefusesInputsThatWouldOverflow) {
  ExecutionContext context;
  const Dataset good = read_text("1 qid:a 1:1e12 2:3\n0 qid:b 1:-1e12 2:4\n");
  const Dataset bad = read_text("1 qid:a 1:1 2:3\n0 qid:b 1:2 2:4\n0 qid:b 1:2 2:-1.1e12\n");
  for (const Normalisation kind : {Normalisation::kNone, Normalisation::kQueryMinmax}) {
    const FittedNormaliser fitted = fit_normaliser(kind, good, false, context);
    EXPECT_EQ(fitted.apply(good, context).docs(), 2);
    if (kind == Normalisation::kQueryMinmax) {
      EXPECT_EQ(fitted.apply(bad, context).docs(), 3);
      continue;
    }
    EXPECT_EQ(message_of<InvalidArgument>([&] { fitted.apply(bad, context); }),
              "Feature 2 of document 2 of query b gives the input -1.1e+12, beyond the limit of ±1e+12: "
              "scores would overflow. Use normalise = \"query-minmax\", or correct the value.");
  }
  // A z-score is unbounded where the training part was nearly constant.
  const Dataset narrow = read_text("1 qid:a 1:0 2:3\n0 qid:b 1:1e-9 2:4\n");
  const FittedNormaliser fitted = fit_normaliser(Normalisation::kZscore, narrow, false, context);
  EXPECT_THROW(fitted.apply(read_text("1 qid:a 1:1e6 2:3\n"), context), InvalidArgument);
  const std::vector<float> inputs = {0.0F, 1.0F, std::nanf(""), 0.0F};
  const auto found = fitted.find_bad_input(inputs.data(), 2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->doc, 1);
  EXPECT_EQ(found->feature, 0);
}

// So that a query's least value is one number, in whatever order it is found.
TEST(Normaliser, QueryMinmaxTakesZerosOfBothSignsForOne) {
  FittedNormaliser normaliser;
  normaliser.kind = Normalisation::kQueryMinmax;
  normaliser.features = 1;
  for (std::vector<float> values : {std::vector{0.0F, -0.0F, 2.0F}, std::vector{-0.0F, 0.0F, 2.0F}}) {
    normaliser.apply({values.data(), 3, 1}, values.data());
    EXPECT_FALSE(std::signbit(values[0]) || std::signbit(values[1]));
    EXPECT_EQ(values, (std::vector{0.0F, 0.0F, 1.0F}));
  }
}

TEST(Normaliser, QueryMinmaxSpansZeroToOneInEachQuery) {
  ExecutionContext context(2);
  const Dataset data = random_data(30, 1);
  const FittedNormaliser fitted = fit_normaliser(Normalisation::kQueryMinmax, data, false, context);
  const Dataset out = fitted.apply(data, context);
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    for (std::int64_t f = 0; f < data.features(); ++f) {
      double low = INFINITY;
      double high = -INFINITY;
      for (std::int64_t doc = data.offset(query); doc < data.offset(query + 1); ++doc) {
        low = std::min(low, raw(data, doc, f));
        high = std::max(high, raw(data, doc, f));
      }
      for (std::int64_t doc = data.offset(query); doc < data.offset(query + 1); ++doc) {
        const double expected = high > low ? (raw(data, doc, f) - low) / (high - low) : 0.0;
        // One rounding to float of a number of at most 1.
        ASSERT_NEAR(raw(out, doc, f), expected, 0x1p-24);
      }
    }
  }
}

TEST(Normaliser, RangesWiderThanFloatDoNotOverflow) {
  ExecutionContext context;
  const Dataset data = read_text("0 qid:1 1:-3e38\n1 qid:1 1:3e38\n0 qid:1 1:0\n");
  const Dataset out =
      fit_normaliser(Normalisation::kQueryMinmax, data, false, context).apply(data, context);
  EXPECT_EQ(raw(out, 0, 0), 0.0);
  EXPECT_EQ(raw(out, 1, 0), 1.0);
  EXPECT_EQ(raw(out, 2, 0), 0.5);
}

TEST(Normaliser, ZscoresUseOnlyTrainingPart) {
  ExecutionContext context(2);
  const Dataset train = random_data(120, 2);
  const Dataset test = random_data(20, 3);
  for (const Normalisation kind : {Normalisation::kZscore, Normalisation::kLog1pZscore}) {
    const FittedNormaliser fitted = fit_normaliser(kind, train, false, context);
    const Dataset out = fitted.apply(test, context);
    for (std::int64_t f = 0; f < train.features(); ++f) {
      const auto seen = [&](double x) {
        if (kind == Normalisation::kZscore) return x;
        return x < 0 ? -std::log(1 - x) : std::log(1 + x);
      };
      double mean = 0.0;
      for (std::int64_t doc = 0; doc < train.docs(); ++doc) mean += seen(raw(train, doc, f));
      mean /= static_cast<double>(train.docs());
      double variance = 0.0;
      for (std::int64_t doc = 0; doc < train.docs(); ++doc)
        variance += std::pow(seen(raw(train, doc, f)) - mean, 2);
      variance /= static_cast<double>(train.docs());
      for (std::int64_t doc = 0; doc < test.docs(); ++doc) {
        const double expected =
            is_constant(f) ? 0.0 : (seen(raw(test, doc, f)) - mean) / std::sqrt(variance);
        // Rounding to float, and sums of a few thousand doubles taken in another order.
        ASSERT_NEAR(raw(out, doc, f), expected, 1e-6 * std::max(1.0, std::abs(expected)));
      }
    }
  }
}

TEST(Normaliser, DropsAndRecordsConstantFeatures) {
  ExecutionContext context;
  const Dataset train = random_data(20, 4);
  const Dataset test = random_data(20, 5);
  EXPECT_EQ(constant_features(train, context), (std::vector<std::int64_t>{2, 5}));
  for (const Normalisation kind : {Normalisation::kNone, Normalisation::kQueryMinmax,
                                   Normalisation::kZscore, Normalisation::kLog1pZscore}) {
    const FittedNormaliser all = fit_normaliser(kind, train, false, context);
    const FittedNormaliser fewer = fit_normaliser(kind, train, true, context);
    EXPECT_EQ(fewer.kept, (std::vector<std::int64_t>{0, 1, 3, 4, 6}));
    const Dataset wide = all.apply(test, context);
    const Dataset narrow = fewer.apply(test, context);
    ASSERT_EQ(narrow.features(), 5);
    for (std::int64_t doc = 0; doc < test.docs(); ++doc) {
      for (std::int64_t c = 0; c < 5; ++c) {
        ASSERT_EQ(raw(narrow, doc, c), raw(wide, doc, fewer.kept[c]));
      }
    }
  }
  const Dataset constant = read_text("0 qid:1 1:1\n1 qid:1 1:1\n");
  EXPECT_THROW(fit_normaliser(Normalisation::kNone, constant, true, context), Error);
  EXPECT_THROW(fit_normaliser(Normalisation::kZscore, train, true, context).apply(constant, context),
               InvalidArgument);
}

TEST(Normaliser, AppliesToOneQueryInPlaceWithSameBits) {
  ExecutionContext context;
  const Dataset train = random_data(20, 6);
  for (const Normalisation kind :
       {Normalisation::kQueryMinmax, Normalisation::kZscore, Normalisation::kLog1pZscore}) {
    for (const std::int64_t cosines : {std::int64_t{0}, kCosines}) {
      FittedNormaliser fitted = fit_normaliser(kind, train, true, context);
      fitted.cosines = cosines;
      const Dataset out = fitted.apply(train, context);
      for (std::int64_t query = 0; query < train.queries(); ++query) {
        const FeatureMatrix features = train.features_of(query);
        std::vector<float> values(features.values, features.values + features.docs * features.features);
        values.resize(features.docs * std::max(features.features, fitted.inputs()));
        fitted.apply({values.data(), features.docs, features.features}, values.data());
        ASSERT_EQ(std::memcmp(values.data(), out.features_of(query).values,
                              static_cast<std::size_t>(features.docs * fitted.inputs()) * sizeof(float)),
                  0);
      }
    }
  }
}

TEST(Normaliser, CosinesAreThoseOfInputsScaledInEachQuery) {
  ExecutionContext context(2);
  const Dataset data = random_data(20, 8);
  for (const Normalisation kind : {Normalisation::kNone, Normalisation::kQueryMinmax,
                                   Normalisation::kZscore, Normalisation::kLog1pZscore}) {
    const FittedNormaliser plain = fit_normaliser(kind, data, true, context);
    FittedNormaliser fitted = plain;
    fitted.cosines = kCosines;
    ASSERT_EQ(plain.inputs(), 5);
    ASSERT_EQ(fitted.inputs(), 20);
    const Dataset once = plain.apply(data, context);
    const Dataset scaled =
        fit_normaliser(Normalisation::kQueryMinmax, once, false, context).apply(once, context);
    EXPECT_TRUE(same_content(fitted.without_terms().apply(data, context), once));
    const Dataset out = fitted.apply(data, context);
    ASSERT_EQ(out.features(), 20);
    for (std::int64_t doc = 0; doc < data.docs(); ++doc) {
      for (std::int64_t c = 0; c < 5; ++c) {
        const double x = raw(scaled, doc, c);
        ASSERT_EQ(raw(out, doc, c), x);
        // One rounding to float of a number of at most 1.
        for (int k = 2; k < 2 + kCosines; ++k)
          ASSERT_NEAR(raw(out, doc, (k - 1) * 5 + c), std::cos(std::numbers::pi * k * x), 0x1p-24);
      }
    }
  }
}

TEST(Normaliser, CosinesHideNoInputThatWouldOverflow) {
  ExecutionContext context;
  const Dataset bad = read_text("1 qid:a 1:1 2:3\n0 qid:b 1:2 2:4\n0 qid:b 1:2 2:-1.1e12\n");
  for (const Normalisation kind : {Normalisation::kNone, Normalisation::kQueryMinmax}) {
    FittedNormaliser fitted = fit_normaliser(kind, bad, false, context);
    fitted.cosines = kCosines;
    const bool refuses = kind == Normalisation::kNone;
    EXPECT_EQ(refuses, message_of<InvalidArgument>([&] {
                         fitted.apply(bad, context);
                       }).find("Feature 2 of document 2 of query b gives the input -1.1e+12,") == 0);
  }
  FittedNormaliser fitted;
  fitted.features = 2;
  fitted.kept = {1};
  fitted.cosines = kCosines;
  const std::vector<float> inputs = {0.0F, 1.0F, 1.0F, 1.0F, 0.0F, 1.0F, std::nanf(""), 1.0F};
  const auto found = fitted.find_bad_input(inputs.data(), 2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->doc, 1);
  EXPECT_EQ(found->feature, 1);
}

TEST(Normaliser, GivesSameBitsOnAnyThreads) {
  const Dataset train = random_data(200, 7);
  ExecutionContext one;
  for (const Normalisation kind :
       {Normalisation::kQueryMinmax, Normalisation::kZscore, Normalisation::kLog1pZscore}) {
    const Dataset expected = fit_normaliser(kind, train, true, one).apply(train, one);
    for (const int threads : {2, 4}) {
      ExecutionContext context(threads);
      EXPECT_TRUE(same_content(fit_normaliser(kind, train, true, context).apply(train, context), expected));
    }
  }
}

TEST(NormaliserText, EveryKindRoundTripsExactly) {
  ExecutionContext context;
  const Dataset data =
      read_text("0 qid:1 1:0.1 2:7 3:-3e9\n1 qid:1 1:0.7 2:7 3:1e-9\n0 qid:2 1:3 2:7 3:2\n");
  for (const auto& [kind, name] : EnumNames<Normalisation>::values) {
    for (const bool drop_constant : {false, true}) {
      const FittedNormaliser fitted = fit_normaliser(kind, data, drop_constant, context);
      const FittedNormaliser read = parse_normaliser(normaliser_text(fitted), "there");
      EXPECT_EQ(read.kind, fitted.kind);
      EXPECT_EQ(read.features, 3);
      EXPECT_EQ(read.kept, fitted.kept);
      EXPECT_EQ(read.means, fitted.means);
      EXPECT_EQ(read.scales, fitted.scales);
      EXPECT_TRUE(same_content(read.apply(data, context), fitted.apply(data, context))) << name;
    }
  }
}

TEST(NormaliserText, RefusesInvalidText) {
  for (const auto& [text, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"", "It is not a JSON object."},
           {"[]", "It is not a JSON object."},
           {R"({"features":2})", "Its 'kind' is missing or not a string."},
           {R"({"kind":"rank","features":2})", "Its kind 'rank' is unknown."},
           {R"({"kind":"none"})", "Its 'features' is missing or not a valid number of features."},
           {R"({"kind":"none","features":0})",
            "Its 'features' is missing or not a valid number of features."},
           {R"({"kind":"none","features":-1})",
            "Its 'features' is missing or not a valid number of features."},
           {R"({"kind":"none","features":2,"kept":[]})",
            "Its 'kept' must be a non-empty array of increasing feature indices."},
           {R"({"kind":"none","features":2,"kept":[2]})",
            "Its 'kept' must be a non-empty array of increasing feature indices."},
           {R"({"kind":"none","features":2,"kept":[1,0]})",
            "Its 'kept' must be a non-empty array of increasing feature indices."},
           {R"({"kind":"none","features":2,"means":[1,2]})", "Its 'means' must be 0 finite numbers."},
           {R"({"kind":"zscore","features":2,"means":[1,2]})", "Its 'scales' must be 2 finite numbers."},
           {R"({"kind":"zscore","features":2,"means":[1],"scales":[1,2]})",
            "Its 'means' must be 2 finite numbers."},
           {R"({"kind":"zscore","features":2,"means":[1,null],"scales":[1,2]})",
            "Its 'means' must be 2 finite numbers."}}) {
    try {
      parse_normaliser(text, "m.safetensors");
      ADD_FAILURE() << text;
    } catch (const DataError& error) {
      EXPECT_EQ(error.what(), "m.safetensors: Its normalisation is invalid. " + sentence) << text;
    }
  }
}

}  // namespace
}  // namespace olrank
