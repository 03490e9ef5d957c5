#include "sim/dynamic_bayesian_click_model.h"

#include <cassert>
#include <utility>

#include "sim/click_coins.h"

namespace olrank {

DynamicBayesianClickModel::DynamicBayesianClickModel(DynamicBayesianTable table, double noise)
    : table_(std::move(table)), noise_(noise) {
  if (table_.satisfaction.empty()) table_.satisfaction.resize(table_.attraction.size(), 0.0);
  assert(table_.satisfaction.size() == table_.attraction.size());
}

void DynamicBayesianClickModel::click(QueryGrades grades, std::span<const std::int32_t> shown,
                                      PhiloxKey key, std::uint32_t round, ClickLog& log) const {
  log.clicks.assign(shown.size(), 0);
  log.examined.assign(shown.size(), 0);
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    const std::size_t grade = grades.of_doc[shown[rank]];
    assert(grade < table_.attraction.size());
    const ClickCoins coins(key, round, shown[rank]);
    const bool clicked = coins.observed_click(table_.attraction[grade], noise_);
    log.examined[rank] = 1;
    log.clicks[rank] = clicked ? 1 : 0;
    // As in the dependent model, the observed click counts, flipped or not.
    if (clicked && coins.stop(table_.satisfaction[grade])) return;
    if (!coins.perseverance(table_.perseverance)) return;
  }
}

std::optional<ExaminationLaw> DynamicBayesianClickModel::examination_law(std::int64_t /*ranks*/) const {
  ExaminationLaw law;
  for (std::size_t grade = 0; grade < table_.attraction.size(); ++grade) {
    const double clicked = observed_click_rate(table_.attraction[grade], noise_);
    law.goes_on.push_back((1.0 - clicked * table_.satisfaction[grade]) * table_.perseverance);
  }
  return law;
}

}  // namespace olrank
