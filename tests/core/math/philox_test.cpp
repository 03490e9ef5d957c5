#include "core/math/philox.h"

#include <gtest/gtest.h>

namespace olrank {
namespace {

struct KnownAnswer {
  PhiloxCounter counter;
  PhiloxKey key;
  PhiloxCounter expected;
};

// The vectors that Random123 publishes for philox4x32 with 10 rounds (kat_vectors).
constexpr KnownAnswer kKnownAnswers[] = {
    {{{0, 0, 0, 0}}, {{0, 0}}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
    {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
     {{0xffffffff, 0xffffffff}},
     {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
    {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
     {{0xa4093822, 0x299f31d0}},
     {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
};

TEST(PhiloxTest, GivesThePublishedAnswers) {
  for (const KnownAnswer& known : kKnownAnswers) {
    const PhiloxCounter result = philox4x32_10(known.counter, known.key);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(result.word[i], known.expected.word[i]);
  }
}

}  // namespace
}  // namespace olrank
