#include "sim/cascade_click_model.h"

#include <cassert>
#include <utility>

#include "sim/click_coins.h"

namespace olrank {

CascadeClickModel::CascadeClickModel(std::vector<double> click, double noise)
    : click_(std::move(click)), noise_(noise) {}

void CascadeClickModel::click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key,
                              std::uint32_t round, ClickLog& log) const {
  log.clicks.assign(shown.size(), 0);
  log.examined.assign(shown.size(), 0);
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    const std::size_t grade = grades.of_doc[shown[rank]];
    assert(grade < click_.size());
    log.examined[rank] = 1;
    // The observed click ends the scan, flipped or not, so that no log shows two of them.
    if (ClickCoins(key, round, shown[rank]).observed_click(click_[grade], noise_)) {
      log.clicks[rank] = 1;
      return;
    }
  }
}

std::optional<ExaminationLaw> CascadeClickModel::examination_law(std::int64_t /*ranks*/) const {
  ExaminationLaw law;
  for (const double click : click_) law.goes_on.push_back(1.0 - observed_click_rate(click, noise_));
  return law;
}

}  // namespace olrank
