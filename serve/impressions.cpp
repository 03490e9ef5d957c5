#include "serve/impressions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "serve/api_error.h"

namespace olrank {
namespace {

std::vector<std::uint8_t> clicks_on(std::span<const DocId> shown,
                                    std::span<const Impressions::Click> clicks) {
  std::vector<std::uint8_t> clicked(shown.size(), 0);
  for (std::size_t i = 0; i < clicks.size(); ++i) {
    const Impressions::Click& click = clicks[i];
    std::int64_t rank = click.rank;
    const auto reject = [&](const std::string& message) {
      throw ApiError(422, fmt::format("clicks[{}]", i), message);
    };
    if (rank < 0) {
      const auto found =
          std::find_if(shown.begin(), shown.end(), [&](const DocId& id) { return id.text == click.doc; });
      if (found == shown.end())
        reject(fmt::format("Document '{}' was not shown in this impression.", click.doc));
      rank = found - shown.begin();
    } else if (rank >= std::ssize(shown)) {
      reject(fmt::format("Rank {} was not shown; ranks go from 0 to {}.", rank, shown.size() - 1));
    }
    if (std::exchange(clicked[rank], 1) != 0) reject("This document is already among the clicks.");
  }
  return clicked;
}

}  // namespace

Impressions::Impressions(const ImpressionLimits& limits, std::string prefix)
    : limits_(limits), prefix_(std::move(prefix)) {}

std::string Impressions::open(FeedbackRecord list, std::int64_t shown, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  expire(now);
  std::string id = fmt::format("{}-{}", prefix_, ++opened_);
  list.impression = id;
  by_age_.push_back(id);
  open_.emplace(id, Open{std::move(list), shown, now, false, std::prev(by_age_.end())});
  return id;
}

void Impressions::expire(Clock::time_point now) {
  for (auto id = by_age_.begin(); id != by_age_.end();) {
    const auto oldest = open_.find(*id);
    const bool too_many = open_.size() >= limits_.open;
    if (!too_many && now - oldest->second.since <= limits_.age) return;
    if (oldest->second.claimed) {
      ++id;
      continue;
    }
    open_.erase(oldest);
    id = by_age_.erase(id);
  }
}

/// An ID of this run that is neither open nor answered has expired; any other ID is unknown.
void Impressions::reject_unknown(const std::string& id) const {
  std::uint64_t number = 0;
  const std::string begin = prefix_ + "-";
  if (id.rfind(begin, 0) == 0) {
    const char* last = id.data() + id.size();
    const auto [rest, error] = std::from_chars(id.data() + begin.size(), last, number);
    if (error == std::errc{} && rest == last && number >= 1 && number <= opened_) {
      throw ApiError(410, "impression",
                     fmt::format("This impression has expired: it is more than {} seconds old, or {} newer "
                                 "ones were opened.",
                                 limits_.age.count(), limits_.open));
    }
  }
  throw ApiError(404, "impression",
                 "Unknown impression. The service forgets open impressions when it restarts.");
}

Impressions::Claim Impressions::claim(const std::string& id, std::span<const Click> clicks,
                                      Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  expire(now);
  if (const auto answered = answers_.find(id); answered != answers_.end()) {
    if (clicks_on(answered->second.shown, clicks) != answered->second.clicks) {
      throw ApiError(409, "clicks",
                     fmt::format("Different clicks were already accepted for this impression as round {}.",
                                 answered->second.round));
    }
    return {true, answered->second.round, {}};
  }
  const auto known = open_.find(id);
  if (known == open_.end()) reject_unknown(id);
  Open& open = known->second;
  if (open.claimed)
    throw ApiError(409, "impression", "Feedback for this impression is already being written; retry.");
  const auto shown = std::span(open.list.docs).first(open.shown);
  open.list.clicks = clicks_on(shown, clicks);
  open.claimed = true;
  return {false, 0, std::move(open.list)};
}

void Impressions::remember(const FeedbackRecord& record) {
  const std::lock_guard lock(mutex_);
  const std::vector<DocId> shown(record.docs.begin(), record.docs.begin() + record.shown());
  answers_by_age_.push_back(record.impression);
  answers_.insert_or_assign(record.impression, Answer{record.round, record.clicks, shown});
  while (answers_by_age_.size() > limits_.open) {
    answers_.erase(answers_by_age_.front());
    answers_by_age_.pop_front();
  }
}

void Impressions::commit(const FeedbackRecord& record) {
  remember(record);
  const std::lock_guard lock(mutex_);
  const auto known = open_.find(record.impression);
  if (known == open_.end()) return;
  by_age_.erase(known->second.age_position);
  open_.erase(known);
}

void Impressions::release(FeedbackRecord record) {
  const std::lock_guard lock(mutex_);
  const auto known = open_.find(record.impression);
  if (known == open_.end()) return;
  known->second.list = std::move(record);
  known->second.claimed = false;
}

std::size_t Impressions::open_count() const {
  const std::lock_guard lock(mutex_);
  return open_.size();
}

std::uint64_t Impressions::opened() const {
  const std::lock_guard lock(mutex_);
  return opened_;
}

}  // namespace olrank
