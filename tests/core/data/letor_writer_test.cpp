#include "core/data/letor_stream.h"

#include <gtest/gtest.h>

#include <bit>

#include "core/data/synthetic.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "tests/core/data/letor_support.h"

namespace olrank {
namespace {

std::string written(const Dataset& data, bool sparse) {
  std::string text;
  write_letor(data, {.sparse = sparse}, [&](std::string_view piece) { text += piece; });
  return text;
}

TEST(LetorWriter, WritesUsualLine) {
  const Dataset data = read_text("2.0 qid:a 3:1e-7 1:0.10 # docid = x\n0 qid:a 1:-0\n");
  EXPECT_EQ(written(data, false), "2 qid:a 1:0.1 2:0 3:1e-07 # docid = x\n0 qid:a 1:-0 2:0 3:0\n");
  EXPECT_EQ(written(data, true), "2 qid:a 1:0.1 3:1e-07 # docid = x\n0 qid:a 1:-0\n");
}

TEST(LetorWriter, KeepsFeatureCountWithTrailingZeros) {
  const Dataset data = read_text("1 qid:1 1:1 9:0\n0 qid:1 2:2\n");
  EXPECT_TRUE(same_content(read_text(written(data, true)), data));
}

TEST(LetorWriter, RoundTripKeepsEveryBit) {
  RngStream rng(make_key({.seed = 3, .purpose = Purpose::kProbe}), 0);
  std::string text;
  for (int doc = 0; doc < 500; ++doc) {
    text += std::to_string(rng.index(32)) + " qid:" + std::to_string(doc / 9);
    for (int feature = 1; feature <= 30; ++feature) {
      const std::uint32_t bits = rng.next_bits();
      if ((bits >> 23 & 0xFF) == 0xFF || rng.index(3) == 0) continue;
      char number[64];
      std::snprintf(number, sizeof number, " %d:%.9g", feature, double{std::bit_cast<float>(bits)});
      text += number;
    }
    text += "\n";
  }
  const Dataset data = read_text(text);
  for (const bool sparse : {false, true}) EXPECT_TRUE(same_content(read_text(written(data, sparse)), data));
}

TEST(LetorWriter, GeneratedDataKeepsFingerprintAsText) {
  ExecutionContext context;
  const Dataset data = make_synthetic("synth:mslr-like?queries=3&test_queries=1", context).train;
  EXPECT_EQ(read_text(written(data, false)).fingerprint(), data.fingerprint());
}

TEST(LetorWriter, WrittenDataKeepsLineOrder) {
  const Dataset moved = read_text("1 qid:1 1:1\n0 qid:2 1:2\n0 qid:1 1:3\n");
  EXPECT_TRUE(moved.reordered());
  EXPECT_FALSE(read_text(written(moved, false)).reordered());
}

}  // namespace
}  // namespace olrank
