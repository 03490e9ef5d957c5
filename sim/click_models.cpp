#include "sim/click_models.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "sim/external_user.h"

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

ChangingUser::ChangingUser(std::vector<std::unique_ptr<ClickModel>> intents, std::int64_t every,
                           bool repeat)
    : intents_(std::move(intents)), every_(every), repeat_(repeat) {
  assert(!intents_.empty() && every_ > 0);
}

std::size_t ChangingUser::intent_of(std::uint32_t round) const {
  assert(round > 0);
  const std::int64_t changes = (std::int64_t{round} - 1) / every_;
  const std::int64_t count = std::ssize(intents_);
  return repeat_ ? changes % count : std::min(changes, count - 1);
}

void ChangingUser::click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key,
                         std::uint32_t round, ClickLog& log) const {
  intents_[intent_of(round)]->click(grades, shown, key, round, log);
}

}  // namespace olrank
