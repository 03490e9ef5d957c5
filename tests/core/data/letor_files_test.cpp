#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <string>

#include "core/data/join.h"
#include "core/data/letor_parser.h"
#include "core/data/letor_stream.h"
#include "core/data/synthetic.h"
#include "core/error.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "tests/core/data/letor_support.h"
#include "tests/support/cases.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

/// The number as std::from_chars reads it, where that is within float's range.
void expect_same_as_from_chars(const std::string& text, std::int64_t& compared) {
  float expected = 0.0F;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), expected);
  const std::string ended = text + "\n";
  float value = 0.0F;
  const char* end = parse_float(ended.data(), value);
  if (error == std::errc::invalid_argument) {
    EXPECT_EQ(end, nullptr) << text;
    return;
  }
  ASSERT_NE(end, nullptr) << text;
  ASSERT_EQ(end - ended.data(), rest - text.data()) << text;
  if (error == std::errc::result_out_of_range) {
    EXPECT_TRUE(std::isinf(value) || value == 0.0F) << text;
    return;
  }
  ASSERT_EQ(std::bit_cast<std::uint32_t>(value), std::bit_cast<std::uint32_t>(expected)) << text;
  ++compared;
}

class RandomTexts {
 public:
  explicit RandomTexts(std::uint32_t number)
      : rng_(make_key({.seed = 4, .purpose = Purpose::kProbe}), number) {}

  std::string next() {
    std::string text;
    switch (rng_.index(6)) {
      case 0:
        return digits(1 + rng_.index(6)) + "." + digits(1 + rng_.index(7));
      case 1:
        return "0." + digits(rng_.index(20));
      case 2:
        return "-" + digits(1 + rng_.index(22));
      case 3:
        text = digits(rng_.index(12)) + "." + digits(1 + rng_.index(25));
        return text + "e" + (rng_.index(2) == 0 ? "-" : "") + fmt::format("{}", rng_.index(50));
      case 4:
        return fmt::format("{}", std::bit_cast<float>(finite_bits()));
      default:
        return near_middle();
    }
  }

 private:
  std::string digits(std::uint32_t count) {
    std::string text;
    for (std::uint32_t i = 0; i < count; ++i) text += static_cast<char>('0' + rng_.index(10));
    return text;
  }
  std::uint32_t finite_bits() {
    for (;;) {
      const std::uint32_t bits = rng_.next_bits();
      if ((bits >> 23 & 0xFF) != 0xFF) return bits;
    }
  }
  /// On, just above or just below the middle between two floats: where rounding twice goes wrong.
  std::string near_middle() {
    const double middle = (static_cast<double>(rng_.next_bits() >> 8 | 1U << 23) + 0.5) *
                          std::ldexp(1.0, static_cast<int>(rng_.index(60)) - 40);
    std::string text = fmt::format("{:.{}g}", middle, 15 + rng_.index(30));
    const bool is_plain = text.find('e') == std::string::npos && text.find('.') != std::string::npos;
    if (is_plain && rng_.index(2) == 0) text += digits(rng_.index(4));
    return text;
  }

  RngStream rng_;
};

TEST(LetorNumber, MatchesFromCharsOnThreeMillionRandomStrings) {
  std::int64_t compared = 0;
  constexpr std::uint32_t kBlocks = kSanitized ? 3 : 30;
  for (std::uint32_t block = 0; block < kBlocks; ++block) {
    RandomTexts texts(block);
    for (int i = 0; i < 100'000; ++i) {
      expect_same_as_from_chars(texts.next(), compared);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GT(compared, kBlocks * 83'000);
}

TEST(LetorNumber, HandlesEdgesOfFloatRange) {
  const auto read = [](const std::string& text) {
    float value = -1.0F;
    const std::string ended = text + "\n";
    EXPECT_NE(parse_float(ended.data(), value), nullptr) << text;
    return value;
  };
  EXPECT_EQ(read("1e-60"), 0.0F);
  EXPECT_TRUE(std::signbit(read("-1e-60")));
  EXPECT_EQ(read("1e-999999999999999999999"), 0.0F);
  EXPECT_EQ(read("0.00000000000000000000000000000000000000000000000000000000000000000001"), 0.0F);
  EXPECT_EQ(read("1e-45"), 0x1p-149F);
  EXPECT_TRUE(std::isinf(read("1e39")));
  EXPECT_TRUE(std::isinf(read("-1e999999999999999999999")));
  EXPECT_TRUE(std::isinf(read("1" + std::string(60, '0'))));
  EXPECT_EQ(read("1" + std::string(60, '0') + "e-60"), 1.0F);
  EXPECT_EQ(read("0." + std::string(60, '0') + "1e61"), 1.0F);
  EXPECT_EQ(read("3.4028234663852886e38"), std::numeric_limits<float>::max());
  EXPECT_EQ(read("0e99999"), 0.0F);
  EXPECT_EQ(read("5."), 5.0F);
  EXPECT_EQ(read(".5"), 0.5F);
}

TEST(LetorNumber, RefusesNonNumbers) {
  for (const char* text :
       {"\n", "-\n", ".\n", "-.\n", "e5\n", "nan\n", "inf\n", "-inf\n", "+1\n", " 1\n"}) {
    float value = 0.0F;
    EXPECT_EQ(parse_float(text, value), nullptr) << text;
  }
}

std::vector<float> row(const Dataset& data, std::int64_t doc) {
  const auto values = data.all_features().doc(doc);
  return {values.begin(), values.end()};
}

TEST(LetorParser, AcceptsUnusualButValidLines) {
  const Dataset data = read_text(
      "\xEF\xBB\xBF# a heading\r\n"
      "\n"
      "  2.0\tqid:a  5:1\t2:+7 \r\n"
      "0. qid:a 1:1#docid=x\n"
      "+1 qid:b#  docid  =  y z\n"
      " \t \n"
      "31 qid:b 1:-0 5:.5 # docids = no, mydocid = no\r\r\n"
      "1.000 qid:c");
  ASSERT_EQ(data.docs(), 5);
  EXPECT_EQ(data.features(), 5);
  EXPECT_EQ(row(data, 0), (std::vector<float>{0, 7, 0, 0, 1}));
  EXPECT_EQ(row(data, 1), (std::vector<float>{1, 0, 0, 0, 0}));
  EXPECT_EQ(row(data, 2), (std::vector<float>(5, 0.0F)));
  EXPECT_EQ(row(data, 3), (std::vector<float>{-0.0F, 0, 0, 0, 0.5F}));
  EXPECT_TRUE(std::signbit(row(data, 3)[0]));
  EXPECT_EQ(data.doc_name(0), "");
  EXPECT_EQ(data.doc_name(1), "x");
  EXPECT_EQ(data.doc_name(2), "y");
  EXPECT_EQ(data.doc_name(3), "");
  EXPECT_EQ(data.max_grade(), 31);
  EXPECT_EQ(data.queries(), 3);
}

TEST(LetorParser, GroupsQueriesInOrderOfFirstAppearance) {
  const Dataset data = read_text(
      "0 qid:b 1:1 # docid = 1\n1 qid:a 1:2\n2 qid:b 1:3 # docid = 3\n3 qid:c 1:4\n4 qid:a 1:5 # docid = "
      "5\n");
  ASSERT_EQ(data.queries(), 3);
  EXPECT_EQ(data.qid(0), "b");
  EXPECT_EQ(data.qid(1), "a");
  EXPECT_EQ(data.qid(2), "c");
  std::vector<float> values;
  std::string names;
  for (std::int64_t doc = 0; doc < data.docs(); ++doc) {
    values.push_back(row(data, doc)[0]);
    EXPECT_EQ(data.all_grades()[doc], values.back() - 1);
    names += std::string(data.doc_name(doc)) + ",";
  }
  EXPECT_EQ(values, (std::vector<float>{1, 3, 2, 5, 4}));
  EXPECT_EQ(names, "1,3,,5,,");
}

TEST(LetorParser, CountsMissingValuesInOneWarning) {
  const ExpectedWarnings warnings;
  const Dataset data = read_text("0 qid:1 1:1 2:NULL\n0 qid:1 2:NULL 1:NULL\n0 qid:1 3:1 1:2\n");
  EXPECT_EQ(row(data, 0), (std::vector<float>{1, 0, 0}));
  EXPECT_EQ(row(data, 1), (std::vector<float>{0, 0, 0}));
  ASSERT_EQ(warnings.messages().size(), 1U);
  EXPECT_EQ(warnings.messages()[0],
            "data.txt:1:15: 3 values are NULL and are read as 0; this is the first.");
}

TEST(LetorParser, ErrorsHaveReasonLineAndColumn) {
  expect_cases("core/data/letor_files_test.txt", "lines",
               [](const std::string& text) { return message_of<DataError>([&] { read_text(text); }); });
}

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
  ExecutionContext context(2);
  const Dataset tail = widened(read_text("1 qid:tail 1:1\n"), 11, context);
  const Dataset whole = join_parts({widened(read_text(text), 11, context), tail}, context);
  for (const Compression compression : {Compression::kNone, Compression::kGzip, Compression::kZstd}) {
    for (const std::size_t block_bytes : {std::size_t{1}, std::size_t{40}, std::size_t{700}, text.size()}) {
      LetorStream stream = stream_of(compressed(text, compression), {.block_bytes = block_bytes}, 11);
      std::vector<Dataset> pieces;
      while (const auto piece = stream.next()) pieces.push_back(*piece);
      if (block_bytes == 40 && compression == Compression::kNone) {
        EXPECT_GT(pieces.size(), 10U);
      }
      pieces.push_back(tail);
      EXPECT_TRUE(same_content(join_parts(pieces, context), whole));
    }
  }
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
    for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
             {"0 qid:1 1:1\n1 qid:1 10:1\n", ":2:9: Feature 10 exceeds the limit of 9 features."},
             {"", ":1:1: The file contains no document."},
             {"# nothing\n", ":1:1: The file contains no document."},
             {"0 qid:1\n", ":1:1: No document in the file has a feature."}})
      EXPECT_EQ(refusal_of(text, options), name + message);
    // The first of two mistakes, in the words of the whole file's reader.
    const std::string torn = "0 qid:1 1:1\n0 qid:1 1:y\n\n0 qid:1 1:z\n";
    const std::string expected = message_of<DataError>([&] { read_text(torn); });
    EXPECT_EQ(refusal_of(torn, options), folder_.path().string() + "/" + expected);
  }
  LetorOptions tight;
  tight.max_bytes = 9 * 4 * 2;
  EXPECT_TRUE(contains(refusal_of("0 qid:1 1:1\n0 qid:1 1:1\n0 qid:1 1:1\n", tight), "--max-memory"));
}

TEST(LetorWriter, WritesUsualLine) {
  const Dataset data = read_text("2.0 qid:a 3:1e-7 1:0.10 # docid = x\n0 qid:a 1:-0\n");
  EXPECT_EQ(letor_text(data, false), "2 qid:a 1:0.1 2:0 3:1e-07 # docid = x\n0 qid:a 1:-0 2:0 3:0\n");
  EXPECT_EQ(letor_text(data, true), "2 qid:a 1:0.1 3:1e-07 # docid = x\n0 qid:a 1:-0\n");
}

TEST(LetorWriter, RoundTripKeepsEveryBit) {
  RngStream rng(make_key({.seed = 3, .purpose = Purpose::kProbe}), 0);
  std::string text;
  for (int doc = 0; doc < 100; ++doc) {
    text += std::to_string(rng.index(32)) + " qid:" + std::to_string(doc / 9);
    for (int feature = 1; feature <= 30; ++feature) {
      const std::uint32_t bits = rng.next_bits();
      if ((bits >> 23 & 0xFF) == 0xFF || rng.index(3) == 0) continue;
      text += fmt::format(" {}:{:.9g}", feature, double{std::bit_cast<float>(bits)});
    }
    text += "\n";
  }
  // The last columns of the second text are empty in its sparse form.
  for (const std::string& one : {text, std::string("1 qid:1 1:1 9:0\n0 qid:1 2:2\n")}) {
    const Dataset data = read_text(one);
    for (const bool sparse : {false, true})
      EXPECT_TRUE(same_content(read_text(letor_text(data, sparse)), data));
  }
}

TEST(LetorWriter, WrittenDataKeepsLineOrder) {
  const Dataset moved = read_text("1 qid:1 1:1\n0 qid:2 1:2\n0 qid:1 1:3\n");
  EXPECT_TRUE(moved.reordered());
  EXPECT_FALSE(read_text(letor_text(moved, false)).reordered());
}

}  // namespace
}  // namespace olrank
