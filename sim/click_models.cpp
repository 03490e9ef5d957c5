#include "sim/click_models.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace olrank {

ScanningUser::ScanningUser(ScanTable table, double noise) : table_(std::move(table)), noise_(noise) {
  if (table_.stop.empty()) table_.stop.resize(table_.click.size(), 0.0);
  assert(table_.stop.size() == table_.click.size());
}

void ScanningUser::click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key,
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
    const bool may_stop = clicked || table_.stop_draw == StopDraw::kEveryDoc;
    if (may_stop && coins.stop(table_.stop[grade])) return;
    if (!coins.perseverance(table_.perseverance)) return;
  }
}

std::optional<ExaminationLaw> ScanningUser::examination_law(std::int64_t /*ranks*/) const {
  ExaminationLaw law;
  for (std::size_t grade = 0; grade < table_.click.size(); ++grade) {
    const bool every_doc = table_.stop_draw == StopDraw::kEveryDoc;
    const double may_stop = every_doc ? 1.0 : observed_click_rate(table_.click[grade], noise_);
    law.goes_on.push_back((1.0 - may_stop * table_.stop[grade]) * table_.perseverance);
  }
  return law;
}

double ExaminationTable::examination(std::size_t rank, std::size_t last) const {
  assert(last < rank);
  if (!by_last_click.empty()) {
    const std::size_t place = rank * (rank - 1) / 2 + last;
    return place < by_last_click.size() ? by_last_click[place] : 0.0;
  }
  const std::size_t distance = rank - last;
  if (!by_distance.empty()) return distance <= by_distance.size() ? by_distance[distance - 1] : 0.0;
  return std::pow(1.0 / static_cast<double>(distance), position_bias);
}

ExaminingUser::ExaminingUser(std::vector<double> click, ExaminationTable table, double noise)
    : click_(std::move(click)), table_(std::move(table)), noise_(noise) {}

void ExaminingUser::click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key,
                          std::uint32_t round, ClickLog& log) const {
  log.clicks.assign(shown.size(), 0);
  log.examined.assign(shown.size(), 0);
  std::size_t last = 0;  // the rank of the last click, from 1
  for (std::size_t rank = 1; rank <= shown.size(); ++rank) {
    const std::int32_t doc = shown[rank - 1];
    const std::size_t grade = grades.of_doc[doc];
    assert(grade < click_.size());
    const ClickCoins coins(key, round, doc);
    if (!coins.examination(table_.examination(rank, last))) continue;
    log.examined[rank - 1] = 1;
    if (!coins.observed_click(click_[grade], noise_)) continue;
    log.clicks[rank - 1] = 1;
    if (table_.from_last_click) last = rank;
  }
}

std::optional<ExaminationLaw> ExaminingUser::examination_law(std::int64_t ranks) const {
  if (table_.from_last_click) return std::nullopt;
  ExaminationLaw law;
  for (std::int64_t rank = 1; rank <= ranks; ++rank) law.by_rank.push_back(table_.examination(rank, 0));
  return law;
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
