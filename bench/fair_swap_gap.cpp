// How far FairSwap is from the list of a template that violates the fewest certain orders: over all lists
// for queries of up to 7 documents, by ExactSearch for longer ones. Usage: fair_swap_gap [QUERIES]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <vector>

#include "core/explore/exploring_list.h"
#include "core/fair/exact_search.h"
#include "core/fair/fair_swap.h"
#include "core/fair/violated_orders.h"

namespace olrank {
namespace {

constexpr int kFeatures = 8;

/// Documents with features, linear scores, and orders that are certain where scores differ by more than the
/// length of the difference of the features, as a linear ranker has them after some rounds.
struct GapQuery {
  GapQuery(std::int64_t docs, double width, bool by_blocks, ListRule rule, std::uint32_t number)
      : list(rule, false, make_key({.seed = 2, .purpose = Purpose::kList})) {
    RngStream random(make_key({.seed = 5, .purpose = Purpose::kProbe}), number,
                     static_cast<std::uint32_t>(docs));
    std::vector<double> x(docs * kFeatures);
    for (double& value : x) value = random.normal();
    std::vector<double> scores(docs, 0.0);
    for (std::int64_t doc = 0; doc < docs; ++doc) {
      for (int k = 0; k < kFeatures; ++k) scores[doc] += x[doc * kFeatures + k];
      groups.push_back(random.uniform() < 0.5 ? DocGroup::kA : DocGroup::kB);
    }
    by_score.resize(docs);
    std::iota(by_score.begin(), by_score.end(), 0);
    std::sort(by_score.begin(), by_score.end(),
              [&](std::int32_t a, std::int32_t b) { return scores[a] > scores[b]; });
    orders.reset(docs);
    for (std::int64_t a = 0; a < docs; ++a) {
      for (std::int64_t b = a + 1; b < docs; ++b) {
        double length_sq = 0.0;
        for (int k = 0; k < kFeatures; ++k) {
          const double difference = x[by_score[a] * kFeatures + k] - x[by_score[b] * kFeatures + k];
          length_sq += difference * difference;
        }
        if (scores[by_score[a]] - scores[by_score[b]] > width * std::sqrt(length_sq)) orders.set(a, b);
      }
    }
    list.arrange(by_score, orders, number);
    if (!by_blocks) return;
    // Only the orders between blocks.
    std::int64_t begin = 0;
    for (const std::int64_t end : list.block_ends()) {
      for (std::int64_t a = begin; a < end; ++a) {
        for (std::int64_t b = a + 1; b < end; ++b)
          orders.row(a)[b / OrderBits::kWordBits] &= ~(std::uint64_t{1} << b % OrderBits::kWordBits);
      }
      begin = end;
    }
  }

  TemplatePattern pattern_of(std::span<const std::int32_t> places, int length) const {
    TemplatePattern pattern = 0;
    for (int place = 0; place < length; ++place) {
      if (groups[by_score[places[place]]] == DocGroup::kA) pattern |= TemplatePattern{1} << place;
    }
    return pattern;
  }

  std::vector<std::int32_t> by_score;
  OrderBits orders;
  std::vector<DocGroup> groups;
  ExploringList list;
};

/// The least violation of each template over all lists.
std::vector<std::int64_t> least_by_trying(const GapQuery& query, int length) {
  std::vector<std::int64_t> least(std::size_t{1} << length, std::numeric_limits<std::int64_t>::max());
  std::vector<std::int32_t> places(query.by_score.size());
  std::iota(places.begin(), places.end(), 0);
  std::vector<std::uint64_t> placed;
  do {
    std::int64_t& found = least[query.pattern_of(places, length)];
    found = std::min(found, count_violated(query.orders, places, placed));
  } while (std::next_permutation(places.begin(), places.end()));
  return least;
}

struct Gap {
  std::int64_t templates = 0;
  std::int64_t optimal = 0;
  std::int64_t excess = 0;
  std::int64_t least = 0;
  std::int64_t gave_up = 0;

  void add(std::int64_t found, std::int64_t best) {
    ++templates;
    optimal += found == best ? 1 : 0;
    excess += found - best;
    least += best;
  }
};

Gap gap_of(std::int64_t docs, double width, bool by_blocks, ListRule rule, int queries) {
  Gap gap;
  const auto length = static_cast<int>(std::min<std::int64_t>(docs, docs <= 7 ? 5 : 10));
  FairSwap swap(make_key({.seed = 3, .purpose = Purpose::kTemplate}));
  ExactSearch exact(make_key({.seed = 3, .purpose = Purpose::kTemplate}));
  for (int number = 0; number < queries; ++number) {
    GapQuery query(docs, width, by_blocks, rule, static_cast<std::uint32_t>(number));
    swap.prepare({query.by_score, query.list.block_ends(), &query.orders, query.groups, query.list.places(),
                  rule == ListRule::kBlocks},
                 static_cast<std::uint32_t>(number));
    const bool tries_all = docs <= 7;
    const auto least = tries_all ? least_by_trying(query, length) : std::vector<std::int64_t>();
    if (!tries_all) exact.prepare(query.orders, swap, static_cast<std::uint32_t>(number));
    for (TemplatePattern pattern = 0; pattern < TemplatePattern{1} << length; ++pattern) {
      if (!swap.can_realise(pattern, length)) continue;
      const std::int64_t found = swap.swap(pattern, length);
      if (tries_all) {
        gap.add(found, least[pattern]);
        continue;
      }
      const auto best = exact.least_violated(pattern, length, found);
      if (exact.gave_up()) {
        ++gap.gave_up;
        break;
      }
      gap.add(found, *best);
    }
  }
  return gap;
}

void print_gaps(int queries) {
  fmt::print(
      "| documents | orders | lists | optimal | violated | least | queries given up "
      "|\n|---|---|---|---|---|---|---|\n");
  for (const std::int64_t docs : {4, 5, 6, 7, 20, 40, 120}) {
    for (const bool by_blocks : {true, false}) {
      for (const ListRule rule : {ListRule::kBlocks, ListRule::kCertain}) {
        Gap all;
        for (const double width : {0.1, 0.3, 0.6}) {
          const Gap one = gap_of(docs, width, by_blocks, rule, queries);
          all.templates += one.templates;
          all.optimal += one.optimal;
          all.excess += one.excess;
          all.least += one.least;
          all.gave_up += one.gave_up;
        }
        const auto count = static_cast<double>(all.templates);
        fmt::print("| {} | {} | `{}` | {:.1f} % | {:.2f} | {:.2f} | {} of {} |\n", docs,
                   by_blocks ? "between blocks" : "all", name_of(rule),
                   100.0 * static_cast<double>(all.optimal) / count,
                   static_cast<double>(all.excess + all.least) / count,
                   static_cast<double>(all.least) / count, all.gave_up, 3 * queries);
      }
    }
  }
}

}  // namespace
}  // namespace olrank

int main(int argc, char** argv) {
  olrank::print_gaps(argc > 1 ? std::atoi(argv[1]) : 100);
  return 0;
}
