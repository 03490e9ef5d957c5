#include "cuda/ops/query_inputs.h"

#include <bit>
#include <cmath>
#include <limits>

#include "core/data/normaliser.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

class QueryInputsKernelTest : public KernelTest {};

constexpr float kLimit = FittedNormaliser::kLargestInput;
constexpr float kNone = std::numeric_limits<float>::max();

/// Rows that lie `stride` apart, with what is not to be read between them.
DeviceArray<float> rows_apart(const std::vector<float>& values, std::int64_t features,
                              std::int64_t stride) {
  std::vector<float> apart(std::ssize(values) / features * stride, std::numeric_limits<float>::quiet_NaN());
  for (std::int64_t i = 0; i < std::ssize(values); ++i)
    apart[i / features * stride + i % features] = values[i];
  return on_device(apart);
}

struct Found {
  std::vector<std::uint32_t> bits;
  unsigned long long bad = 0;
};

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

Found found_for(const std::vector<float>& values, std::int64_t features, std::int64_t stride, bool scale) {
  const auto apart = rows_apart(values, features, stride);
  const std::int64_t docs = std::ssize(values) / features;
  auto inputs = unset_on_device<float>(docs * features);
  auto bad = on_device(std::vector<unsigned long long>{~0ULL});
  device::query_inputs(nullptr, {apart.data(), docs, features, stride}, scale, scale ? kNone : kLimit,
                       inputs.data(), bad.data());
  return {bits_of(inputs.to_host()), bad.to_host().front()};
}

TEST_P(QueryInputsKernelTest, InputsHaveTheBitsOfTheHosts) {
  for (const std::int64_t features : {1, 31, 33}) {
    for (const std::int64_t docs : {1, 15, 17, 100}) {
      std::vector<float> values = random_numbers(docs * features, 7 * docs + features);
      for (std::int64_t doc = 0; doc < docs; ++doc) {
        values[doc * features] = doc % 3 == 0 ? -0.0F : 0.0F;  // of both signs, as the least value
        if (features < 4) continue;
        values[doc * features + 1] = doc % 4 == 1 ? -0.0F : static_cast<float>(doc % 4);
        values[doc * features + 2] = 7.0F;
        values[doc * features + 3] = doc % 2 == 0 ? 3e38F : -3e38F;
      }
      for (const bool scale : {true, false}) {
        if (!scale && features >= 4) values[3] = values[docs * features - features + 3] = 1.0F;
        FittedNormaliser normaliser;
        normaliser.kind = scale ? Normalisation::kQueryMinmax : Normalisation::kNone;
        normaliser.features = features;
        std::vector<float> expected(values.size());
        normaliser.apply({values.data(), docs, features}, expected.data());
        for (const std::int64_t stride : {features, features + 5}) {
          const Found found = found_for(values, features, stride, scale);
          EXPECT_EQ(found.bits, bits_of(expected)) << docs << " × " << features;
          const auto bad = normaliser.find_bad_input(expected.data(), docs);
          EXPECT_EQ(found.bad, bad ? docs * features + bad->doc * features + bad->feature : ~0ULL);
        }
      }
    }
  }
}

TEST_P(QueryInputsKernelTest, TheFirstBadValueIsFound) {
  constexpr std::int64_t kFeatures = 40;
  constexpr unsigned long long kCount = 50 * kFeatures;
  std::vector<float> values = random_numbers(kCount, 3);
  values[1234] = 2e12F;
  values[1500] = -3e12F;
  EXPECT_EQ(found_for(values, kFeatures, kFeatures, false).bad, kCount + 1234);
  EXPECT_EQ(found_for(values, kFeatures, kFeatures, true).bad, ~0ULL);
  values[1700] = std::numeric_limits<float>::quiet_NaN();
  values[1900] = std::numeric_limits<float>::infinity();
  for (const bool scale : {true, false})
    EXPECT_EQ(found_for(values, kFeatures, kFeatures, scale).bad, 1700U);
  values[80] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(found_for(values, kFeatures, kFeatures, true).bad, 80U);
}

OLRANK_KERNEL_TESTS(QueryInputsKernelTest);

}  // namespace
}  // namespace olrank
