#include "logs/direct_method.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "core/throw_error.h"

namespace olrank {

template <>
struct EnumNames<ListPolicy::Kind> {
  static constexpr std::array values =
      names_in_order<ListPolicy::Kind>("greedy", "plackett-luce", "epsilon", "incumbent", "candidate");
};

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

ListPolicy ListPolicy::parse(const std::string& text) {
  const auto named = value_named<Kind>(text);
  if (named && *named != Kind::kEpsilon) return {*named};
  constexpr std::string_view kEpsilon = "epsilon=";
  if (text.starts_with(kEpsilon)) {
    char* end = nullptr;
    const double epsilon = std::strtod(text.c_str() + kEpsilon.size(), &end);
    if (*end == '\0' && end != text.c_str() + kEpsilon.size() && epsilon >= 0.0 && epsilon <= 1.0)
      return {Kind::kEpsilon, epsilon};
    throw_error<InvalidArgument>("--policy {}: ε must be a number from 0 to 1.", text);
  }
  throw_error<InvalidArgument>(
      "--policy must be greedy, plackett-luce, epsilon=0.1, incumbent or candidate, not '{}': other lists "
      "have no probabilities that follow from scores.",
      text);
}

std::string ListPolicy::name() const {
  return kind == Kind::kEpsilon ? fmt::format("epsilon={}", epsilon) : std::string(name_of(kind));
}

void ListPolicy::probabilities(std::span<const double> scores, std::span<const std::int32_t> list,
                               std::span<double> probabilities) const {
  std::vector<bool> placed(scores.size(), false);
  for (std::size_t rank = 0; rank < list.size(); ++rank) {
    const auto left = static_cast<double>(scores.size() - rank);
    double sum = 0.0;    // of e^(score − that of the list's document) over those left
    double equal = 0.0;  // documents left with its score; any of them may come first
    bool best = true;
    const double mine = scores[list[rank]];
    for (std::size_t doc = 0; doc < scores.size(); ++doc) {
      if (placed[doc]) continue;
      if (kind == Kind::kPlackettLuce) sum += std::exp(scores[doc] - mine);
      equal += scores[doc] == mine ? 1.0 : 0.0;
      best = best && scores[doc] <= mine;
    }
    placed[list[rank]] = true;
    if (kind == Kind::kPlackettLuce) {
      probabilities[rank] = 1.0 / sum;
    } else {
      probabilities[rank] = (best ? (1.0 - epsilon) / equal : 0.0) + epsilon / left;
    }
  }
}

void ListPolicy::draw(std::span<const double> scores, RngStream& coins,
                      std::span<std::int32_t> list) const {
  // Plackett-Luce lists are in the order of scores with Gumbel noise (Yellott 1977); a second key orders
  // equal scores by chance.
  std::vector<std::pair<double, double>> keys;
  keys.reserve(scores.size());
  for (const double score : scores) {
    const double coin = coins.uniform();
    keys.emplace_back(kind == Kind::kPlackettLuce ? score - std::log(-std::log1p(-coin)) : score, coin);
  }
  std::vector<std::int32_t> left(scores.size());
  for (std::size_t doc = 0; doc < left.size(); ++doc) left[doc] = static_cast<std::int32_t>(doc);
  const auto is_before = [&](std::int32_t a, std::int32_t b) { return keys[a] > keys[b]; };
  const auto sorted = kind == Kind::kEpsilon ? left.size() : std::min(list.size(), left.size());
  std::partial_sort(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(sorted), left.end(),
                    is_before);
  for (std::size_t rank = 0; rank < list.size(); ++rank) {
    if (kind == Kind::kEpsilon && coins.uniform() < epsilon) {
      const auto chosen =
          left.begin() +
          static_cast<std::ptrdiff_t>(rank + coins.index(static_cast<std::uint32_t>(left.size() - rank)));
      std::rotate(left.begin() + static_cast<std::ptrdiff_t>(rank), chosen, chosen + 1);
    }
    list[rank] = left[rank];
  }
}

}  // namespace olrank
