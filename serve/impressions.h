#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "serve/feedback_record.h"

namespace olrank {

struct ImpressionLimits {
  std::size_t open = 10'000;       // lists awaiting feedback; as many answered ones are remembered
  std::chrono::seconds age{3600};  // an open impression expires after this
};

/// Shown lists that still await feedback, and recently accepted answers, so that none counts twice.
/// Thread-safe.
class Impressions {
 public:
  using Clock = std::chrono::steady_clock;

  /// `prefix` starts every ID and differs between runs of the service.
  Impressions(const ImpressionLimits& limits, std::string prefix);

  /// Stores a list, without clicks, and returns its ID. Its first `shown` documents were shown.
  std::string open(FeedbackRecord list, std::int64_t shown, Clock::time_point now = Clock::now());
  /// The result of claim(): a record to write, or the accepted round that the clicks repeat.
  struct Claim {
    bool duplicate = false;
    std::uint64_t round = 0;  // of a duplicate
    FeedbackRecord record;    // with its clicks, unless a duplicate
  };
  /// A clicked rank (from 0) or document.
  struct Click {
    std::int64_t rank = -1;
    std::string doc;  // if rank is −1
  };
  /// Reserves an impression for its feedback; commit() or release() has to follow unless the clicks are a
  /// duplicate. Throws ApiError for unknown or expired impressions and invalid or contradicting clicks.
  Claim claim(const std::string& id, std::span<const Click> clicks, Clock::time_point now = Clock::now());
  /// The record is durable: closes the impression.
  void commit(const FeedbackRecord& record);
  /// The write failed: the impression awaits feedback again.
  void release(FeedbackRecord record);

  /// Remembers an answer accepted by an earlier run.
  void remember(const FeedbackRecord& record);

  std::size_t open_count() const;
  std::uint64_t opened() const;

 private:
  struct Open {
    FeedbackRecord list;
    std::int64_t shown = 0;
    Clock::time_point since;
    bool claimed = false;
    std::list<std::string>::iterator age_position;
  };
  struct Answer {
    std::uint64_t round = 0;
    std::vector<std::uint8_t> clicks;
    std::vector<DocId> shown;
  };

  void expire(Clock::time_point now);
  [[noreturn]] void reject_unknown(const std::string& id) const;

  ImpressionLimits limits_;
  std::string prefix_;
  mutable std::mutex mutex_;
  std::uint64_t opened_ = 0;
  std::unordered_map<std::string, Open> open_;
  std::list<std::string> by_age_;
  std::unordered_map<std::string, Answer> answers_;
  std::deque<std::string> answers_by_age_;
};

}  // namespace olrank
