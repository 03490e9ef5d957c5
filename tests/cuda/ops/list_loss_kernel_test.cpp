#include "cuda/ops/list_loss.h"

#include <cmath>
#include <numeric>

#include "core/math/dcg.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

class ListLossKernelTest : public KernelTest {};

/// Ragged queries and their results on the CPU and on the device.
struct GradedQueries {
  std::vector<std::int64_t> ends;
  std::vector<float> scores;
  std::vector<std::uint8_t> grades;
  std::vector<double> weights;  // of queries, or empty

  void add(const std::vector<float>& of_docs, std::uint32_t levels, RngStream& draws) {
    scores.insert(scores.end(), of_docs.begin(), of_docs.end());
    for (std::size_t doc = 0; doc < of_docs.size(); ++doc) {
      grades.push_back(static_cast<std::uint8_t>(draws.index(levels)));
    }
    ends.push_back(std::ssize(scores));
  }

  std::pair<std::vector<double>, std::vector<double>> on_the_device(const ListLossForm& form) const {
    std::vector<double> discounts;
    for (std::size_t rank = 0; rank < scores.size(); ++rank) {
      discounts.push_back(dcg_discount(static_cast<std::int64_t>(rank), Discount::kLog2));
    }
    const auto ends_there = on_device(ends);
    const auto scores_there = on_device(scores);
    const auto grades_there = on_device(grades);
    const auto discounts_there = on_device(discounts);
    const auto weights_there = on_device(weights);
    DeviceArray<double> workspace(std::ssize(scores));
    DeviceArray<double> losses(std::ssize(ends));
    DeviceArray<double> slopes(std::ssize(scores));
    device::list_losses(nullptr, form,
                        {std::ssize(ends), std::ssize(scores), ends_there.data(), grades_there.data(),
                         discounts_there.data(), weights.empty() ? nullptr : weights_there.data()},
                        scores_there.data(), workspace.data(), losses.data(), slopes.data());
    return {losses.to_host(), slopes.to_host()};
  }

  std::pair<std::vector<double>, std::vector<double>> on_the_cpu(const ListLossForm& form) const {
    std::vector<double> losses;
    std::vector<double> slopes(scores.size());
    Scratch scratch;
    for (std::size_t query = 0; query < ends.size(); ++query) {
      const std::int64_t first = query == 0 ? 0 : ends[query - 1];
      const auto docs = static_cast<std::size_t>(ends[query] - first);
      const std::vector<double> of_query(scores.begin() + first, scores.begin() + ends[query]);
      losses.push_back(list_loss(form, of_query, std::span(grades).subspan(first, docs), scratch,
                                 std::span(slopes).subspan(first, docs)));
      if (weights.empty()) continue;
      losses.back() *= weights[query];
      for (double& slope : std::span(slopes).subspan(first, docs)) slope *= weights[query];
    }
    return {losses, slopes};
  }
};

GradedQueries weighted_queries(RngStream& draws) {
  GradedQueries queries;
  for (const std::int64_t docs : {1, 33, 0, 200, 40}) {
    queries.add(random_numbers(docs, 50 + static_cast<std::uint64_t>(docs)), 4, draws);
    queries.weights.push_back(0.25 * static_cast<double>(docs % 41));
  }
  return queries;
}

std::vector<ListLossForm> all_loss_forms() {
  std::vector<ListLossForm> forms;
  for (const auto& [loss, name] : EnumNames<ListLoss>::values) {
    forms.push_back({.loss = loss, .smoothing = 0.5});
    if (has_pairs(loss)) forms.push_back({.loss = loss, .pair_mean = true});
  }
  return forms;
}

TEST_P(ListLossKernelTest, MatchesTheCpu) {
  RngStream draws(test_key(21), 1);
  GradedQueries queries;
  // The last one has more documents than a block has threads.
  for (const std::int64_t docs : {0, 1, 2, 31, 32, 33, 0, 120, 1000}) {
    std::vector<float> scores = random_numbers(docs, 30 + static_cast<std::uint64_t>(docs));
    for (std::size_t doc = 0; doc < scores.size(); doc += 3) scores[doc] = std::round(scores[doc]);  // ties
    queries.add(scores, docs % 2 == 0 ? 5 : 2, draws);
  }
  queries.add(random_numbers(7, 5), 1, draws);
  queries.add({1e4F, -1e4F, 1e4F, 0.0F, -1e4F}, 3, draws);
  queries.add({0.0F, 0.0F, 0.0F}, 3, draws);
  const auto compare = [&] {
    for (const ListLossForm& form : all_loss_forms()) {
      const auto there = queries.on_the_device(form);
      const auto here = queries.on_the_cpu(form);
      // Sums of at most half a million terms in double.
      EXPECT_TRUE(all_near(there.first, here.first, 1e-11, 1e-12)) << name_of(form.loss);
      EXPECT_TRUE(all_near(there.second, here.second, 1e-11, 1e-12)) << name_of(form.loss);
    }
  };
  compare();
  queries = weighted_queries(draws);
  compare();
}

TEST_P(ListLossKernelTest, ScoresThatAreNotFiniteSpoilTheirQueryAlone) {
  RngStream draws(test_key(22), 1);
  GradedQueries queries;
  queries.add(random_numbers(40, 3), 3, draws);
  std::vector<float> bad = random_numbers(40, 4);
  bad[37] = INFINITY;
  queries.add(bad, 3, draws);
  queries.add(random_numbers(40, 5), 3, draws);
  for (const ListLossForm& form : all_loss_forms()) {
    const auto [losses, slopes] = queries.on_the_device(form);
    for (int query = 0; query < 3; ++query) {
      EXPECT_EQ(std::isnan(losses[query]), query == 1) << name_of(form.loss);
      for (int doc = 40 * query; doc < 40 * query + 40; ++doc) {
        EXPECT_EQ(std::isnan(slopes[doc]), query == 1) << name_of(form.loss);
      }
    }
  }
}

OLRANK_KERNEL_TESTS(ListLossKernelTest);

}  // namespace
}  // namespace olrank
