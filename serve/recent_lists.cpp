#include "serve/recent_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/io/json_stream.h"

namespace olrank {
namespace {

std::string share_json(std::int64_t certain_pairs, std::int64_t shown_pairs) {
  if (shown_pairs == 0) return "null";
  return fmt::format("{}", static_cast<double>(certain_pairs) / static_cast<double>(shown_pairs));
}

void append_list(std::string& out, const RecentLists::List& list, RecentLists::Clock::time_point now) {
  out += "{\"impression\":";
  append_json_string(out, list.impression);
  out += ",\"query\":";
  append_json_string(out, list.query);
  out += fmt::format(",\"seconds_ago\":{:.1f},\"round\":{},\"shown\":{},\"docs\":[",
                     std::chrono::duration<double>(now - list.since).count(), list.round, list.shown);
  for (std::size_t rank = 0; rank < list.docs.size(); ++rank) {
    if (rank > 0) out += ',';
    append_json_id(out, list.docs[rank]);
  }
  out += "],\"certain_share\":";
  out += list.certainty ? share_json(list.certainty->certain_pairs, list.certainty->shown_pairs) : "null";
  out += ",\"clicks\":";
  if (list.clicks) {
    out += fmt::format("[{}]", fmt::join(*list.clicks, ","));
  } else {
    out += "null";
  }
  out += '}';
}

}  // namespace

void RecentLists::add(List list) {
  if (list.docs.size() > kDocs) list.docs.resize(kDocs);
  const std::lock_guard lock(mutex_);
  if (added_ % lists_in_period_ == 0 && periods_.size() == kPeriods) {
    for (std::size_t i = 0; i < kPeriods / 2; ++i) {
      const Period& first = periods_[2 * i];
      const Period& second = periods_[2 * i + 1];
      periods_[i] = {first.certain_pairs + second.certain_pairs, first.shown_pairs + second.shown_pairs};
    }
    periods_.resize(kPeriods / 2);
    lists_in_period_ *= 2;
  }
  if (added_++ % lists_in_period_ == 0) periods_.emplace_back();
  if (list.certainty) {
    periods_.back().certain_pairs += list.certainty->certain_pairs;
    periods_.back().shown_pairs += list.certainty->shown_pairs;
  }
  if (lists_.size() == kLists) lists_.pop_back();
  lists_.push_front(std::move(list));
}

void RecentLists::add_clicks(const std::string& impression, std::span<const std::uint8_t> clicks) {
  const std::lock_guard lock(mutex_);
  for (List& list : lists_) {
    if (list.impression != impression) continue;
    list.clicks.emplace(clicks.begin(), clicks.begin() + std::min(clicks.size(), list.docs.size()));
    return;
  }
}

std::string RecentLists::lists_json(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  std::string out = "[";
  for (const List& list : lists_) {
    if (out.size() > 1) out += ',';
    append_list(out, list, now);
  }
  return out + "]";
}

std::string RecentLists::history_json() const {
  const std::lock_guard lock(mutex_);
  std::string out = "[";
  for (std::size_t i = 0; i < added_ / lists_in_period_; ++i) {
    out +=
        fmt::format("{}{{\"lists\":{},\"certain_share\":{}}}", i > 0 ? "," : "", (i + 1) * lists_in_period_,
                    share_json(periods_[i].certain_pairs, periods_[i].shown_pairs));
  }
  return out + "]";
}

}  // namespace olrank
