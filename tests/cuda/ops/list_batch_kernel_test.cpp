#include "cuda/ops/list_batch.h"

#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

class ListBatchKernelTest : public KernelTest {};

TEST_P(ListBatchKernelTest, WholeQueriesLieNextToEachOther) {
  constexpr std::int64_t kColumns = 3;
  // Queries of 300, 0, 1 and 7 documents, of which the batch takes the last, the second and the first.
  const std::vector<std::int64_t> first_docs = {301, 300, 0};
  const std::vector<std::int64_t> ends = {7, 7, 307};
  const std::vector<float> features = random_numbers(308 * kColumns, 1);
  std::vector<std::uint8_t> grades(308);
  for (std::size_t doc = 0; doc < grades.size(); ++doc) grades[doc] = static_cast<std::uint8_t>(doc % 5);
  const auto firsts_there = on_device(first_docs);
  const auto ends_there = on_device(ends);
  const auto features_there = on_device(features);
  const auto grades_there = on_device(grades);
  const device::ListBatch batch{3, firsts_there.data(), ends_there.data()};
  for (const bool with_features : {true, false}) {
    auto batch_features = on_device(std::vector<float>(307 * kColumns, -1.0F));
    auto batch_grades = on_device(std::vector<std::uint8_t>(307, 9));
    device::gather_lists(nullptr, batch, kColumns, with_features ? features_there.data() : nullptr,
                         grades_there.data(), batch_features.data(), batch_grades.data());
    std::vector<float> expected(307 * kColumns, -1.0F);
    std::vector<std::uint8_t> expected_grades;
    for (std::int64_t doc = 0; doc < 307; ++doc) {
      const std::int64_t from = doc < 7 ? 301 + doc : doc - 7;
      expected_grades.push_back(grades[from]);
      for (std::int64_t k = 0; k < kColumns && with_features; ++k)
        expected[doc * kColumns + k] = features[from * kColumns + k];
    }
    EXPECT_EQ(batch_features.to_host(), expected);
    EXPECT_EQ(batch_grades.to_host(), expected_grades);
  }
}

TEST_P(ListBatchKernelTest, NumbersAreAdded) {
  std::vector<double> numbers(1000);
  std::vector<double> sum(1000);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<double>(i);
    sum[i] = 0.5;
  }
  const auto there = on_device(numbers);
  auto sum_there = on_device(sum);
  device::add_numbers(nullptr, 999, there.data(), sum_there.data());
  for (std::size_t i = 0; i < 999; ++i) sum[i] += numbers[i];
  EXPECT_EQ(sum_there.to_host(), sum);
}

OLRANK_KERNEL_TESTS(ListBatchKernelTest);

}  // namespace
}  // namespace olrank
