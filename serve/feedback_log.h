#pragma once

#include <cstdint>
#include <optional>

namespace olrank {

/// What the service says about the log of accepted feedback: a file of its own, or a stream that several
/// processes share. What is appended comes from the service's ImpressionStore. Thread-safe.
class FeedbackLog {
 public:
  virtual ~FeedbackLog() = default;

  virtual std::uint64_t rounds() const = 0;  // durable records
  virtual std::int64_t bytes() const = 0;    // 0 where that is not known
  /// Whether a disk fails, so that no more feedback is logged at the moment.
  virtual bool is_failing() const = 0;
  /// Of a learner that archives a shared log: the records that it has.
  virtual std::optional<std::uint64_t> archived() const { return std::nullopt; }
  /// Whether the log is on a server that cannot be reached.
  virtual bool is_away() const { return false; }
};

}  // namespace olrank
