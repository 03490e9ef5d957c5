#include "core/feedback/examination.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/math/any_cpu.h"

namespace olrank {
namespace {

constexpr double kLeast = 1e-9;  // probability of what was seen

/// log(eᵃ + eᵇ). One of a and b may be −∞.
double log_of_sum(double a, double b) {
  return std::max(a, b) + log1p_of(exp_of(-std::abs(a - b)));
}

double surprise_of(std::span<const double> predicted, std::span<const std::uint8_t> clicks) {
  constexpr double kLeast = 1e-3;  // so that no click is impossible
  constexpr double kMost = 3.0;
  double surprise = 0.0;
  double variance = 0.1;
  for (std::size_t rank = 0; rank < clicks.size(); ++rank) {
    const double p = std::clamp(predicted[rank], kLeast, 1.0 - kLeast);
    const double logit = log_of(p / (1.0 - p));
    surprise += (p - (clicks[rank] != 0 ? 1.0 : 0.0)) * logit;
    variance += p * (1.0 - p) * logit * logit;
  }
  return std::clamp(surprise / std::sqrt(variance), -kMost, kMost);
}

}  // namespace

Examination::Counts Examination::first_look_by_rank(std::size_t rank) {
  constexpr double kWeight = 16.0;
  const double share = 1.0 / static_cast<double>(rank + 1);
  return {kWeight * share, kWeight * (1.0 - share)};
}

double Examination::goes_on(bool clicked) const {
  return (clicked ? after_click_ : after_skip_).share();
}

double Examination::looks(std::size_t rank) const {
  if (rank == 0) return 1.0;
  return (rank < looks_.size() ? looks_[rank] : kLook).share();
}

double Examination::looks_by_rank(std::size_t rank) const {
  return (rank < looks_by_rank_.size() ? looks_by_rank_[rank] : first_look_by_rank(rank)).share();
}

double Examination::by_rank_share() const {
  return 1.0 / (1.0 + exp_of(-by_rank_lead_));
}

void Examination::learn(std::span<const double> attraction, std::span<const std::uint8_t> clicks,
                        Reading& reading) {
  predict(attraction, reading.predicted);
  learn_by_steps(attraction, clicks, reading);
  learn_by_ranks(attraction, clicks, by_rank_);
  const double steps = reading.log_likelihood;
  const double ranks = by_rank_.log_likelihood;
  reading.log_likelihood =
      log_of_sum(steps - log1p_of(exp_of(by_rank_lead_)), ranks - log1p_of(exp_of(-by_rank_lead_)));
  constexpr double kMostLead = 50.0;  // users may read in another way one day
  by_rank_lead_ = std::clamp(by_rank_lead_ + ranks - steps, -kMostLead, kMostLead);
  const double share = by_rank_share();
  for (std::size_t rank = 0; rank < clicks.size(); ++rank)
    reading.examined[rank] += share * (by_rank_.examined[rank] - reading.examined[rank]);
}

void Examination::predict(std::span<const double> attraction, std::vector<double>& predicted) const {
  predicted.assign(attraction.size(), 0.0);
  const double share = by_rank_share();
  double reached = 1.0;
  for (std::size_t rank = 0; rank < attraction.size(); ++rank) {
    const double click = looks(rank) * attraction[rank];
    predicted[rank] = (1.0 - share) * reached * click + share * looks_by_rank(rank) * attraction[rank];
    reached *= click * goes_on(true) + (1.0 - click) * goes_on(false);
  }
}

void Examination::learn_by_ranks(std::span<const double> attraction, std::span<const std::uint8_t> clicks,
                                 Reading& reading) {
  const std::size_t shown = clicks.size();
  reading.examined.assign(shown, 0.0);
  reading.log_likelihood = 0.0;
  while (looks_by_rank_.size() < shown) looks_by_rank_.push_back(first_look_by_rank(looks_by_rank_.size()));
  for (std::size_t rank = 0; rank < shown; ++rank) {
    const double look = looks_by_rank(rank);
    const double click = look * attraction[rank];
    reading.log_likelihood += log_of(std::max(clicks[rank] != 0 ? click : 1.0 - click, kLeast));
    const double examined = clicks[rank] != 0 ? 1.0 : (look - click) / std::max(1.0 - click, kLeast);
    reading.examined[rank] = examined;
    looks_by_rank_[rank].yes += examined;
    looks_by_rank_[rank].no += 1.0 - examined;
  }
}

void Examination::learn_by_steps(std::span<const double> attraction, std::span<const std::uint8_t> clicks,
                                 Reading& reading) {
  const std::size_t shown = clicks.size();
  reading.examined.assign(shown, 0.0);
  reading.log_likelihood = 0.0;
  if (shown == 0) return;
  if (looks_.size() < shown) looks_.resize(shown, kLook);
  const double after_click = goes_on(true);
  const double after_skip = goes_on(false);

  // Down to the last click, which is where the user can have stopped first.
  std::size_t last = shown;
  for (std::size_t rank = 0; rank < shown; ++rank) {
    if (clicks[rank] != 0) last = rank;
  }
  const bool any_click = last < shown;
  const std::size_t first_stop = any_click ? last : 0;
  if (any_click) {
    for (std::size_t rank = 0; rank <= last; ++rank) {
      const double click = looks(rank) * attraction[rank];
      reading.log_likelihood += log_of(std::max(clicks[rank] != 0 ? click : 1.0 - click, kLeast));
      if (rank < last) reading.log_likelihood += log_of(clicks[rank] != 0 ? after_click : after_skip);
    }
  }

  // Beyond it: the weight of each rank to be the last that was reached.
  stopped_.assign(shown - first_stop, 0.0);
  double reach = 1.0;
  double total = 0.0;
  for (std::size_t rank = first_stop; rank < shown; ++rank) {
    if (rank > first_stop || !any_click) reach *= 1.0 - looks(rank) * attraction[rank];
    const double on = clicks[rank] != 0 ? after_click : after_skip;
    const double weight = rank + 1 == shown ? reach : reach * (1.0 - on);
    stopped_[rank - first_stop] = weight;
    total += weight;
    reach *= on;
  }
  constexpr double kLeastTotal = 1e-12;
  reading.log_likelihood += log_of(std::max(total, kLeastTotal));

  // From the last rank up, `reached` is the probability that a rank was reached.
  double reached = 0.0;
  for (std::size_t rank = shown; rank-- > 0;) {
    double stopped = 0.0;
    if (rank >= first_stop) {
      stopped = stopped_[rank - first_stop] / total;
      reached += stopped;
    } else {
      reached = 1.0;
    }
    const double look = looks(rank);
    const double examined =
        clicks[rank] != 0 ? 1.0
                          : reached * look * (1.0 - attraction[rank]) / (1.0 - look * attraction[rank]);
    reading.examined[rank] = examined;
    if (rank + 1 < shown) {
      Counts& counts = clicks[rank] != 0 ? after_click_ : after_skip_;
      counts.yes += reached - stopped;
      counts.no += stopped;
    }
    looks_[rank].yes += examined;
    looks_[rank].no += reached - examined;
  }
}

void Examination::forget(double share) {
  const auto fade = [share](Counts& counts, const Counts& start) {
    counts.yes += share * (start.yes - counts.yes);
    counts.no += share * (start.no - counts.no);
  };
  fade(after_click_, kAfterClick);
  fade(after_skip_, kAfterSkip);
  for (Counts& counts : looks_) fade(counts, kLook);
  for (std::size_t rank = 0; rank < looks_by_rank_.size(); ++rank)
    fade(looks_by_rank_[rank], first_look_by_rank(rank));
  by_rank_lead_ *= 1.0 - share;
}

void Examination::fields(StateFields& state, std::string_view prefix) {
  std::vector<double> counts = {after_click_.yes, after_click_.no, after_skip_.yes, after_skip_.no};
  for (const Counts& of_rank : looks_) counts.insert(counts.end(), {of_rank.yes, of_rank.no});
  std::vector<double> by_rank = {by_rank_lead_};
  for (const Counts& of_rank : looks_by_rank_) by_rank.insert(by_rank.end(), {of_rank.yes, of_rank.no});
  state.any(std::string(prefix) + "examination", counts);
  state.require(counts.size() >= 4 && counts.size() % 2 == 0, "Its counts of examination are not pairs.");
  state.any(std::string(prefix) + "examination_by_rank", by_rank);
  state.require(by_rank.size() % 2 != 0, "Its counts of examination by rank are not pairs.");
  if (!state.reads()) return;
  after_click_ = {counts[0], counts[1]};
  after_skip_ = {counts[2], counts[3]};
  looks_.clear();
  for (std::size_t i = 4; i < counts.size(); i += 2) looks_.push_back({counts[i], counts[i + 1]});
  by_rank_lead_ = by_rank[0];
  looks_by_rank_.clear();
  for (std::size_t i = 1; i < by_rank.size(); i += 2)
    looks_by_rank_.push_back({by_rank[i], by_rank[i + 1]});
}

bool ChangeAlarm::learn(std::span<const double> predicted, std::span<const std::uint8_t> clicks) {
  constexpr double kMemory = 200.0;
  constexpr double kLeastVariance = 0.1;
  constexpr double kAllowed = 0.5;
  constexpr double kMostStep = 1.5;
  constexpr double kAlarm = 15.0;
  constexpr double kGrowth = 0.15;
  if (clicks.empty()) return false;
  const double distance = surprise_of(predicted, clicks) - usual_;
  all_ += 1.0;
  lists_ += 1.0;
  if (lists_ > silent_) {
    const double step = std::min(distance / std::sqrt(variance_) - kAllowed, kMostStep);
    sum_ = std::max(0.0, sum_ + step);
  }
  const double step = 1.0 / std::min(lists_, kMemory);
  usual_ += step * distance;
  variance_ += step * (std::max(distance * distance, kLeastVariance) - variance_);
  if (sum_ < kAlarm) return false;
  const double all = all_;
  *this = {};
  all_ = all;
  silent_ = std::max(kFirstLists, kGrowth * all);
  return true;
}

void ChangeAlarm::fields(StateFields& state, std::string_view name) {
  state.numbers(name, all_, lists_, silent_, usual_, variance_, sum_);
  for (const double number : {all_, lists_, silent_, usual_, variance_, sum_})
    state.require(std::isfinite(number), "A number of the alarm is not finite.");
  state.require(variance_ > 0.0, "The alarm's variance is not positive.");
}

}  // namespace olrank
