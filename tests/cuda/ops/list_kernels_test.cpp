#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/math/dcg.h"
#include "cuda/ops/certain_orders.h"
#include "cuda/ops/list_loss.h"
#include "cuda/ops/query_inputs.h"
#include "models/neural/document_history.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

OLRANK_KERNEL_TEST_SUITE(ListBatchKernelTest);

TEST_P(ListBatchKernelTest, WholeQueriesLieNextToEachOther) {
  constexpr std::int64_t kColumns = 3;
  // Queries of 300, 0, 1 and 7 documents, of which the batch takes the last, the second and the first.
  const Given<std::int64_t> first_docs = {301, 300, 0};
  const Given<std::int64_t> ends = {7, 7, 307};
  const Given<float> features = random_numbers(308 * kColumns, 1);
  Given<std::uint8_t> grades(308);
  for (std::size_t doc = 0; doc < grades.size(); ++doc) grades[doc] = static_cast<std::uint8_t>(doc % 5);
  const device::ListBatch batch{3, first_docs, ends};
  for (const bool with_features : {true, false}) {
    auto batch_features = on_device(std::vector<float>(307 * kColumns, -1.0F));
    auto batch_grades = on_device(std::vector<std::uint8_t>(307, 9));
    device::gather_lists(nullptr, batch, kColumns, with_features ? features.there() : nullptr, grades,
                         batch_features, batch_grades);
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

OLRANK_KERNEL_TEST_SUITE(ListLossKernelTest);

/// Ragged queries and their results on the CPU and on the device.
struct GradedQueries {
  Given<std::int64_t> ends;
  Given<float> scores;
  Given<std::uint8_t> grades;
  Given<double> weights;  // of queries, or empty

  void add(const std::vector<float>& of_docs, std::uint32_t levels, RngStream& draws) {
    scores.insert(scores.end(), of_docs.begin(), of_docs.end());
    for (std::size_t doc = 0; doc < of_docs.size(); ++doc) {
      grades.push_back(static_cast<std::uint8_t>(draws.index(levels)));
    }
    ends.push_back(std::ssize(scores));
  }

  std::pair<std::vector<double>, std::vector<double>> on_the_device(const ListLossForm& form) const {
    std::vector<double> discounts;
    for (std::int64_t rank = 0; rank < std::ssize(scores); ++rank)
      discounts.push_back(dcg_discount(rank, Discount::kLog2));
    DeviceArray<double> workspace(std::ssize(scores)), losses(std::ssize(ends));
    DeviceArray<double> slopes(std::ssize(scores));
    device::list_losses(nullptr, form,
                        {std::ssize(ends), std::ssize(scores), ends, grades, on_device(discounts),
                         weights.empty() ? nullptr : weights.there()},
                        scores, workspace, losses, slopes);
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

OLRANK_KERNEL_TEST_SUITE(NdcgWeightsKernelTest);

struct World {
  std::int64_t docs = 30;
  std::int64_t terms = 25;
  Given<std::int64_t> doc_numbers;
  Given<std::int32_t> first_doc = {0};
  Given<std::int32_t> first_pair = {0};
  Given<std::int32_t> rows;
  Given<std::uint8_t> clicks;
  Given<PairObservation> observations;
  Given<double> discounts;
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

TEST_P(NdcgWeightsKernelTest, WeightsMatchCpu) {
  for (const int impressions : {0, 1, 40}) {
    const World world = random_world(impressions);
    std::vector<ExaminedList> lists;
    for (int i = 0; i < impressions; ++i) {
      lists.push_back({world.first_doc[i], world.first_pair[i], world.first_doc[i + 1] - world.first_doc[i],
                       world.first_pair[i + 1] - world.first_pair[i]});
    }
    const auto observed = std::ssize(world.observations);
    constexpr std::int64_t kMembers = 2;
    Given<float> scores = random_numbers(kMembers * world.docs, 5);
    for (std::size_t i = 0; i < scores.size(); i += 2) scores[i] = std::round(scores[i]);

    DeviceArray<std::int32_t> offsets(world.terms + 1), items(observed), work(world.terms + observed);
    DeviceArray<double> changes(kMembers * observed), weights(kMembers * world.terms);
    DeviceArray<double> labels(kMembers * world.terms);
    device::group_observations(nullptr, world.observations, observed, world.terms, work, offsets, items);
    device::ndcg_weights(nullptr,
                         {impressions, world.first_doc, world.first_pair, world.rows, world.clicks,
                          world.doc_numbers, world.discounts},
                         world.observations, observed, world.terms, offsets, items, kMembers, world.docs,
                         scores, changes, weights, labels);
    for (std::int64_t member = 0; member < kMembers; ++member) {
      const auto own = part_of(scores, member * world.docs, world.docs);
      std::vector<double> expected_changes;
      ndcg_changes({lists, world.rows, world.clicks, world.observations, world.doc_numbers}, own,
                   expected_changes);
      std::vector<PairTerm> weighted;
      fold_pairs(std::vector<PairTerm>(world.terms), world.observations, expected_changes, weighted);
      std::vector<double> expected_weights;
      std::vector<double> expected_labels;
      for (const PairTerm& term : weighted) {
        expected_weights.push_back(term.weight);
        expected_labels.push_back(term.labels);
      }
      // Differences of sums of a dozen discounts, in double.
      EXPECT_TRUE(all_near(part_of(weights.to_host(), member * world.terms, world.terms), expected_weights,
                           1e-13, 0.0));
      EXPECT_TRUE(all_near(part_of(labels.to_host(), member * world.terms, world.terms), expected_labels,
                           1e-13, 0.0));
    }
  }
}

OLRANK_KERNEL_TEST_SUITE(ScoreOrderKernelTest);

TEST_P(ScoreOrderKernelTest, OrdersRaggedQueriesByScoreThenIndexAndWhatIsNoNumberLast) {
  std::vector<std::int64_t> offsets = {0};
  for (const std::int64_t docs : {0, 1, 31, 32, 33, 130, 2}) offsets.push_back(offsets.back() + docs);
  Given<float> scores = random_numbers(offsets.back(), 3);
  for (std::size_t i = 0; i < scores.size(); i += 3) scores[i] = std::round(scores[i]);
  scores[1] = -0.0F;
  scores[2] = 0.0F;
  scores[5] = std::numeric_limits<float>::infinity();
  scores[70] = std::nanf("");
  scores[90] = std::nanf("");
  const auto queries = std::ssize(offsets) - 1;
  DeviceArray<std::int32_t> order(offsets.back()), first_bad(queries);
  device::order_by_score(nullptr, queries, on_device(offsets), scores, order, first_bad);
  const auto found = order.to_host();
  const auto bad = first_bad.to_host();
  for (std::int64_t query = 0; query < queries; ++query) {
    const std::int64_t first = offsets[query];
    const std::int64_t docs = offsets[query + 1] - first;
    EXPECT_EQ(bad[query], query == 4 ? 70 - first : -1);
    std::vector<float> own = part_of(scores, first, docs);
    // Nothing else here is as small.
    for (float& score : own) score = std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
    EXPECT_EQ(part_of(found, first, docs), slow_order(own)) << query;
  }
}

}  // namespace
}  // namespace olrank
