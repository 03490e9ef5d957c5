#include "serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace olrank {
namespace {

std::string heading(std::string_view name, std::string_view type, std::string_view help) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

}  // namespace

void Metrics::count_request(std::string_view route, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++requests_[{std::string(route), status}];
  Latency& latency = latencies_[std::string(route)];
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin();
  ++latency.buckets[bucket];
  latency.seconds += seconds;
  ++latency.count;
}

void Metrics::count_certainty(std::int64_t certain_pairs, std::int64_t shown_pairs) {
  const std::lock_guard lock(mutex_);
  certain_pairs_ += certain_pairs;
  shown_pairs_ += shown_pairs;
}

void Metrics::count_clicks(std::span<const std::uint8_t> clicks) {
  const std::lock_guard lock(mutex_);
  ++lists_;
  bool clicked = false;
  for (std::size_t rank = 0; rank < clicks.size(); ++rank) {
    clicks_[std::min(rank, kRanks)] += clicks[rank];
    clicked = clicked || clicks[rank] != 0;
  }
  without_clicks_ += clicked ? 0 : 1;
}

std::string Metrics::clicks_json() const {
  const std::lock_guard lock(mutex_);
  return fmt::format("{{\"lists\":{},\"without\":{},\"clicks\":{},\"by_rank\":[{}]}}", lists_,
                     without_clicks_, std::accumulate(clicks_.begin(), clicks_.end(), std::int64_t{0}),
                     fmt::join(std::span(clicks_).first(kRanks), ","));
}

double Metrics::certain_share() const {
  const std::lock_guard lock(mutex_);
  return shown_pairs_ > 0 ? static_cast<double>(certain_pairs_) / static_cast<double>(shown_pairs_) : 0.0;
}

bool Metrics::knows_certainty() const {
  const std::lock_guard lock(mutex_);
  return shown_pairs_ > 0;
}

/// Requests beyond the last bound count as if they were at it.
double Metrics::Latency::quantile(double share) const {
  const double wanted = share * static_cast<double>(count);
  double below = 0.0;
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    const auto here = static_cast<double>(buckets[i]);
    const double lower = i > 0 ? kBounds[i - 1] : 0.0;
    if (here > 0.0 && below + here >= wanted)
      return lower + (kBounds[i] - lower) * std::max(0.0, wanted - below) / here;
    below += here;
  }
  return count > 0 ? kBounds.back() : 0.0;
}

std::vector<Metrics::Summary> Metrics::summaries() const {
  const std::lock_guard lock(mutex_);
  std::vector<Summary> summaries;
  for (const auto& [route, latency] : latencies_)
    summaries.push_back({route, latency.count, 0, latency.quantile(0.5), latency.quantile(0.99)});
  for (const auto& [key, requests] : requests_) {
    const auto summary =
        std::find_if(summaries.begin(), summaries.end(),
                     [&route = key.first](const Summary& one) { return one.route == route; });
    if (key.second >= 400 && summary != summaries.end()) summary->errors += requests;
  }
  return summaries;
}

std::string Metrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string text = heading("olrank_requests_total", "counter", "Requests by route and status.");
  for (const auto& [key, count] : requests_) {
    text += fmt::format("olrank_requests_total{{route=\"{}\",status=\"{}\"}} {}\n", key.first, key.second,
                        count);
  }
  text += heading("olrank_request_seconds", "histogram", "Seconds to process a request after it was read.");
  for (const auto& [route, latency] : latencies_) {
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < kBounds.size(); ++i) {
      below += latency.buckets[i];
      text += fmt::format("olrank_request_seconds_bucket{{route=\"{}\",le=\"{}\"}} {}\n", route, kBounds[i],
                          below);
    }
    text += fmt::format(
        "olrank_request_seconds_bucket{{route=\"{0}\",le=\"+Inf\"}} {1}\n"
        "olrank_request_seconds_sum{{route=\"{0}\"}} {2}\nolrank_request_seconds_count{{route=\"{0}\"}} "
        "{1}\n",
        route, latency.count, latency.seconds);
  }
  text +=
      heading("olrank_answered_lists_total", "counter", "Lists with feedback, since the service started.") +
      fmt::format("olrank_answered_lists_total {}\n", lists_);
  text += heading("olrank_lists_without_clicks_total", "counter",
                  "Those of them on which nothing was clicked.") +
          fmt::format("olrank_lists_without_clicks_total {}\n", without_clicks_);
  text += heading("olrank_clicks_total", "counter", "Clicks by the rank of their document, from 1.");
  for (std::size_t rank = 0; rank <= kRanks; ++rank) {
    const std::string label = rank < kRanks ? fmt::format("{}", rank + 1) : "more";
    text += fmt::format("olrank_clicks_total{{rank=\"{}\"}} {}\n", label, clicks_[rank]);
  }
  return text;
}

std::string metric_text(std::string_view name, std::string_view type, std::string_view help, double value) {
  return heading(name, type, help) + fmt::format("{} {}\n", name, value);
}

}  // namespace olrank
