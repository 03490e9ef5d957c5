#include "serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>

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

double Metrics::certain_share() const {
  const std::lock_guard lock(mutex_);
  return shown_pairs_ > 0 ? static_cast<double>(certain_pairs_) / static_cast<double>(shown_pairs_) : 0.0;
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
  return text;
}

std::string metric_text(std::string_view name, std::string_view type, std::string_view help, double value) {
  return heading(name, type, help) + fmt::format("{} {}\n", name, value);
}

}  // namespace olrank
