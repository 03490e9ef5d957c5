#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fair/exposure.h"

namespace olrank {

/// Counts requests by route and status, their latencies, and the certain orders shown. Thread-safe.
class Metrics {
 public:
  static constexpr std::array<double, 14> kBounds = {0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032,
                                                     0.064,  0.125, 0.25,  0.5,   1.0,   2.5,   10.0};
  static constexpr std::size_t kRanks = 20;  // that clicks are counted for

  void count_request(std::string_view route, int status, double seconds);
  void count_certainty(std::int64_t certain_pairs, std::int64_t shown_pairs);
  void count_clicks(std::span<const std::uint8_t> clicks);

  std::optional<double> certain_share() const;  // of all pairs shown so far; none without any

  struct Summary {
    std::string route;
    std::uint64_t requests = 0;
    std::uint64_t errors = 0;  // of them, with status 400 or above
    double median = 0.0;       // seconds; interpolated in the buckets
    double p99 = 0.0;
  };
  std::vector<Summary> summaries() const;  // by route
  /// Describes the lists with feedback: {"lists", "without", "clicks", "by_rank"}.
  std::string clicks_json() const;
  /// Writes the Prometheus text format.
  std::string text() const;

 private:
  struct Latency {
    std::array<std::uint64_t, kBounds.size() + 1> buckets{};
    double seconds = 0.0;
    std::uint64_t count = 0;

    double quantile(double share) const;
  };

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::uint64_t> requests_;
  std::map<std::string, Latency> latencies_;
  std::int64_t certain_pairs_ = 0;
  std::int64_t shown_pairs_ = 0;
  std::int64_t lists_ = 0;  // with feedback
  std::int64_t without_clicks_ = 0;
  std::array<std::int64_t, kRanks + 1> clicks_{};  // by rank; the last one has all further ranks
};

/// The HELP and TYPE lines of a metric, in the same format, and all of one that has one value.
std::string metric_heading(std::string_view name, std::string_view type, std::string_view help);
std::string metric_text(std::string_view name, std::string_view type, std::string_view help, double value);
/// The version, and figures of the process by the names that Prometheus' own clients give them.
std::string process_metrics();

/// The exposure of the groups in all lists of a service: those of its log, and those shown since it
/// started. Lists are made one at a time, each with the unfairness of all before it, so that FairExp keeps
/// |UF| ≤ ε with requests at the same time, too. Thread-safe.
class ExposureBalance {
 public:
  ExposureBalance(ExposureRule rule, const ExposureLedger& logged)
      : rule_(std::move(rule)), ledger_(logged) {}

  const ExposureRule& rule() const { return rule_; }
  /// Does not wait for a list that is being made.
  ExposureLedger ledger() const {
    const std::lock_guard lock(ledger_mutex_);
    return ledger_;
  }

  /// It is the only one to make a list, from its constructor to its destructor.
  class Turn {
   public:
    explicit Turn(ExposureBalance& balance) : balance_(balance), turn_(balance.turn_mutex_) {}

    /// Makes one for a list of documents of these groups.
    FairRound round(std::span<const DocGroup> groups) const {
      return {groups, &balance_.rule_, balance_.ledger().unfairness()};
    }
    /// Counts the list; returns the unfairness after it, of the two groups farthest apart.
    double show(std::span<const DocGroup> groups, std::span<const std::int32_t> shown) {
      const std::lock_guard lock(balance_.ledger_mutex_);
      balance_.ledger_.observe(balance_.rule_, groups, shown);
      return balance_.rule_.farthest(balance_.ledger_.unfairness());
    }

   private:
    ExposureBalance& balance_;
    std::lock_guard<std::mutex> turn_;
  };

  /// {"unfairness", "epsilon", "beta", "lists", "fair_share", "exposure"}.
  std::string json() const;
  /// Writes the Prometheus text format.
  std::string metrics() const;

 private:
  const ExposureRule rule_;
  std::mutex turn_mutex_;
  mutable std::mutex ledger_mutex_;
  ExposureLedger ledger_;
};

}  // namespace olrank
