#include "sim/position_click_model.h"

#include <cassert>
#include <cmath>
#include <utility>

#include "sim/click_coins.h"

namespace olrank {

PositionClickModel::PositionClickModel(std::vector<double> click, std::vector<double> examination,
                                       double position_bias, double noise)
    : click_(std::move(click)),
      examination_(std::move(examination)),
      position_bias_(position_bias),
      noise_(noise) {}

double PositionClickModel::examination(std::size_t rank) const {
  if (examination_.empty()) return std::pow(1.0 / static_cast<double>(rank + 1), position_bias_);
  return rank < examination_.size() ? examination_[rank] : 0.0;
}

void PositionClickModel::click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key,
                               std::uint32_t round, ClickLog& log) const {
  log.clicks.assign(shown.size(), 0);
  log.examined.assign(shown.size(), 0);
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    const std::size_t grade = grades.of_doc[shown[rank]];
    assert(grade < click_.size());
    const ClickCoins coins(key, round, shown[rank]);
    if (!coins.examination(examination(rank))) continue;
    log.examined[rank] = 1;
    log.clicks[rank] = coins.observed_click(click_[grade], noise_) ? 1 : 0;
  }
}

std::optional<ExaminationLaw> PositionClickModel::examination_law(std::int64_t ranks) const {
  ExaminationLaw law;
  for (std::int64_t rank = 0; rank < ranks; ++rank) law.by_rank.push_back(examination(rank));
  return law;
}

}  // namespace olrank
