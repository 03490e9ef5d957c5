#include "cuda/engine/resident_lists.h"

#include <optional>
#include <vector>

#include "cuda/runtime/work.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

class SharedDocumentsTest : public KernelTest {};

std::vector<float> contents(const device::SharedDocuments& documents) {
  std::vector<float> values(documents.size());
  device::copy_to_host(documents.data(), std::span(values));
  return values;
}

TEST_P(SharedDocumentsTest, UsersOfAMatrixShareOneCopyUntilTheLastIsGone) {
  const std::vector<float> numbers = random_numbers(60, 3);
  const FeatureMatrix docs{numbers.data(), 12, 5};
  const FeatureMatrix fewer{numbers.data(), 6, 5};
  std::optional<device::SharedDocuments> first(std::in_place, 0, docs);
  std::optional<device::SharedDocuments> second(std::in_place, 0, docs);
  const device::SharedDocuments part(0, fewer);
  EXPECT_EQ(first->data(), second->data());
  EXPECT_NE(first->data(), part.data());
  EXPECT_EQ(contents(*first), numbers);
  EXPECT_EQ(contents(part), std::vector<float>(numbers.begin(), numbers.begin() + 30));
  const float* there = first->data();
  first.reset();
  EXPECT_EQ(second->data(), there);
  EXPECT_EQ(contents(*second), numbers);
}

TEST_P(SharedDocumentsTest, AnEmptyMatrixNeedsNoMemory) {
  const device::SharedDocuments none(0, {nullptr, 0, 5});
  EXPECT_EQ(none.size(), 0);
}

#if defined(OLRANK_KERNELS_EMULATED)

TEST_P(SharedDocumentsTest, EachDeviceHoldsOneCopy) {
  constexpr std::size_t kBytes = 60 * sizeof(float);
  const std::vector<float> numbers = random_numbers(60, 3);
  const FeatureMatrix docs{numbers.data(), 12, 5};
  emulation::set_device_count(2);
  const auto bytes_on = [](int device) { return emulation::bytes_allocated_on(device); };
  {
    const device::SharedDocuments first(0, docs);
    const device::SharedDocuments second(0, docs);
    EXPECT_EQ(bytes_on(0), kBytes);
    EXPECT_EQ(bytes_on(1), 0U);
    device::use_device(1);
    {
      const device::SharedDocuments other(1, docs);
      const device::SharedDocuments beside(1, docs);
      EXPECT_EQ(bytes_on(0), kBytes);
      EXPECT_EQ(bytes_on(1), kBytes);
      EXPECT_NE(other.data(), first.data());
      EXPECT_EQ(contents(other), numbers);
    }
    device::use_device(0);
  }
  EXPECT_EQ(bytes_on(0), 0U);
  EXPECT_EQ(bytes_on(1), 0U);
}

#endif

OLRANK_KERNEL_TESTS(SharedDocumentsTest);

}  // namespace
}  // namespace olrank
