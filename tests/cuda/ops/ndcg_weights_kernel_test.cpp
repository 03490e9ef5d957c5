#include "cuda/ops/ndcg_weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/math/dcg.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

class NdcgWeightsKernelTest : public KernelTest {};

struct World {
  std::int64_t docs = 30;
  std::int64_t terms = 25;
  std::vector<std::int64_t> doc_numbers;
  std::vector<std::int32_t> first_doc = {0};
  std::vector<std::int32_t> first_pair = {0};
  std::vector<std::int32_t> rows;
  std::vector<std::uint8_t> clicks;
  std::vector<PairObservation> observations;
  std::vector<double> discounts;
};

/// Lists of 2 to 12 documents with a click at least, every clicked one paired with every other.
World random_world(int impressions) {
  World world;
  world.doc_numbers.resize(world.docs);
  std::iota(world.doc_numbers.begin(), world.doc_numbers.end(), 100);
  std::reverse(world.doc_numbers.begin() + 5, world.doc_numbers.end());
  RngStream draws(test_key(3), 1);
  std::vector<std::int32_t> all(world.docs);
  std::iota(all.begin(), all.end(), 0);
  for (int i = 0; i < impressions; ++i) {
    draws.shuffle(std::span(all));
    const auto listed = static_cast<std::int32_t>(2 + draws.index(11));
    const auto first = static_cast<std::size_t>(world.first_doc.back());
    for (std::int32_t place = 0; place < listed; ++place) {
      world.rows.push_back(all[place]);
      world.clicks.push_back(place == 0 || draws.index(3) == 0 ? 1 : 0);
    }
    for (std::int32_t winner = 0; winner < listed; ++winner) {
      for (std::int32_t loser = 0; loser < listed; ++loser) {
        const bool won = world.clicks[first + static_cast<std::size_t>(winner)] != 0;
        if (!won || world.clicks[first + static_cast<std::size_t>(loser)] != 0) continue;
        const auto term =
            static_cast<std::int32_t>(draws.index(static_cast<std::uint32_t>(world.terms - 1)));
        world.observations.push_back({term, winner, loser, static_cast<std::int32_t>(draws.index(2))});
      }
    }
    world.first_doc.push_back(world.first_doc.back() + listed);
    world.first_pair.push_back(static_cast<std::int32_t>(world.observations.size()));
  }
  for (std::int64_t rank = 0; rank < 12; ++rank)
    world.discounts.push_back(dcg_discount(rank, Discount::kLog2));
  return world;
}

/// DCG of a list in the order of its scores, clicks being the labels.
double slow_dcg(const World& world, std::size_t impression, const std::vector<float>& scores,
                std::int32_t swapped, std::int32_t with) {
  const auto first = static_cast<std::size_t>(world.first_doc[impression]);
  const auto listed = static_cast<std::size_t>(world.first_doc[impression + 1]) - first;
  std::vector<std::size_t> order(listed);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto row_a = static_cast<std::size_t>(world.rows[first + a]);
    const auto row_b = static_cast<std::size_t>(world.rows[first + b]);
    if (scores[row_a] != scores[row_b]) return scores[row_a] > scores[row_b];
    return world.doc_numbers[row_a] < world.doc_numbers[row_b];
  });
  for (std::size_t& place : order) {
    if (place == static_cast<std::size_t>(swapped)) {
      place = static_cast<std::size_t>(with);
    } else if (place == static_cast<std::size_t>(with)) {
      place = static_cast<std::size_t>(swapped);
    }
  }
  double sum = 0.0;
  for (std::size_t rank = 0; rank < listed; ++rank) {
    if (world.clicks[first + order[rank]] != 0) sum += 1.0 / std::log2(static_cast<double>(rank + 2));
  }
  return sum;
}

TEST_P(NdcgWeightsKernelTest, WeightsMatchSwappedLists) {
  for (const int impressions : {0, 1, 40}) {
    const World world = random_world(impressions);
    const auto observed = std::ssize(world.observations);
    constexpr std::int64_t kMembers = 2;
    std::vector<float> scores = random_numbers(kMembers * world.docs, 5);
    for (std::size_t i = 0; i < scores.size(); i += 2) scores[i] = std::round(scores[i]);

    const auto first_doc = on_device(world.first_doc);
    const auto first_pair = on_device(world.first_pair);
    const auto rows = on_device(world.rows);
    const auto clicks = on_device(world.clicks);
    const auto numbers = on_device(world.doc_numbers);
    const auto discounts = on_device(world.discounts);
    const auto observations = on_device(world.observations);
    const auto scores_there = on_device(scores);
    DeviceArray<std::int32_t> offsets(world.terms + 1);
    DeviceArray<std::int32_t> items(observed);
    DeviceArray<std::int32_t> work(world.terms + observed);
    DeviceArray<double> changes(kMembers * observed);
    DeviceArray<double> weights(kMembers * world.terms);
    DeviceArray<double> labels(kMembers * world.terms);
    device::group_observations(nullptr, observations.data(), observed, world.terms, work.data(),
                               offsets.data(), items.data());
    device::ndcg_weights(nullptr,
                         {impressions, first_doc.data(), first_pair.data(), rows.data(), clicks.data(),
                          numbers.data(), discounts.data()},
                         observations.data(), observed, world.terms, offsets.data(), items.data(), kMembers,
                         world.docs, scores_there.data(), changes.data(), weights.data(), labels.data());

    for (std::int64_t member = 0; member < kMembers; ++member) {
      const auto own = part_of(scores, member * world.docs, world.docs);
      std::vector<double> expected_weights(world.terms);
      std::vector<double> expected_labels(expected_weights.size());
      for (std::size_t i = 0; i < static_cast<std::size_t>(impressions); ++i) {
        const auto first = world.clicks.begin() + world.first_doc[i];
        const auto clicked = std::count(first, world.clicks.begin() + world.first_doc[i + 1], 1);
        double ideal = 0.0;
        for (std::int64_t rank = 0; rank < clicked; ++rank) ideal += world.discounts[rank];
        const double whole = slow_dcg(world, i, own, 0, 0);
        for (std::int32_t pair = world.first_pair[i]; pair < world.first_pair[i + 1]; ++pair) {
          const auto& seen = world.observations[pair];
          const double change = std::abs(slow_dcg(world, i, own, seen.winner, seen.loser) - whole) / ideal;
          expected_weights[seen.term] += change;
          if (seen.first_wins != 0) expected_labels[seen.term] += change;
        }
      }
      // Differences of sums of a dozen discounts, in double.
      EXPECT_TRUE(all_near(part_of(weights.to_host(), member * world.terms, world.terms), expected_weights,
                           1e-13, 0.0));
      EXPECT_TRUE(all_near(part_of(labels.to_host(), member * world.terms, world.terms), expected_labels,
                           1e-13, 0.0));
    }
  }
}

OLRANK_KERNEL_TESTS(NdcgWeightsKernelTest);

}  // namespace
}  // namespace olrank
