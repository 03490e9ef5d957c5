#pragma once

#include <cstdint>
#include <vector>

#include "core/clicks/click_lists.h"

namespace olrank {

/// Which ranks documents link by being shown at both. Without links, examination of a rank and attraction
/// of its documents cannot be told apart (Hager, Zoeter and de Rijke, "Unidentified and confounded?
/// Understanding two-tower models for unbiased learning to rank", arXiv 2506.20501).
struct RankLinks {
  std::int64_t docs = 0;              // that were shown
  std::int64_t moved = 0;             // at two ranks or more
  std::vector<std::int64_t> by_rank;  // [ranks] moved documents that were shown there, too
  /// Ranks (from 0) that hang together through moved documents; both levels in ascending order.
  std::vector<std::vector<std::int64_t>> groups;
};

RankLinks find_rank_links(const ClickLists& lists, std::int64_t docs);

}  // namespace olrank
