#include "sim/user_browsing_click_model.h"

#include <cassert>
#include <cmath>
#include <utility>

#include "sim/click_coins.h"

namespace olrank {

double BrowsingTable::examination(std::size_t rank, std::size_t last) const {
  assert(last < rank);
  if (!by_last_click.empty()) {
    const std::size_t place = rank * (rank - 1) / 2 + last;
    return place < by_last_click.size() ? by_last_click[place] : 0.0;
  }
  const std::size_t distance = rank - last;
  if (!by_distance.empty()) return distance <= by_distance.size() ? by_distance[distance - 1] : 0.0;
  return std::pow(1.0 / static_cast<double>(distance), position_bias);
}

UserBrowsingClickModel::UserBrowsingClickModel(std::vector<double> click, BrowsingTable browsing,
                                               double noise)
    : click_(std::move(click)), browsing_(std::move(browsing)), noise_(noise) {}

void UserBrowsingClickModel::click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key,
                                   std::uint32_t round, ClickLog& log) const {
  log.clicks.assign(shown.size(), 0);
  log.examined.assign(shown.size(), 0);
  std::size_t last = 0;  // the rank of the last click, from 1
  for (std::size_t rank = 1; rank <= shown.size(); ++rank) {
    const std::int32_t doc = shown[rank - 1];
    const std::size_t grade = grades.of_doc[doc];
    assert(grade < click_.size());
    const ClickCoins coins(key, round, doc);
    if (!coins.examination(browsing_.examination(rank, last))) continue;
    log.examined[rank - 1] = 1;
    if (!coins.observed_click(click_[grade], noise_)) continue;
    log.clicks[rank - 1] = 1;
    last = rank;
  }
}

}  // namespace olrank
