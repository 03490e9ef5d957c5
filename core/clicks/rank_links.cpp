#include "core/clicks/rank_links.h"

#include <algorithm>
#include <numeric>

namespace olrank {
namespace {

/// The first rank of the group that a rank is in; shortens the way there.
std::int64_t root_of(std::vector<std::int64_t>& parents, std::int64_t rank) {
  while (parents[rank] != rank) rank = parents[rank] = parents[parents[rank]];
  return rank;
}

}  // namespace

RankLinks find_rank_links(const ClickLists& lists, std::int64_t docs) {
  // The ranks of each document, gathered by counting.
  std::vector<std::int64_t> begins(docs + 1, 0);
  for (std::int64_t list = 0; list < lists.size(); ++list) {
    for (const std::int32_t doc : lists[list].docs) ++begins[doc + 1];
  }
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<std::int64_t> ends(begins.begin(), begins.end() - 1);
  std::vector<std::int32_t> ranks(lists.shown());
  for (std::int64_t list = 0; list < lists.size(); ++list) {
    std::int32_t rank = 0;
    for (const std::int32_t doc : lists[list].docs) ranks[ends[doc]++] = rank++;
  }

  RankLinks links;
  links.by_rank.assign(lists.ranks(), 0);
  std::vector<std::int64_t> parents(lists.ranks());
  std::iota(parents.begin(), parents.end(), 0);
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const auto begin = ranks.begin() + begins[doc];
    auto end = ranks.begin() + begins[doc + 1];
    if (begin == end) continue;
    ++links.docs;
    std::sort(begin, end);
    end = std::unique(begin, end);
    if (end - begin < 2) continue;
    ++links.moved;
    for (auto rank = begin; rank != end; ++rank) {
      ++links.by_rank[*rank];
      const std::int64_t one = root_of(parents, *begin);
      const std::int64_t other = root_of(parents, *rank);
      parents[std::max(one, other)] = std::min(one, other);
    }
  }
  std::vector<std::int64_t> group_of(lists.ranks(), -1);
  for (std::int64_t rank = 0; rank < lists.ranks(); ++rank) {
    const std::int64_t root = root_of(parents, rank);
    if (group_of[root] < 0) {
      group_of[root] = std::ssize(links.groups);
      links.groups.emplace_back();
    }
    links.groups[group_of[root]].push_back(rank);
  }
  return links;
}

}  // namespace olrank
