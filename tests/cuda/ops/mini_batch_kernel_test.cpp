#include <cmath>
#include <limits>

#include "cuda/ops/replay.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

OLRANK_KERNEL_TEST_SUITE(MiniBatchKernelTest);

TEST_P(MiniBatchKernelTest, GathersBatchesInOrder) {
  constexpr std::int64_t kDocs = 9;
  for (const std::int64_t columns : {1, 5, 130}) {
    for (const std::int64_t count : {0, 1, 6}) {
      const Given<float> features = random_numbers(kDocs * columns, 3);
      const Given<PairTerm> terms = {{0, 4, 2.0, 1.0}, {8, 1, 1.0, 0.0}, {3, 2, 4.0, 3.0}};
      const Given<PairObservation> seen = {{2, -1, -1, 1}, {0, -1, -1, 1}, {1, -1, -1, 0},
                                           {2, -1, -1, 0}, {0, -1, -1, 0}, {2, -1, -1, 1}};
      const Given<std::int32_t> order = {5, 0, 4, 2, 1, 3};
      const Given<double> labels = {1.5, -0.25, 3.0};
      const Given<double> changes = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
      for (const bool noisy : {false, true}) {
        for (const bool weighed : {false, true}) {
          const device::BatchSource source{features,
                                           columns,
                                           terms,
                                           seen,
                                           noisy ? labels.there() : nullptr,
                                           weighed ? changes.there() : nullptr};
          DeviceArray<float> batch(2 * count * columns);
          DeviceArray<PairTerm> batch_terms(count);
          device::gather_batch(nullptr, source, 1,
                               on_device(std::vector<device::BatchCursor>{{order, 1, {}}}), count, batch,
                               batch_terms);
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

TEST_P(MiniBatchKernelTest, AdvancesThroughBatchesAndKeepsTheFirstBadLoss) {
  const DeviceArray<std::int32_t> order(12);
  DeviceArray<device::BatchCursor> cursor(1);
  Given<StepRates> corrections;
  for (std::int64_t number = 1; number <= 6; ++number) corrections.push_back(step_rates(number, 100.0));
  device::begin_batches(nullptr, 1, order, 12, step_rates(1, 0.5), cursor);
  DeviceArray<double> number = on_device(std::vector<double>{0.0});
  DeviceArray<double> kept = on_device(std::vector<double>{0.0});
  const double infinite = std::numeric_limits<double>::infinity();
  std::int64_t step = 1;
  std::int64_t taken = 0;
  for (const double loss : {0.7, 1e15, infinite, std::nan(""), 0.5}) {
    const std::int64_t count = step == 3 ? 2 : 3;
    device::finish_batch(nullptr, 1, count, on_device(std::vector<double>{loss}), corrections, cursor,
                         {number, kept});
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
      Given<float> scores = random_numbers(docs, 8);
      if (bad >= 0) scores[bad] = -std::numeric_limits<float>::infinity();
      DeviceArray<double> number = on_device(std::vector<double>{0.0});
      DeviceArray<double> kept = on_device(std::vector<double>{0.0});
      for (const std::int64_t step : {4, 5}) {
        device::note_bad_scores(nullptr, 1,
                                on_device(std::vector<device::BatchCursor>{{nullptr, step, {}}}), docs,
                                scores, {number, kept});
      }
      EXPECT_EQ(number.to_host()[0], bad >= 0 ? 4.0 : 0.0);
      EXPECT_EQ(std::isnan(kept.to_host()[0]), bad >= 0);
    }
  }
}

constexpr std::int64_t kSources = 150;
constexpr std::uint32_t kNoiseRound = 7;
constexpr double kDeviation = 0.3;

OLRANK_KERNEL_TEST_SUITE(ReplayKernelTest);

/// Own pairs only, drawn or forgotten pairs only, both, and padding.
std::vector<SampledTerm> some_sources() {
  std::vector<SampledTerm> sources;
  for (std::int32_t t = 0; t < kSources; ++t) {
    SampledTerm one;
    one.term = 3 * t;
    one.others_weight = 0.5 * (t % 5);
    if (t % 3 != 0) one.own_weight = 1.0 + t % 2;
    if (t % 4 == 1) one.own_labels = 1.0;
    one.drawn_weight = (t % 7 == 3 ? -0.5 : 4.0) * one.others_weight;  // forgotten, or drawn
    one.drawn_labels = 0.25 * one.drawn_weight;
    if (t >= kSources - 20) one = {.term = -1, .own_weight = std::nan(""), .drawn_weight = std::nan("")};
    sources.push_back(one);
  }
  return sources;
}

TEST_P(ReplayKernelTest, SplitsSamplesWithTheNoiseOfTheCpu) {
  const Given<SampledTerm> sources = some_sources();
  const Given<PhiloxKey> keys = {test_key(1), test_key(2)};
  const auto round_there = on_device(std::vector<std::uint32_t>{kNoiseRound});
  for (const double deviation : {0.0, kDeviation}) {
    DeviceArray<double> own_weights(2 * kSources), own_labels(2 * kSources), weights(2 * kSources);
    DeviceArray<double> labels(2 * kSources);
    device::split_sample(nullptr, sources, kSources, 2, keys, round_there, deviation,
                         {own_weights, own_labels, weights, labels});
    const std::vector<double> found[4] = {own_weights.to_host(), own_labels.to_host(), weights.to_host(),
                                          labels.to_host()};
    for (std::size_t place = 0; place < 2 * sources.size(); ++place) {
      const SampledTerm& one = sources[place % sources.size()];
      const PhiloxKey key = keys[place / sources.size()];
      const auto term = static_cast<std::uint32_t>(one.term);
      const auto noise = [&](double weight) {
        return deviation * std::sqrt(weight) * RngStream(key, kNoiseRound, term).normal();
      };
      double expected[4] = {};
      if (one.term >= 0) {
        // Drawn pairs have their share of the noise of all of the term's other pairs.
        const double others = one.others_weight;
        const double share = others > 0.0 ? one.drawn_weight / others : 0.0;
        const double of_drawn =
            share < 0.0 ? noise(others) - noise(others - one.drawn_weight) : share * noise(others);
        expected[0] = one.own_weight;
        expected[1] = one.own_labels + noise(others + one.own_weight) - noise(others);
        expected[2] = one.own_weight + one.drawn_weight;
        expected[3] = expected[1] + one.drawn_labels + of_drawn;
      }
      ASSERT_EQ(found[0][place], expected[0]) << place;
      ASSERT_NEAR(found[1][place], expected[1], 1e-14) << place;
      ASSERT_EQ(found[2][place], expected[2]) << place;
      ASSERT_NEAR(found[3][place], expected[3], 1e-14 * (1.0 + std::abs(expected[3]))) << place;
    }
  }
}

// A member's gradient counts if all of it is finite.
TEST_P(ReplayKernelTest, LeavesOutGradientsThatAreNotFinite) {
  constexpr std::int64_t kMembers = 4;
  for (const std::int64_t p : {1, 33, 2500}) {
    std::vector<double> gradient;
    Given<double> whole;
    for (const float draw : random_numbers(kMembers * p, 5)) gradient.push_back(double{draw});
    for (const float draw : random_numbers(kMembers * p, 6)) whole.push_back(double{draw});
    gradient[2 * p - 1] = std::nan("");
    gradient[2 * p] = std::numeric_limits<double>::infinity();
    auto sum = on_device(whole);
    device::add_finite_gradient(nullptr, kMembers, p, on_device(gradient), sum);
    auto rest = on_device(gradient);
    device::subtract_from_whole(nullptr, kMembers, p, whole, rest);
    const std::vector<double> sums = sum.to_host();
    const std::vector<double> rests = rest.to_host();
    for (std::int64_t k = 0; k < kMembers * p; ++k) {
      const bool finite = k / p == 0 || k / p == 3;
      ASSERT_EQ(sums[k], finite ? whole[k] + gradient[k] : whole[k]) << k;
      ASSERT_EQ(rests[k], finite ? whole[k] - gradient[k] : 0.0) << k;
    }
  }
}

}  // namespace
}  // namespace olrank
