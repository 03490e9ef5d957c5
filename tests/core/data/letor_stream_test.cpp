#include "core/data/letor_stream.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/random/rng_stream.h"
#include "tests/core/data/letor_support.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

/// Queries of 1 to 12 documents, some with names, some documents sparse.
std::string random_text(int queries) {
  RngStream rng(make_key({.seed = 4, .purpose = Purpose::kProbe}), 0);
  std::string text;
  for (int query = 0; query < queries; ++query) {
    const std::uint32_t docs = 1 + rng.index(12);
    for (std::uint32_t doc = 0; doc < docs; ++doc) {
      text += fmt::format("{} qid:q{}", rng.index(5), query);
      for (int feature = 1; feature <= 9; ++feature) {
        if (rng.index(3) > 0) text += fmt::format(" {}:{}", feature, rng.normal());
      }
      if (query % 3 == 1) text += fmt::format(" # docid = d{}", rng.index(1000000));
      text += "\n";
    }
  }
  return text + "1 qid:last 9:1\n";
}

class LetorStreamTest : public testing::Test {
 protected:
  LetorStream stream_of(std::string_view text, const LetorOptions& options = {},
                        std::int64_t features = 9) {
    write_file(file_, text);
    return LetorStream(file_.string(), features, options, pool_);
  }

  std::string refusal_of(std::string_view text, const LetorOptions& options = {}) {
    LetorStream stream = stream_of(text, options);
    return message_of([&] {
      while (stream.next()) {
      }
    });
  }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "data.txt";
  ThreadPool pool_{2};
};

TEST_F(LetorStreamTest, PiecesConcatenateToWholeFile) {
  const std::string text = random_text(80);
  const Dataset whole = read_text(text);
  ASSERT_EQ(whole.features(), 9);
  for (const Compression compression : {Compression::kNone, Compression::kGzip, Compression::kZstd}) {
    for (const std::size_t block_bytes : {std::size_t{1}, std::size_t{40}, std::size_t{700}, text.size()}) {
      const std::string bytes = compression == Compression::kNone ? text : compressed(text, compression);
      LetorStream stream = stream_of(bytes, {.block_bytes = block_bytes}, 11);
      std::int64_t query = 0;
      std::int64_t doc = 0;
      int pieces = 0;
      while (const auto piece = stream.next()) {
        ++pieces;
        ASSERT_EQ(piece->features(), 11);
        for (std::int64_t q = 0; q < piece->queries(); ++q, ++query) {
          ASSERT_EQ(piece->qid(q), whole.qid(query));
          ASSERT_EQ(piece->docs_of(q), whole.docs_of(query));
        }
        for (std::int64_t d = 0; d < piece->docs(); ++d, ++doc) {
          ASSERT_EQ(piece->all_grades()[d], whole.all_grades()[doc]);
          ASSERT_EQ(piece->doc_name(d), whole.doc_name(doc));
          const auto there = whole.all_features().doc(doc);
          const auto here = piece->all_features().doc(d);
          ASSERT_TRUE(std::equal(there.begin(), there.end(), here.begin()));
          ASSERT_EQ(here[9], 0.0F);
          ASSERT_EQ(here[10], 0.0F);
        }
      }
      EXPECT_EQ(query, whole.queries());
      EXPECT_EQ(doc, whole.docs());
      if (block_bytes == 40 && compression == Compression::kNone) {
        EXPECT_GT(pieces, 10);
      }
    }
  }
}

TEST_F(LetorStreamTest, QuerySpanningPiecesStaysWhole) {
  std::string text = "0 qid:a 1:1\n";
  for (int doc = 0; doc < 3000; ++doc) text += fmt::format("1 qid:b 1:{}\n", doc);
  LetorStream stream = stream_of(text + "0 qid:c 1:2\n", {.block_bytes = 16});
  std::vector<std::int64_t> docs;
  while (const auto piece = stream.next()) {
    for (std::int64_t query = 0; query < piece->queries(); ++query) docs.push_back(piece->docs_of(query));
    if (piece->qid(0) == "b") {
      EXPECT_EQ(piece->all_features().doc(2999)[0], 2999.0F);
    }
  }
  EXPECT_EQ(docs, (std::vector<std::int64_t>{1, 3000, 1}));
}

TEST_F(LetorStreamTest, RefusesScatteredQuery) {
  const std::string scattered = "0 qid:1 1:1\n0 qid:2 1:1\n0 qid:1 1:1\n";
  for (const std::size_t block_bytes : {1, 1000}) {
    LetorStream stream = stream_of(scattered, {.block_bytes = block_bytes});
    EXPECT_THROW(while (stream.next()){}, ScatteredQueries);
  }
}

TEST_F(LetorStreamTest, ErrorsHaveLineAndColumn) {
  const std::string name = file_.string();
  const LetorOptions small{.block_bytes = 1};
  for (const LetorOptions& options : {LetorOptions(), small}) {
    EXPECT_EQ(refusal_of("0 qid:1 1:1\n1 qid:1 10:1\n", options),
              name + ":2:9: Feature 10 exceeds the limit of 9 features.");
    EXPECT_EQ(refusal_of("", options), name + ":1:1: The file contains no document.");
    EXPECT_EQ(refusal_of("# nothing\n", options), name + ":1:1: The file contains no document.");
    EXPECT_EQ(refusal_of("0 qid:1\n", options), name + ":1:1: No document in the file has a feature.");
    // The first of two mistakes, in the words of the whole file's reader.
    const std::string torn = "0 qid:1 1:1\n0 qid:1 1:y\n\n0 qid:1 1:z\n";
    std::string expected;
    try {
      read_text(torn);
    } catch (const DataError& error) {
      expected = error.what();
    }
    EXPECT_EQ(refusal_of(torn, options), folder_.path().string() + "/" + expected);
  }
  LetorOptions tight;
  tight.max_bytes = 9 * 4 * 2;
  EXPECT_NE(refusal_of("0 qid:1 1:1\n0 qid:1 1:1\n0 qid:1 1:1\n", tight).find("--max-memory"),
            std::string::npos);
}

TEST_F(LetorStreamTest, WarnsOnceAboutMissingValues) {
  ExpectedWarnings warnings;
  LetorStream stream = stream_of("0 qid:1 1:1\n0 qid:1 1:NULL\n0 qid:2 1:NULL\n", {.block_bytes = 1});
  while (stream.next()) {
  }
  ASSERT_EQ(warnings.messages().size(), 1U);
  EXPECT_NE(warnings.messages()[0].find(":2:11: 2 values are NULL"), std::string::npos)
      << warnings.messages()[0];
}

}  // namespace
}  // namespace olrank
