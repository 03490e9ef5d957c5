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
  std::size_t open = 10'000;       // lists that wait for feedback, and answered ones that are remembered
  std::chrono::seconds age{3600};  // after which an open one has expired
};

/// The lists that were shown and may still be answered, and the answers that were accepted, so that none
/// counts twice. Any thread.
class Impressions {
 public:
  using Clock = std::chrono::steady_clock;

  /// `prefix` begins every id and differs from start to start of the service.
  Impressions(const ImpressionLimits& limits, std::string prefix);

  /// Keeps a shown list, whose clicks are empty, and returns its id. `shown` of its documents were seen.
  std::string open(FeedbackRecord list, std::int64_t shown, Clock::time_point now = Clock::now());
  /// What to do with clicks for an impression: either the record to write, after which settle() or reopen()
  /// has to follow, or the acceptance that they repeat. Throws ApiError for all else.
  struct Claim {
    bool duplicate = false;
    std::uint64_t round = 0;  // of a duplicate
    FeedbackRecord record;    // with its clicks, otherwise
  };
  /// A click is a rank from 0 or a document.
  struct Click {
    std::int64_t rank = -1;
    std::string doc;  // where rank is −1
  };
  Claim claim(const std::string& id, std::span<const Click> clicks, Clock::time_point now = Clock::now());
  /// The clicks are durable as this round.
  void settle(FeedbackRecord record);
  /// They are not; the impression waits on.
  void reopen(FeedbackRecord record);

  /// An acceptance of an earlier start.
  void remember(const FeedbackRecord& record);

  std::size_t open_count() const;
  std::uint64_t opened() const;

 private:
  struct Open {
    FeedbackRecord list;
    std::int64_t shown = 0;
    Clock::time_point since;
    bool claimed = false;
    std::list<std::string>::iterator place;
  };
  struct Answer {
    std::uint64_t round = 0;
    std::vector<std::uint8_t> clicks;
    std::vector<DocId> shown;
  };

  void expire(Clock::time_point now);
  void note_answer(const std::string& id, Answer answer);
  [[noreturn]] void refuse_unknown(const std::string& id) const;

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
