#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "bench/cases/case_list.h"
#include "core/explore/exploring_list.h"
#include "core/fair/fair_list.h"
#include "core/runtime/vector_clones.h"

namespace olrank {
namespace {

constexpr std::int64_t kPlaces = 10;
constexpr std::int64_t kTemplates = std::int64_t{1} << kPlaces;
constexpr std::int64_t kWordsInCache = 1024;

/// A query whose orders are certain where scores differ by more than a width of their own.
struct FairQuery {
  explicit FairQuery(std::int64_t docs)
      : scores(uniform_doubles(docs, 21)),
        lists(ListRule::kCertain, false, make_key({.seed = 1, .purpose = Purpose::kList})) {
    by_score.resize(length(docs));
    std::iota(by_score.begin(), by_score.end(), 0);
    std::sort(by_score.begin(), by_score.end(),
              [&](std::int32_t a, std::int32_t b) { return scores[a] > scores[b]; });
    const auto widths = uniform_doubles(docs * docs, 22);
    orders.reset(docs);
    for (std::int64_t a = 0; a < docs; ++a) {
      for (std::int64_t b = a + 1; b < docs; ++b) {
        if (scores[by_score[a]] - scores[by_score[b]] > 0.3 * widths[a * docs + b]) orders.set(a, b);
      }
    }
    lists.arrange(by_score, orders, 1);
    for (const double draw : uniform_doubles(docs, 23))
      groups.push_back(draw < 0.4 ? DocGroup::kA : DocGroup::kB);
    for (std::int64_t rank = 1; rank <= kPlaces; ++rank)
      rule.examination.push_back(1.0 / std::sqrt(real(rank)));
    rule.epsilon = 100.0;  // all templates
  }

  std::vector<double> scores;
  std::vector<std::int32_t> by_score;
  OrderBits orders;
  ExploringList lists;
  std::vector<DocGroup> groups;
  ExposureRule rule;
};

OLRANK_VECTOR_CLONES
std::int64_t bare_bit_counts(const std::uint64_t* rows, const std::uint64_t* masks, std::int64_t words) {
  std::int64_t count = 0;
  for (std::int64_t word = 0; word < words; ++word) count += std::popcount(rows[word] & ~masks[word]);
  return count;
}

/// What no comparison of templates can do without: for each of their places, the orders that it violates.
std::function<void()> bit_counts(std::int64_t words) {
  std::vector<std::uint64_t> rows(kWordsInCache, 0x5555555555555555ULL);
  std::vector<std::uint64_t> masks(kWordsInCache, 0x3333333333333333ULL);
  return [words, rows = std::move(rows), masks = std::move(masks), sum = std::int64_t{0}]() mutable {
    for (std::int64_t begin = 0; begin < words; begin += kWordsInCache)
      sum += bare_bit_counts(rows.data(), masks.data(), std::min(kWordsInCache, words - begin));
    if (sum < 0) masks[0] = 0;
  };
}

}  // namespace

/// A round's choice among all templates, on one thread.
void add_fair_cases(CaseList& list) {
  const std::int64_t docs = std::max(list.sizes().docs, 2 * kPlaces);
  const std::int64_t words = kTemplates * kPlaces * OrderBits::words(docs);
  BenchCase work;
  work.name = "fair/fair_list";
  work.parameters = {{"V", docs}, {"k", kPlaces}, {"templates", kTemplates}};
  work.operations = 2.0 * real(words);
  work.traffic = {real(docs * OrderBits::words(docs)) * 8.0, 0.0, real(docs) * 4.0};
  work.ceiling = CeilingKind::kOwn;
  work.own_name = "bit counts";
  work.own_body = bit_counts(words);
  work.prepare = [docs] {
    return [query = std::make_shared<FairQuery>(docs), round = std::uint32_t{0},
            list = std::vector<std::int32_t>(),
            choice = FairList(TemplateSearch::kFairSwap,
                              make_key({.seed = 1, .purpose = Purpose::kTemplate}))]() mutable {
      const GroupedBlocks blocks{query->by_score, query->lists.block_ends(), &query->orders,
                                 query->groups,   query->lists.places(),     false};
      choice.make(blocks, {query->groups, &query->rule, {0.1}}, ++round, kPlaces, list);
    };
  };
  list.add(std::move(work));
}

}  // namespace olrank
