#include "cuda/ops/replay.h"

#include <cmath>
#include <limits>

#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

constexpr std::int64_t kSources = 150;
constexpr std::uint32_t kNoiseRound = 7;
constexpr double kDeviation = 0.3;

class ReplayKernelTest : public KernelTest {};

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
  const std::vector<SampledTerm> sources = some_sources();
  const std::vector<PhiloxKey> keys = {test_key(1), test_key(2)};
  const auto sources_there = on_device(sources);
  const auto keys_there = on_device(keys);
  const auto round_there = on_device(std::vector<std::uint32_t>{kNoiseRound});
  for (const double deviation : {0.0, kDeviation}) {
    DeviceArray<double> own_weights(2 * kSources);
    DeviceArray<double> own_labels(2 * kSources);
    DeviceArray<double> weights(2 * kSources);
    DeviceArray<double> labels(2 * kSources);
    device::split_sample(nullptr, sources_there.data(), kSources, 2, keys_there.data(), round_there.data(),
                         deviation, {own_weights.data(), own_labels.data(), weights.data(), labels.data()});
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
    std::vector<double> whole;
    for (const float draw : random_numbers(kMembers * p, 5)) gradient.push_back(double{draw});
    for (const float draw : random_numbers(kMembers * p, 6)) whole.push_back(double{draw});
    gradient[2 * p - 1] = std::nan("");
    gradient[2 * p] = std::numeric_limits<double>::infinity();
    const auto gradient_there = on_device(gradient);
    auto sum = on_device(whole);
    device::add_finite_gradient(nullptr, kMembers, p, gradient_there.data(), sum.data());
    auto rest = on_device(gradient);
    const auto whole_there = on_device(whole);
    device::subtract_from_whole(nullptr, kMembers, p, whole_there.data(), rest.data());
    const std::vector<double> sums = sum.to_host();
    const std::vector<double> rests = rest.to_host();
    for (std::int64_t k = 0; k < kMembers * p; ++k) {
      const bool finite = k / p == 0 || k / p == 3;
      ASSERT_EQ(sums[k], finite ? whole[k] + gradient[k] : whole[k]) << k;
      ASSERT_EQ(rests[k], finite ? whole[k] - gradient[k] : 0.0) << k;
    }
  }
}

OLRANK_KERNEL_TESTS(ReplayKernelTest);

}  // namespace
}  // namespace olrank
