#include "recommend/trees/pair_source.h"

#include <algorithm>

namespace olrank {

UserPairs::UserPairs(std::span<const PreferencePair> pairs, std::int64_t users, const FactorRows& items)
    : pairs_(pairs), items_(items), index_(index_by_user(pairs, users)) {}

NodePairs UserPairs::gather(std::span<const std::int32_t> rows, const FactorRows&) const {
  std::int64_t count = 0;
  for (const std::int32_t row : rows) count += std::ssize(index_.of(row));
  NodePairs gathered;
  gathered.terms.reserve(count);
  gathered.vectors = FactorRows(count, items_.dimension());
  for (std::size_t place = 0; place < rows.size(); ++place) {
    for (const std::int64_t number : index_.of(rows[place])) {
      const std::span<const float> winner = items_.row(pairs_[number].winner);
      const std::span<const float> loser = items_.row(pairs_[number].loser);
      const std::span<float> w = gathered.vectors.row(std::ssize(gathered.terms));
      for (std::size_t k = 0; k < w.size(); ++k) w[k] = winner[k] - loser[k];
      gathered.terms.push_back({.plus = static_cast<std::int32_t>(place)});
    }
  }
  return gathered;
}

ItemPairs::ItemPairs(std::span<const PreferencePair> pairs, std::int64_t items, const FactorRows& users)
    : pairs_(pairs), users_(users), index_(index_by_item(pairs, items)) {}

NodePairs ItemPairs::gather(std::span<const std::int32_t> rows, const FactorRows& current) const {
  // Rows ascend.
  const auto place_of = [&](std::int32_t item) {
    const auto found = std::ranges::lower_bound(rows, item);
    const bool here = found != rows.end() && *found == item;
    return here ? static_cast<std::int32_t>(found - rows.begin()) : -1;
  };
  NodePairs gathered;
  std::vector<std::int32_t> users;
  for (std::size_t place = 0; place < rows.size(); ++place) {
    for (const std::int64_t number : index_.of(rows[place])) {
      const PreferencePair& pair = pairs_[number];
      const bool wins = pair.winner == rows[place];
      const std::int32_t other = wins ? pair.loser : pair.winner;
      const std::int32_t place_of_other = place_of(other);
      if (place_of_other >= 0 && !wins) continue;  // comes with its winner
      PairTerm term;
      (wins ? term.plus : term.minus) = static_cast<std::int32_t>(place);
      if (place_of_other >= 0) {
        term.minus = place_of_other;
      } else {
        const double fixed = factor_product(users_.row(pair.user), current.row(other));
        term.offset = static_cast<float>(wins ? -fixed : fixed);
      }
      gathered.terms.push_back(term);
      users.push_back(pair.user);
    }
  }
  gathered.vectors = FactorRows(std::ssize(users), users_.dimension());
  for (std::size_t number = 0; number < users.size(); ++number)
    std::ranges::copy(users_.row(users[number]),
                      gathered.vectors.row(static_cast<std::int64_t>(number)).begin());
  return gathered;
}

}  // namespace olrank
