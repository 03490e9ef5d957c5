#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/feedback/feedback_record.h"

namespace olrank {

/// Shown lists that await feedback, and how they become records of the feedback log. Thread-safe. Errors of
/// the caller are ApiErrors; an IoError says that nothing was accepted.
class ImpressionStore {
 public:
  ImpressionStore() = default;
  virtual ~ImpressionStore() = default;
  ImpressionStore(const ImpressionStore&) = delete;
  ImpressionStore& operator=(const ImpressionStore&) = delete;

  /// A clicked rank (from 0) or document.
  struct Click {
    std::int64_t rank = -1;
    std::string doc;  // if rank is −1
  };
  /// Something that a user did with a shown document.
  struct Event {
    Click doc;
    std::string type = "click";
    std::int64_t at = 0;  // UTC in ms; 0: when it arrived
  };

  /// Stores a list, without clicks, whose first `shown` documents were shown, and returns its ID.
  virtual std::string open(FeedbackRecord list, std::int64_t shown) = 0;

  struct Outcome {
    bool duplicate = false;                // nothing is new
    bool late = false;                     // its window has closed: kept, but not learned
    std::optional<std::uint64_t> round{};  // of the record; none while a window is open
    std::vector<std::uint8_t> clicks{};    // of the list so far, unless late
  };
  /// Returns once the feedback is durable: the clicks of a list, or in a service with a window its events.
  virtual Outcome add(const std::string& id, std::span<const Click> clicks,
                      std::span<const Event> events) = 0;

  /// What has to be done now and then, such as logging the lists whose window has closed; returns their
  /// clicks.
  virtual std::vector<std::vector<std::uint8_t>> close_due() { return {}; }
  /// Before the end of the process.
  virtual void keep_open() {}

  struct Counts {
    std::uint64_t opened = 0;
    std::size_t open = 0;
    std::uint64_t dropped = 0;  // unanswered before their time, because newer ones needed the place
    std::size_t bytes = 0;      // of the heap; never above the limit
    std::size_t byte_limit = 0;
    std::uint64_t late = 0;  // events, since the start
  };
  virtual Counts counts() const = 0;
};

}  // namespace olrank
