#include "core/io/fingerprint.h"

#include <gtest/gtest.h>

#include <string>

namespace olrank {
namespace {

TEST(FingerprintTest, IsXxh128) {
  // The published value of XXH3-128 for empty input.
  EXPECT_EQ(fingerprint_of("").hex(), "99aa06d3014798d86001c324468d497f");
}

TEST(FingerprintTest, IndependentOfPieces) {
  const std::string text(10'000, 'q');
  Fingerprinter whole;
  whole.add(text);
  Fingerprinter pieces;
  for (std::size_t begin = 0; begin < text.size(); begin += 37) pieces.add(text.substr(begin, 37));
  EXPECT_EQ(whole.value(), pieces.value());
  EXPECT_EQ(whole.value(), fingerprint_of(text));
  EXPECT_NE(whole.value(), fingerprint_of(text + "q"));
}

}  // namespace
}  // namespace olrank
