#include "serve/metrics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>

#include "core/version.h"

namespace olrank {

std::string metric_heading(std::string_view name, std::string_view type, std::string_view help) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

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

std::optional<double> Metrics::certain_share() const {
  const std::lock_guard lock(mutex_);
  if (shown_pairs_ == 0) return std::nullopt;
  return static_cast<double>(certain_pairs_) / static_cast<double>(shown_pairs_);
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

std::string process_metrics() {
  std::string text = metric_heading("olrank_build_info", "gauge", "1, with the version as a label.") +
                     fmt::format("olrank_build_info{{version=\"{}\"}} 1\n", version());
  const auto add = [&text](std::string_view name, std::string_view type, std::string_view help,
                           double value) {
    text += metric_text(fmt::format("process_{}", name), type, help, value);
  };
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) == 0) {
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    add("cpu_seconds_total", "counter", "Processor time of all threads in seconds.",
        seconds(used.ru_utime) + seconds(used.ru_stime));
  }
  double pages = 0.0;
  double resident = 0.0;
  if (std::ifstream("/proc/self/statm") >> pages >> resident) {
    const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
    add("virtual_memory_bytes", "gauge", "Virtual memory in bytes.", page * pages);
    add("resident_memory_bytes", "gauge", "Resident memory in bytes.", page * resident);
  }
  std::error_code failed;
  const std::filesystem::directory_iterator open("/proc/self/fd", failed);
  if (!failed)
    add("open_fds", "gauge", "Open file descriptors.",
        static_cast<double>(std::distance(open, std::filesystem::directory_iterator())));
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0)
    add("max_fds", "gauge", "Limit of open file descriptors.", static_cast<double>(files.rlim_cur));
  static const double begun = [] {
    // Ticks since the machine began are the 20th number behind the name of the program.
    std::string stat;
    std::getline(std::ifstream("/proc/self/stat"), stat);
    std::istringstream numbers(stat.substr(stat.rfind(')') + 1));
    std::string number;
    for (int place = 0; place < 20; ++place) numbers >> number;
    double boot = 0.0;
    std::ifstream machine("/proc/stat");
    for (std::string key; machine >> key && key != "btime";) std::getline(machine, key);
    machine >> boot;
    return boot + std::strtod(number.c_str(), nullptr) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }();
  add("start_time_seconds", "gauge", "When the process began, in seconds since 1970.", begun);
  return text;
}

std::string Metrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string text = metric_heading("olrank_requests_total", "counter", "Requests by route and status.");
  for (const auto& [key, count] : requests_) {
    text += fmt::format("olrank_requests_total{{route=\"{}\",status=\"{}\"}} {}\n", key.first, key.second,
                        count);
  }
  text += metric_heading("olrank_request_seconds", "histogram",
                         "Seconds to process a request after it was read.");
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
  text += metric_text("olrank_answered_lists_total", "counter",
                      "Lists with feedback, since the service started.", static_cast<double>(lists_));
  text += metric_text("olrank_lists_without_clicks_total", "counter",
                      "Those of them on which nothing was clicked.", static_cast<double>(without_clicks_));
  text += metric_heading("olrank_clicks_total", "counter", "Clicks by the rank of their document, from 1.");
  for (std::size_t rank = 0; rank <= kRanks; ++rank) {
    const std::string label = rank < kRanks ? fmt::format("{}", rank + 1) : "more";
    text += fmt::format("olrank_clicks_total{{rank=\"{}\"}} {}\n", label, clicks_[rank]);
  }
  return text;
}

std::string metric_text(std::string_view name, std::string_view type, std::string_view help, double value) {
  return metric_heading(name, type, help) + fmt::format("{} {}\n", name, value);
}

namespace {

/// 1 before the first list.
double fair_share(const ExposureLedger& ledger) {
  if (ledger.rounds() == 0) return 1.0;
  return static_cast<double>(ledger.fair_rounds()) / static_cast<double>(ledger.rounds());
}

}  // namespace

std::string ExposureBalance::json() const {
  const ExposureLedger now = ledger();
  std::string exposure;
  for (std::size_t group = 0; group < rule_.groups(); ++group) {
    const auto one = static_cast<DocGroup>(group);
    exposure += fmt::format("{}\"{}\":{}", group > 0 ? "," : "", letter_of(one), now.of(one));
  }
  return fmt::format(
      "{{\"unfairness\":{},\"epsilon\":{},\"beta\":{},\"lists\":{},\"fair_share\":{},"
      "\"exposure\":{{{}}}}}",
      rule_.farthest(now.unfairness()), rule_.epsilon,
      rule_.beta.size() == 1 ? fmt::format("{}", rule_.beta.front())
                             : fmt::format("[{}]", fmt::join(rule_.beta, ",")),
      now.rounds(), fair_share(now), exposure);
}

std::string ExposureBalance::metrics() const {
  const ExposureLedger now = ledger();
  std::string text = metric_text(
      "olrank_unfairness", "gauge",
      "Exposure of group A less beta times that of group B, over all lists; of more groups, that "
      "of the two farthest apart.",
      rule_.farthest(now.unfairness()));
  text += metric_text("olrank_unfairness_limit", "gauge",
                      "Largest olrank_unfairness, either way, that is fair.", rule_.epsilon);
  text +=
      metric_text("olrank_fair_share", "gauge",
                  "Share of the lists after which the unfairness was within its limit.", fair_share(now));
  text += metric_heading("olrank_exposure_total", "counter",
                         "Exposure of the documents of each group, over all lists.");
  for (std::size_t group = 0; group < rule_.groups(); ++group) {
    const auto one = static_cast<DocGroup>(group);
    text += fmt::format("olrank_exposure_total{{group=\"{}\"}} {}\n", letter_of(one), now.of(one));
  }
  return text;
}

}  // namespace olrank
