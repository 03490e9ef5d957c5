#include "logs/direct_method.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"

namespace olrank {

double reward_at(ClickReward reward, std::size_t rank, bool first) {
  if (reward == ClickReward::kDcg) return 1.0 / std::log2(static_cast<double>(rank) + 2.0);
  return reward == ClickReward::kFirstClick && !first ? 0.0 : 1.0;
}

void DirectMethod::add(std::span<const std::int32_t> docs, std::span<const std::uint8_t> clicks,
                       double worth) {
  const auto counted = std::min<std::size_t>(docs.size(), static_cast<std::size_t>(ranks_));
  lists_.add(docs.first(counted), clicks.first(counted));
  for (const std::uint8_t click : clicks) clicks_ += click;
  worth_ += worth;
}

void DirectMethod::fit(ClickDocs docs) {
  if (clicks_ == 0.0) {
    throw InvalidArgument(
        "The log has no click, so no click model can be fitted: choose --estimators without a click model, "
        "such as ips,rips,snips,snrips.");
  }
  docs_ = std::move(docs);
  // One more stands for all documents that were never shown.
  docs_.count += 1;
  docs_.inputs.resize(docs_.count * docs_.columns, 0.0F);
  fit_ = fit_clicks(model_, lists_, docs_, ranks_, {});
  examination_ = judge_clicks(fit_, lists_).examination;
  clicks_of_.assign(docs_.count, 0.0);
  exposure_of_.assign(docs_.count, 0.0);
  for (std::int64_t i = 0; i < lists_.size(); ++i) {
    const ClickedList list = lists_[i];
    for (std::size_t rank = 0; rank < list.size(); ++rank) {
      clicks_of_[list.docs[rank]] += list.clicks[rank];
      exposure_of_[list.docs[rank]] += examination_[rank];
    }
  }
  lists_ = {};
}

double DirectMethod::worth_of(std::size_t rank, double alone, double given_none) const {
  const double click = reward_ == ClickReward::kFirstClick ? given_none : alone;
  return click * reward_at(reward_, rank, true) *
         (reward_ == ClickReward::kWeight ? worth_ / clicks_ : 1.0);
}

void DirectMethod::read(std::span<const std::int32_t> docs) {
  known_.clear();
  attraction_.clear();
  for (const std::int32_t doc : docs) {
    const auto last = static_cast<std::int32_t>(docs_.count - 1);
    known_.push_back(doc >= 0 && doc < last ? doc : last);
    attraction_.push_back(fit_.attraction->of(known_.back()));
  }
  none_.assign(docs.size(), 0);
  fit_.reading->forecast({known_, none_}, attraction_, forecast_);
}

void DirectMethod::expect(std::span<const std::int32_t> docs, std::span<double> rewards) {
  read(docs);
  double none_above = 1.0;
  for (std::size_t rank = 0; rank < docs.size(); ++rank) {
    const double click = forecast_.given_above[rank];
    rewards[rank] = worth_of(rank, forecast_.alone[rank], none_above * click);
    none_above *= 1.0 - click;
  }
}

DirectMethod::Forecast DirectMethod::forecast(std::span<const std::int32_t> docs) {
  read(docs);
  Forecast told;
  double none_above = 1.0;
  double none_above_by_exposure = 1.0;
  double seen = 0.0;
  for (std::size_t rank = 0; rank < docs.size(); ++rank) {
    const double click = forecast_.given_above[rank];
    told.reward += worth_of(rank, forecast_.alone[rank], none_above * click);
    none_above *= 1.0 - click;
    const std::int32_t doc = known_[rank];
    // A list may be longer than any in the log.
    const double examined =
        examination_.empty() ? 0.0 : examination_[std::min(rank, examination_.size() - 1)];
    const bool is_seen = exposure_of_[doc] > 0.0;
    const double by_exposure =
        examined * (is_seen ? clicks_of_[doc] / exposure_of_[doc] : attraction_[rank]);
    told.by_exposure += worth_of(rank, by_exposure, none_above_by_exposure * by_exposure);
    none_above_by_exposure *= 1.0 - std::min(by_exposure, 1.0);
    told.unseen += is_seen ? 0.0 : examined;
    seen += examined;
  }
  told.unseen = seen > 0.0 ? told.unseen / seen : 0.0;
  return told;
}

}  // namespace olrank
