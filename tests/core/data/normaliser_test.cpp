#include "core/data/normaliser.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/data/dataset_cache.h"
#include "core/data/dataset_file.h"
#include "core/data/doc_table.h"
#include "core/data/join.h"
#include "core/data/letor_stream.h"
#include "core/error.h"
#include "core/random/rng_stream.h"
#include "tests/core/data/letor_support.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

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
constexpr Normalisation kKinds[] = {Normalisation::kNone, Normalisation::kQueryMinmax,
                                    Normalisation::kZscore, Normalisation::kLog1pZscore};

bool is_constant(std::int64_t feature) {
  return feature == 2 || feature == 5;
}

TEST(Normaliser, RefusesInputsThatWouldOverflow) {
  ExecutionContext context;
  const Dataset good = read_text("1 qid:a 1:1e12 2:3\n0 qid:b 1:-1e12 2:4\n");
  const Dataset bad = read_text("1 qid:a 1:1 2:3\n0 qid:b 1:2 2:4\n0 qid:b 1:2 2:-1.1e12\n");
  for (const std::int64_t cosines : {std::int64_t{0}, kCosines}) {
    for (const Normalisation kind : {Normalisation::kNone, Normalisation::kQueryMinmax}) {
      FittedNormaliser fitted = fit_normaliser(kind, good, false, context);
      fitted.cosines = cosines;
      EXPECT_EQ(fitted.apply(good, context).docs(), 2);
      if (kind == Normalisation::kQueryMinmax) {
        EXPECT_EQ(fitted.apply(bad, context).docs(), 3);
        continue;
      }
      EXPECT_EQ(message_of<InvalidArgument>([&] { fitted.apply(bad, context); }),
                "Feature 2 of document 2 of query b gives the input -1.1e+12, beyond the limit of ±1e+12: "
                "scores would overflow. Use normalise = \"query-minmax\", or correct the value.");
    }
    FittedNormaliser fitted;
    fitted.features = 2;
    fitted.kept = {1};
    fitted.cosines = cosines;
    std::vector<float> inputs(2 * fitted.inputs(), 1.0F);
    inputs.end()[-2] = std::nanf("");  // of the first document without cosines
    const auto found = fitted.find_bad_input(inputs.data(), 2);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->doc, cosines > 0 ? 1 : 0);
    EXPECT_EQ(found->feature, 1);
  }
  // A z-score is unbounded where the training part was nearly constant.
  const Dataset narrow = read_text("1 qid:a 1:0 2:3\n0 qid:b 1:1e-9 2:4\n");
  const FittedNormaliser fitted = fit_normaliser(Normalisation::kZscore, narrow, false, context);
  EXPECT_THROW(fitted.apply(read_text("1 qid:a 1:1e6 2:3\n"), context), InvalidArgument);
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
  for (const Normalisation kind : kKinds) {
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
  for (const Normalisation kind : kKinds) {
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
  for (const Normalisation kind : kKinds) {
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

TEST(Normaliser, GivesSameBitsOnAnyThreads) {
  const Dataset train = random_data(200, 7);
  ExecutionContext one;
  for (const Normalisation kind : kKinds) {
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
      if (kind != Normalisation::kNone || drop_constant) continue;
      EXPECT_TRUE(same_content(read.apply(data, context), data));
    }
  }
}

TEST(NormaliserText, RefusesInvalidText) {
  expect_cases("core/refusals.txt", "normalisations", [](const std::string& text) {
    return message_of<DataError>([&] { parse_normaliser(text, "m.safetensors"); });
  });
}

/// Queries of 1 to 12 documents with a few of 200 features: some negative, some 0 by name, column 7 in
/// every document, the columns of a line in any order.
std::string sparse_text(int queries, bool scattered = false) {
  RngStream rng(make_key({.seed = 4, .purpose = Purpose::kProbe}), 0);
  std::string text;
  for (int query = 0; query < queries; ++query) {
    const std::uint32_t docs = 1 + rng.index(12);
    for (std::uint32_t doc = 0; doc < docs; ++doc) {
      text += fmt::format("{} qid:{} 200:{} 7:{}", rng.index(3), scattered ? doc % 3 : query, rng.index(2),
                          3 + rng.index(4));
      for (std::uint32_t column = 10 + rng.index(30); column < 200; column += 1 + rng.index(60))
        text += fmt::format(" {}:{}", column, rng.index(4) == 0 ? 0.0 : rng.normal());
      text += fmt::format(" # docid = d{}\n", doc);
    }
  }
  return text;
}

LetorOptions sparse() {
  return {.layout = FeatureLayout::kSparse};
}

/// Returns the features with their zeros.
std::vector<float> dense_values(const Dataset& data) {
  std::vector<float> values(data.docs() * data.features());
  for (std::int64_t doc = 0; doc < data.docs(); ++doc) {
    const SparseRow row = data.all_rows().sparse_doc(doc);
    std::int32_t last = -1;
    for (std::size_t i = 0; i < row.columns.size(); ++i) {
      EXPECT_GT(row.columns[i], last);
      EXPECT_NE(row.values[i], 0.0F);
      last = row.columns[i];
      values[doc * data.features() + last] = row.values[i];
    }
  }
  return values;
}

void expect_equal(const Dataset& sparse, const Dataset& dense) {
  ASSERT_TRUE(sparse.is_sparse());
  ASSERT_EQ(sparse.features(), dense.features());
  const auto values = dense.contents().values;
  EXPECT_EQ(dense_values(sparse), std::vector<float>(values.begin(), values.end()));
  for (std::int64_t doc = 0; doc < dense.docs(); ++doc) {
    EXPECT_EQ(sparse.all_grades()[doc], dense.all_grades()[doc]);
    EXPECT_EQ(sparse.doc_name(doc), dense.doc_name(doc));
  }
}

TEST(SparseRows, AreReadAndGroupedAsDenseOnesAre) {
  for (const bool scattered : {false, true}) {
    const std::string text = sparse_text(20, scattered);
    expect_equal(read_text(text, {.block_bytes = 300, .layout = FeatureLayout::kSparse}), read_text(text));
    EXPECT_EQ(read_text(text, sparse(), 3).fingerprint(), read_text(text, sparse()).fingerprint());
  }
  ThreadPool pool(1);
  EXPECT_TRUE(as_sparse(read_text(sparse_text(5)), pool).fingerprint() ==
              read_text(sparse_text(5), sparse()).fingerprint());
}

TEST(SparseRows, AutoTakesManyColumnsWithFewValues) {
  EXPECT_TRUE(read_text("1 qid:1 3:1 10000:2\n").is_sparse());
  EXPECT_FALSE(read_text("1 qid:1 3:1 9999:2\n").is_sparse());
  EXPECT_FALSE(read_text("1 qid:1 3:1 10000:2\n", {.layout = FeatureLayout::kDense}).is_sparse());
  std::string full = "1 qid:1";
  for (int column = 1; column <= 10'000; column += 10) full += fmt::format(" {}:1", column);
  EXPECT_FALSE(read_text(full + " 10000:1\n").is_sparse());
}

TEST(SparseRows, RefuseWhatDenseOnesRefuse) {
  expect_cases("core/data/letor_files_test.txt", "sparse lines", [](const std::string& text) {
    return message_of<DataError>([&] { read_text(text, sparse()); });
  });
  EXPECT_EQ(message_of<InvalidArgument>([] { read_text("1 qid:1 5:1\n", sparse()).all_features(); }),
            "This needs dense features, and the data are sparse: set data.layout = \"dense\", with enough "
            "memory for all of their zeros.");
}

TEST(SparseRows, ColumnsCountTowardsTheMemoryLimit) {
  EXPECT_EQ(message_of<DataError>(
                [] { read_text("0 qid:1 2:1\n1 qid:1 4000000:1\n", {.max_bytes = 1'000'000}); }),
            "data.txt:2:9: With feature 4000000, the sparse matrix and model of the first 2 documents need "
            "256000032 bytes, but --max-memory allows 1000000. Raise --max-memory, or remove or renumber "
            "features.");
}

TEST(SparseRows, AreNormalisedToTheBitsOfDenseOnes) {
  ExecutionContext context(2);
  for (const Normalisation kind : {Normalisation::kNone, Normalisation::kQueryMinmax}) {
    for (const bool drop_constant : {false, true}) {
      const std::string text = sparse_text(30);
      const Dataset dense = read_text(text);
      const Dataset rows = read_text(text, sparse());
      const FittedNormaliser fitted = fit_normaliser(kind, rows, drop_constant, context);
      EXPECT_EQ(fitted.kept, fit_normaliser(kind, dense, drop_constant, context).kept);
      EXPECT_EQ(fitted.kept.empty(), !drop_constant);
      expect_equal(fitted.apply(rows, context), fitted.apply(dense, context));
    }
  }
}

TEST(SparseRows, RefuseNormalisationThatShiftsZeros) {
  ExecutionContext context;
  const Dataset data = read_text(sparse_text(3), sparse());
  EXPECT_EQ(
      message_of<InvalidArgument>([&] { fit_normaliser(Normalisation::kZscore, data, false, context); }),
      "The data are sparse, and normalise = \"zscore\" would make each of their zeros another number: use "
      "normalise = \"query-minmax\" or \"none\".");
  // Negative values in columns of their own: all other documents get ones.
  std::string text;
  for (int doc = 1; doc <= 400; ++doc) text += fmt::format("1 qid:q {}:-1\n", doc);
  const Dataset negative = read_text(text, sparse());
  const FittedNormaliser fitted = fit_normaliser(Normalisation::kQueryMinmax, negative, false, context);
  EXPECT_EQ(
      message_of<InvalidArgument>([&] { fitted.apply(negative, context); }),
      "The features of query q are negative in columns that other documents lack, so that normalise = "
      "\"query-minmax\" would make 159600 values of 400: use normalise = \"none\".");
  const Dataset large = read_text("1 qid:q 3:1\n0 qid:q 5:2e12\n", sparse());
  const std::string refused = message_of<InvalidArgument>(
      [&] { fit_normaliser(Normalisation::kNone, large, false, context).apply(large, context); });
  EXPECT_EQ(refused.substr(0, 62), "Feature 5 of document 2 of query q gives the input 2e+12, beyo");
}

TEST(SparseRows, AreWrittenAndReadBack) {
  const Dataset data = read_text(sparse_text(9), sparse());
  const Dataset back = read_binary(binary_of(data), 2);
  EXPECT_EQ(dense_values(back), dense_values(data));
  EXPECT_TRUE(back.fingerprint() == data.fingerprint());
  EXPECT_TRUE(read_text(letor_text(data, false), sparse()).fingerprint() == data.fingerprint());

  // Columns that do not rise, with a fingerprint that says so.
  Dataset::Contents wrong = data.contents();
  std::vector<std::int32_t> columns(wrong.columns.begin(), wrong.columns.end());
  std::swap(columns[0], columns[1]);
  wrong.columns = columns;
  EXPECT_EQ(message_of<DataError>([&] { read_binary(binary_of(Dataset(wrong))); }),
            "data.olrank: This is not a valid olrank data file: its sparse rows contradict each other.");
}

TEST(SparseRows, AreJoinedWidenedAndSelectedAsDenseOnesAre) {
  ExecutionContext context(2);
  const std::string a = sparse_text(6);
  const std::string b = sparse_text(8, true);
  std::vector<Dataset> parts = {read_text(a, sparse()), read_text(b, sparse())};
  std::vector<Dataset> dense = {read_text(a), read_text(b)};
  const Dataset joined = join_parts(parts, context);
  expect_equal(joined, join_parts(dense, context));
  expect_equal(widened(parts[0], 300, context), widened(dense[0], 300, context));
  expect_equal(select_queries(joined, {3, 1}, context),
               select_queries(join_parts(dense, context), {3, 1}, context));
}

TEST(SparseRows, ComeFromTheCacheAndInPieces) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "a.txt").string();
  write_file(path, sparse_text(40));
  ThreadPool pool(2);
  const DatasetCache cache(folder.path() / "cache");
  const Dataset first = cache.read(path, sparse(), pool);
  const std::optional<Dataset> copy = cache.find(path, sparse(), pool);
  ASSERT_TRUE(copy.has_value());
  EXPECT_TRUE(copy->is_sparse() && copy->fingerprint() == first.fingerprint());
  EXPECT_FALSE(cache.read(path, {}, pool).is_sparse());  // each layout has a copy of its own

  LetorStream stream(path, 210, {.block_bytes = 200, .layout = FeatureLayout::kSparse}, pool);
  std::vector<float> values;
  while (const auto piece = stream.next()) {
    EXPECT_TRUE(piece->is_sparse());
    const std::vector<float> of_piece = dense_values(*piece);
    values.insert(values.end(), of_piece.begin(), of_piece.end());
  }
  ExecutionContext context;
  EXPECT_EQ(values, dense_values(widened(first, 210, context)));
}

}  // namespace
}  // namespace olrank
