#include "models/certain_list.h"

#include <algorithm>

namespace olrank {

std::span<const std::int32_t> CertainList::shown(const RankedList& list) const {
  return list.docs.first(std::min(static_cast<std::size_t>(cutoff_), list.docs.size()));
}

void CertainList::write_matrix(std::span<const std::int32_t> by_score,
                               std::vector<std::uint8_t>& matrix) const {
  const std::size_t docs = by_score.size();
  matrix.assign(docs * docs, 0);
  for (std::size_t place = 0; place < docs; ++place) {
    const auto row = std::span(matrix).subspan(static_cast<std::size_t>(by_score[place]) * docs, docs);
    orders_.for_each_below(static_cast<std::int64_t>(place),
                           [&](std::int64_t below) { row[by_score[below]] = 1; });
  }
}

}  // namespace olrank
