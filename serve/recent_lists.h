#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/explore/exploring_list.h"
#include "core/feedback/feedback_record.h"

namespace olrank {

/// What the service showed last, and how the share of certain orders went since it started. Its memory is
/// bounded, whatever is shown. Thread-safe.
class RecentLists {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kLists = 20;
  static constexpr std::size_t kDocs = 10;      // kept of a list
  static constexpr std::size_t kPeriods = 128;  // of the history

  struct List {
    std::string impression;
    std::string query;
    std::vector<DocId> docs;  // the first ones, best first
    std::int64_t shown = 0;   // how many there were
    std::uint64_t round = 0;  // rounds learned by the ranker that made the list
    std::optional<ListCertainty> certainty;
    std::optional<std::vector<std::uint8_t>> clicks;  // of `docs`, once there is feedback
    Clock::time_point since;
  };

  void add(List list);
  void add_clicks(const std::string& impression, std::span<const std::uint8_t> clicks);

  /// The latest list first.
  std::string lists_json(Clock::time_point now = Clock::now()) const;
  /// Complete periods of equally many lists since the start: each with the lists shown at its end, and its
  /// share of certain orders, which is null without any.
  std::string history_json() const;

 private:
  struct Period {
    std::int64_t certain_pairs = 0;
    std::int64_t shown_pairs = 0;
  };

  mutable std::mutex mutex_;
  std::deque<List> lists_;  // the latest first
  std::vector<Period> periods_;
  std::uint64_t lists_in_period_ = 1;  // doubles whenever the periods are full
  std::uint64_t added_ = 0;
};

}  // namespace olrank
