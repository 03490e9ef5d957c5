#include "cuda/ops/mini_batch.h"

#include <cmath>
#include <limits>

#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

class MiniBatchKernelTest : public KernelTest {};

TEST_P(MiniBatchKernelTest, GivesEachPairItsOwnDocuments) {
  for (const std::int64_t pairs : {1, 31, 32, 33, 200}) {
    DeviceArray<std::int32_t> offsets(2 * pairs + 1);
    DeviceArray<std::int32_t> ends(2 * pairs);
    device::fill_batch_incidence(nullptr, pairs, {offsets.data(), ends.data()});
    const auto found_offsets = offsets.to_host();
    const auto found_ends = ends.to_host();
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      for (const std::int64_t second : {0, 1}) {
        const auto doc = static_cast<std::size_t>(2 * pair + second);
        ASSERT_EQ(found_offsets[doc + 1] - found_offsets[doc], 1);
        ASSERT_EQ(found_ends[found_offsets[doc]], 2 * pair + second);
      }
    }
    EXPECT_EQ(found_offsets.front(), 0);
  }
}

TEST_P(MiniBatchKernelTest, GathersBatchesInOrder) {
  constexpr std::int64_t kDocs = 9;
  for (const std::int64_t columns : {1, 5, 130}) {
    for (const std::int64_t count : {0, 1, 6}) {
      const std::vector<float> features = random_numbers(kDocs * columns, 3);
      const std::vector<PairTerm> terms = {{0, 4, 2.0, 1.0}, {8, 1, 1.0, 0.0}, {3, 2, 4.0, 3.0}};
      const std::vector<PairObservation> seen = {{2, -1, -1, 1}, {0, -1, -1, 1}, {1, -1, -1, 0},
                                                 {2, -1, -1, 0}, {0, -1, -1, 0}, {2, -1, -1, 1}};
      const std::vector<std::int32_t> order = {5, 0, 4, 2, 1, 3};
      const std::vector<double> labels = {1.5, -0.25, 3.0};
      const std::vector<double> changes = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
      for (const bool noisy : {false, true}) {
        for (const bool weighed : {false, true}) {
          const auto features_there = on_device(features);
          const auto terms_there = on_device(terms);
          const auto seen_there = on_device(seen);
          const auto order_there = on_device(order);
          const auto cursor = on_device(std::vector<device::BatchCursor>{{order_there.data(), 1, {}}});
          const auto labels_there = on_device(labels);
          const auto changes_there = on_device(changes);
          const device::BatchSource source{features_there.data(),
                                           columns,
                                           terms_there.data(),
                                           seen_there.data(),
                                           noisy ? labels_there.data() : nullptr,
                                           weighed ? changes_there.data() : nullptr};
          DeviceArray<float> batch(2 * count * columns);
          DeviceArray<PairTerm> batch_terms(count);
          device::gather_batch(nullptr, source, cursor.data(), count, batch.data(), batch_terms.data());
          const auto found = batch.to_host();
          const auto found_terms = batch_terms.to_host();
          for (std::int64_t i = 0; i < count; ++i) {
            const auto number = static_cast<std::size_t>(order[i]);
            const auto folded = static_cast<std::size_t>(seen[number].term);
            for (std::int64_t c = 0; c < columns; ++c) {
              const auto at = [&](std::int64_t row) { return static_cast<std::size_t>(row * columns + c); };
              ASSERT_EQ(found[at(2 * i)], features[at(terms[folded].first)]);
              ASSERT_EQ(found[at(2 * i + 1)], features[at(terms[folded].second)]);
            }
            const PairTerm& term = found_terms[i];
            const double weight = weighed ? changes[number] : 1.0;
            const double noise =
                noisy ? (labels[folded] - terms[folded].labels) / terms[folded].weight : 0.0;
            EXPECT_EQ(term.first, 2 * i);
            EXPECT_EQ(term.second, 2 * i + 1);
            EXPECT_EQ(term.weight, weight);
            EXPECT_DOUBLE_EQ(term.labels, weight * seen[number].first_wins + noise);
          }
        }
      }
    }
  }
}

TEST_P(MiniBatchKernelTest, StartsMembersWithTheirOwnOrders) {
  const DeviceArray<std::int32_t> order(200 * 7);
  for (const std::int64_t members : {0, 1, 33, 200}) {
    DeviceArray<device::BatchCursor> cursors(members);
    device::begin_batches(nullptr, members, order.data(), 7, {0.1, 0.2, 0.3}, cursors.data());
    const auto found = cursors.to_host();
    for (std::int64_t member = 0; member < members; ++member) {
      const device::BatchCursor& one = found[member];
      ASSERT_EQ(one.order, order.data() + 7 * member);
      ASSERT_EQ(one.number, 1);
      ASSERT_EQ(one.rates.first_correction, 0.1);
      ASSERT_EQ(one.rates.second_correction, 0.2);
      ASSERT_EQ(one.rates.decay, 0.3);
    }
  }
}

TEST_P(MiniBatchKernelTest, AdvancesThroughBatchesAndKeepsTheFirstBadLoss) {
  const DeviceArray<std::int32_t> order(12);
  DeviceArray<device::BatchCursor> cursor(1);
  std::vector<StepRates> corrections;
  for (std::int64_t number = 1; number <= 6; ++number) corrections.push_back(step_rates(number, 100.0));
  const auto corrections_there = on_device(corrections);
  device::begin_batches(nullptr, 1, order.data(), 12, step_rates(1, 0.5), cursor.data());
  DeviceArray<double> number = on_device(std::vector<double>{0.0});
  DeviceArray<double> kept = on_device(std::vector<double>{0.0});
  const double infinite = std::numeric_limits<double>::infinity();
  std::int64_t step = 1;
  std::int64_t taken = 0;
  for (const double loss : {0.7, 1e15, infinite, std::nan(""), 0.5}) {
    const std::int64_t count = step == 3 ? 2 : 3;
    const auto there = on_device(std::vector<double>{loss});
    device::finish_batch(nullptr, count, there.data(), corrections_there.data(), cursor.data(),
                         {number.data(), kept.data()});
    taken += count;
    ++step;
    const device::BatchCursor found = cursor.to_host()[0];
    EXPECT_EQ(found.order, order.data() + taken);
    EXPECT_EQ(found.number, step);
    EXPECT_EQ(found.rates.first_correction, step_rates(step, 0.0).first_correction);
    EXPECT_EQ(found.rates.second_correction, step_rates(step, 0.0).second_correction);
    EXPECT_EQ(found.rates.decay, 0.5);
  }
  EXPECT_EQ(number.to_host()[0], 3.0);
  EXPECT_EQ(kept.to_host()[0], infinite);
}

TEST_P(MiniBatchKernelTest, RecordsANanLossForANanScore) {
  for (const std::int64_t docs : {1, 31, 33, 300}) {
    for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{0}, docs - 1}) {
      std::vector<float> scores = random_numbers(docs, 8);
      if (bad >= 0) scores[bad] = -std::numeric_limits<float>::infinity();
      const auto there = on_device(scores);
      DeviceArray<double> number = on_device(std::vector<double>{0.0});
      DeviceArray<double> kept = on_device(std::vector<double>{0.0});
      for (const std::int64_t step : {4, 5}) {
        const auto cursor = on_device(std::vector<device::BatchCursor>{{nullptr, step, {}}});
        device::note_bad_scores(nullptr, cursor.data(), docs, there.data(), {number.data(), kept.data()});
      }
      EXPECT_EQ(number.to_host()[0], bad >= 0 ? 4.0 : 0.0);
      EXPECT_EQ(std::isnan(kept.to_host()[0]), bad >= 0);
    }
  }
}

OLRANK_KERNEL_TESTS(MiniBatchKernelTest);

}  // namespace
}  // namespace olrank
