#include "sim/dependent_click_model.h"

#include <cassert>
#include <utility>

#include "sim/click_coins.h"

namespace olrank {

DependentClickModel::DependentClickModel(ClickTable table, StopDraw stop_draw, double noise)
    : table_(std::move(table)), stop_draw_(stop_draw), noise_(noise) {
  if (table_.stop.empty()) table_.stop.resize(table_.click.size(), 0.0);
  assert(table_.stop.size() == table_.click.size());
}

void DependentClickModel::click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key,
                                std::uint32_t round, ClickLog& log) const {
  log.clicks.assign(shown.size(), 0);
  log.examined.assign(shown.size(), 0);
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    const std::size_t grade = grades.of_doc[shown[rank]];
    assert(grade < table_.click.size());
    const ClickCoins coins(key, round, shown[rank]);
    const bool clicked = coins.observed_click(table_.click[grade], noise_);
    log.examined[rank] = 1;
    log.clicks[rank] = clicked ? 1 : 0;
    // With stops drawn after a click, the observed click counts, flipped or not: a stray click leaves the
    // page like an intended one, and in the log every stop follows a click.
    const bool may_stop = clicked || stop_draw_ == StopDraw::kEveryDoc;
    if (may_stop && coins.stop(table_.stop[grade])) return;
  }
}

std::optional<ExaminationLaw> DependentClickModel::examination_law(std::int64_t /*ranks*/) const {
  ExaminationLaw law;
  for (std::size_t grade = 0; grade < table_.click.size(); ++grade) {
    const bool every_doc = stop_draw_ == StopDraw::kEveryDoc;
    const double may_stop = every_doc ? 1.0 : observed_click_rate(table_.click[grade], noise_);
    law.goes_on.push_back(1.0 - may_stop * table_.stop[grade]);
  }
  return law;
}

}  // namespace olrank
