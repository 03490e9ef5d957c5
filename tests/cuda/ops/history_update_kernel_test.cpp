#include "cuda/ops/history_update.h"

#include "core/device/device_network.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

class HistoryUpdateKernelTest : public KernelTest {};

TEST_P(HistoryUpdateKernelTest, CopiesTheNumberedRows) {
  for (const std::int64_t features : {1, 33, 200}) {
    const std::vector<float> rows = random_numbers(7 * features, 52);
    const std::vector<std::int64_t> numbers = {6, 0, 3, 3};
    const auto rows_there = on_device(rows);
    const auto numbers_there = on_device(numbers);
    DeviceArray<float> gathered(4 * features);
    device::gather_docs(nullptr, rows_there.data(), features, numbers_there.data(), 4, gathered.data());
    std::vector<float> expected;
    for (const std::int64_t number : numbers) {
      const std::vector<float> row = part_of(rows, number * features, features);
      expected.insert(expected.end(), row.begin(), row.end());
    }
    EXPECT_EQ(gathered.to_host(), expected);
    device::gather_docs(nullptr, rows_there.data(), features, numbers_there.data(), 0, nullptr);
  }
}

TEST_P(HistoryUpdateKernelTest, WritesChangedTermsAndNoOthers) {
  constexpr std::int32_t kTerms = 300;
  auto terms = on_device(std::vector<PairTerm>(kTerms, PairTerm{1, 2, 3.0, 4.0}));
  std::vector<DeviceUpdate::Term> changed;
  for (std::int32_t i = 0; i < 140; ++i) {
    DeviceUpdate::Term one{};
    one.index = kTerms - 1 - 2 * i;
    one.term = {i, i + 1, 0.5 * i, 0.25 * i};
    changed.push_back(one);
  }
  const auto changed_there = on_device(changed);
  device::write_terms(nullptr, changed_there.data(), 140, terms.data());
  device::write_terms(nullptr, changed_there.data(), 0, terms.data());
  const std::vector<PairTerm> found = terms.to_host();
  for (std::int32_t t = 0; t < kTerms; ++t) {
    const std::int32_t from_end = kTerms - 1 - t;
    const bool was_changed = from_end % 2 == 0 && from_end / 2 < 140;
    const std::int32_t i = from_end / 2;
    const PairTerm expected =
        was_changed ? PairTerm{i, i + 1, 0.5 * i, 0.25 * i} : PairTerm{1, 2, 3.0, 4.0};
    const PairTerm& term = found[t];
    EXPECT_EQ(term.first, expected.first) << t;
    EXPECT_EQ(term.second, expected.second) << t;
    EXPECT_EQ(term.weight, expected.weight) << t;
    EXPECT_EQ(term.labels, expected.labels) << t;
  }
}

OLRANK_KERNEL_TESTS(HistoryUpdateKernelTest);

}  // namespace
}  // namespace olrank
