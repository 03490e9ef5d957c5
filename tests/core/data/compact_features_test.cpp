#include "core/data/compact_features.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "core/data/feature_blocks.h"
#include "core/data/feature_store.h"
#include "core/data/normaliser.h"
#include "core/error.h"
#include "core/random/rng_stream.h"
#include "tests/core/data/letor_support.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

constexpr FeatureType kCompact[] = {FeatureType::kFloat16, FeatureType::kUint8};

/// Five features: normal ones of two scales, a skewed one, one constant within each query, one sparse.
Dataset made_data(int queries) {
  RngStream rng(make_key({.seed = 3, .purpose = Purpose::kProbe}), 1);
  std::string text;
  for (int query = 0; query < queries; ++query) {
    const double within = rng.normal();
    for (std::uint32_t doc = 0, docs = 1 + rng.index(30); doc < docs; ++doc) {
      text += fmt::format("{} qid:{} 1:{} 2:{} 3:{} 4:{} 5:{}\n", rng.index(3), query, rng.normal(),
                          100.0 * rng.normal() + 300.0, std::exp(8.0 * rng.uniform()), within,
                          rng.index(3) == 0 ? rng.uniform() : 0.0);
    }
  }
  return read_text(text);
}

std::vector<float> values_of(const Dataset& data) {
  std::vector<float> values(data.docs() * data.features());
  for (std::int64_t query = 0; query < data.queries(); ++query)
    data.copy_features(query, values.data() + data.offset(query) * data.features());
  return values;
}

bool same_codes(const Dataset& a, const Dataset& b) {
  const auto& x = a.contents().compact;
  const auto& y = b.contents().compact;
  return x.type == y.type && std::ranges::equal(x.codes, y.codes) && std::ranges::equal(x.bounds, y.bounds);
}

TEST(CompactFeatures, SharesAreTheNearestOf256Steps) {
  std::vector<float> values;
  for (int k = 0; k < 256; ++k) values.push_back(static_cast<float>(k) / 255.0F);
  for (int i = 0; i <= 1000; ++i) values.push_back(static_cast<float>(i) / 1000.0F);
  std::vector<std::byte> codes(values.size());
  std::vector<float> back(values.size());
  encode_features(FeatureType::kUint8, values, {}, 1, codes.data());
  decode_features(FeatureType::kUint8, codes.data(), {}, 1, back);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i < 256) {
      EXPECT_EQ(static_cast<std::size_t>(codes[i]), i);
      EXPECT_EQ(back[i], values[i]);
    }
    EXPECT_LE(std::abs(double{back[i]} - double{values[i]}),
              0.5 / 255.0 + 1e-7);  // half a step, and rounding
  }
}

TEST(CompactFeatures, BothEndsOfAColumnAreExactAndOthersWithinHalfAStep) {
  const std::vector<float> values = {-3.0F, 7e30F, 0.1F, -1.0F, 9e30F, 0.1F, 2.5F, -8e30F, 0.1F};
  std::vector<float> bounds(6);
  column_bounds(values.data(), 3, 3, bounds.data(), bounds.data() + 3);
  std::vector<std::byte> codes(values.size());
  std::vector<float> back(values.size());
  encode_features(FeatureType::kUint8, values, bounds, 3, codes.data());
  decode_features(FeatureType::kUint8, codes.data(), bounds, 3, back);
  for (const std::size_t end : {0U, 6U, 4U, 7U, 2U, 5U, 8U}) EXPECT_EQ(back[end], values[end]);
  // 255 (-1 - -3) / 5.5 is 92.7: code 93.
  EXPECT_EQ(static_cast<int>(codes[3]), 93);
  EXPECT_FLOAT_EQ(back[3], static_cast<float>(-3.0 + 5.5 * 93.0 / 255.0));
  EXPECT_NEAR(back[1] / 1e30, 7.0, 0.5 * 17.0 / 255.0);
}

TEST(CompactFeatures, ANormalisedPartHasTheNearestValuesOnAnyThreadsAndInFiles) {
  const Dataset raw = made_data(40);
  for (const auto& [kind, name] : EnumNames<Normalisation>::values) {
    ExecutionContext one;
    const FittedNormaliser normaliser = fit_normaliser(kind, raw, false, one);
    const Dataset exact = normaliser.apply(raw, one);
    for (const FeatureType type : kCompact) {
      SCOPED_TRACE(fmt::format("{} {}", name, name_of(type)));
      const Dataset kept = normaliser.apply(raw, one, type);
      EXPECT_TRUE(kept.is_compact());
      EXPECT_FALSE(kept.fingerprint() == exact.fingerprint());
      std::vector<float> buffer;
      for (std::int64_t query = 0; query < raw.queries(); ++query) {
        const FeatureMatrix wanted = exact.features_of(query);
        const FeatureMatrix found = kept.read_features(query, buffer);
        std::vector<float> bounds(10);
        column_bounds(wanted.values, wanted.docs, 5, bounds.data(), bounds.data() + 5);
        for (std::int64_t i = 0; i < wanted.docs * 5; ++i) {
          const double value = wanted.values[i];
          const double range =
              kind == Normalisation::kQueryMinmax ? 1.0 : double{bounds[5 + i % 5]} - double{bounds[i % 5]};
          // Half of 2^-11 of a number's size, and half of the smallest one; half of a step; and float's
          // own.
          const double allowed = type == FeatureType::kFloat16
                                     ? 0x1p-11 * std::abs(value) + 0x1p-25
                                     : 0.5 * range / 255.0 + 1e-7 * std::abs(value);
          ASSERT_LE(std::abs(found.values[i] - value), allowed + 1e-7) << query << ' ' << i;
        }
      }
      ExecutionContext three(3);
      EXPECT_TRUE(same_codes(normaliser.apply(raw, three, type), kept));
      const auto store = std::make_shared<FeatureStore>(24'000, std::filesystem::current_path());
      const Dataset stored = normaliser.apply(stored_by(store, raw, "data.txt"), three, type);
      store->take(static_cast<std::size_t>(store->left()));  // all that follows is in files
      const Dataset in_files = normaliser.apply(stored_by(store, raw, "data.txt"), three, type);
      for (const Dataset* other : {&stored, &in_files}) {
        EXPECT_TRUE(same_codes(*other, kept));
        EXPECT_TRUE(other->fingerprint() == kept.fingerprint());
        EXPECT_EQ(values_of(*other), values_of(kept));
      }
    }
  }
}

TEST(CompactFeatures, TakeAHalfAndAQuarter) {
  ExecutionContext context;
  const Dataset raw = made_data(10);
  const FittedNormaliser shares = fit_normaliser(Normalisation::kQueryMinmax, raw, false, context);
  const std::int64_t whole = raw.docs() * raw.features() * 4;
  EXPECT_EQ(shares.apply(raw, context).feature_bytes(), whole);
  EXPECT_EQ(shares.apply(raw, context, FeatureType::kFloat16).feature_bytes(), whole / 2);
  EXPECT_EQ(shares.apply(raw, context, FeatureType::kUint8).feature_bytes(), whole / 4);
  // With bounds: two floats for each column of each query.
  const FittedNormaliser scores = fit_normaliser(Normalisation::kZscore, raw, false, context);
  EXPECT_EQ(scores.apply(raw, context, FeatureType::kUint8).feature_bytes(), whole / 4 + 10 * 5 * 8);
}

TEST(CompactFeatures, BlocksOfQueriesHaveAllValuesAndLists) {
  ExecutionContext context(2);
  const Dataset raw = made_data(700);
  const FittedNormaliser normaliser = fit_normaliser(Normalisation::kQueryMinmax, raw, false, context);
  for (const FeatureType type : {FeatureType::kFloat32, FeatureType::kFloat16, FeatureType::kUint8}) {
    const Dataset kept = normaliser.apply(raw, context, type);
    std::vector<float> values;
    std::vector<std::int64_t> ends;
    int blocks = 0;
    for_feature_blocks(kept, context, [&](FeatureMatrix docs, std::int64_t first) {
      EXPECT_EQ(first * kept.features(), std::ssize(values));
      values.insert(values.end(), docs.values, docs.values + docs.docs * docs.features);
      for (const std::int64_t end : docs.list_ends) ends.push_back(first + end);
      ++blocks;
    });
    EXPECT_EQ(blocks > 1, kept.is_compact());
    EXPECT_EQ(values, values_of(kept));
    EXPECT_TRUE(std::ranges::equal(ends, kept.offsets().subspan(1)));
  }
}

TEST(CompactFeatures, Float16RefusesWhatItCannotHold) {
  ExecutionContext context(2);
  const Dataset good = read_text("1 qid:a 1:65504 2:3\n0 qid:b 1:-65504 2:4\n");
  const Dataset bad =
      read_text("1 qid:a 1:1 2:3\n0 qid:b 1:2 2:4\n0 qid:b 1:2 2:-65505\n0 qid:c 1:1e6 2:1\n");
  const FittedNormaliser normaliser = fit_normaliser(Normalisation::kNone, good, false, context);
  EXPECT_EQ(values_of(normaliser.apply(good, context, FeatureType::kFloat16)), values_of(good));
  EXPECT_EQ(
      message_of<InvalidArgument>([&] { normaliser.apply(bad, context, FeatureType::kFloat16); }),
      "Feature 2 of document 2 of query b gives the input -65505, beyond ±65504, the largest number of "
      "float16. Use normalise = \"query-minmax\", keep features as float32 or uint8, or correct the "
      "value.");
  EXPECT_TRUE(normaliser.apply(bad, context, FeatureType::kUint8).is_compact());
  const FittedNormaliser shares = fit_normaliser(Normalisation::kQueryMinmax, good, false, context);
  EXPECT_TRUE(shares.apply(bad, context, FeatureType::kFloat16).is_compact());
}

}  // namespace
}  // namespace olrank
