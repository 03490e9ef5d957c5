#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "logs/feedback_record.h"
#include "serve/impression_file.h"

namespace olrank {

struct ImpressionLimits {
  std::size_t open = 10'000;        // lists awaiting feedback; as many answered ones are remembered
  std::chrono::seconds age{3600};   // an open impression expires after this
  std::size_t bytes = 256'000'000;  // memory of both together
};

/// Whether an ID may be one of a service: 16 hexadecimal digits, a hyphen and a number.
bool is_impression_id(std::string_view id);
/// The impression of a log's line; empty if it has none.
std::string_view impression_of(std::string_view line);

/// Shown lists that still await feedback, and recently accepted answers, so that none counts twice. Both
/// are limited in number and, together, in memory; the oldest go first. Thread-safe.
class Impressions {
 public:
  using Clock = std::chrono::steady_clock;

  /// `prefix` starts every ID and differs between runs of the service.
  Impressions(const ImpressionLimits& limits, std::string prefix);
  /// Also keeps lists for the next start from now on. `file` outlives this.
  void keep_in(ImpressionFile& file) { file_ = &file; }

  /// Stores a list, without clicks, and returns its ID. Its first `shown` documents were shown. Throws
  /// ApiError 413 for a list that exceeds the limit alone.
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
  /// Something that a user did with a shown document.
  struct Event {
    Click doc;
    std::string type = "click";
    std::int64_t at = 0;  // UTC in ms; 0: when it arrived
  };
  /// Reserves an impression for its feedback; commit() or release() has to follow unless the clicks are a
  /// duplicate. Throws ApiError for unknown or expired impressions and invalid or contradicting clicks.
  Claim claim(const std::string& id, std::span<const Click> clicks, Clock::time_point now = Clock::now());
  /// The record is durable: closes the impression.
  void commit(const FeedbackRecord& record, Clock::time_point now = Clock::now());
  /// The write failed: the impression awaits feedback again.
  void release(FeedbackRecord record);

  /// Takes up a list that an earlier run has opened.
  void reopen(OpenList list, std::int64_t now_ms, Clock::time_point now = Clock::now());
  /// Remembers an answer accepted by an earlier run.
  void remember(const FeedbackRecord& record, Clock::time_point now = Clock::now());

  struct Counts {
    std::uint64_t opened = 0;
    std::size_t open = 0;
    std::uint64_t dropped = 0;  // unanswered before their time, because newer ones needed the place
    std::size_t bytes = 0;      // of the heap: open lists and answers; never above the limit
  };
  Counts counts() const;
  std::size_t byte_limit() const { return limits_.bytes; }

 private:
  using Ages = std::list<const std::string*>;  // the keys of a map, oldest first
  struct Open {
    FeedbackRecord list;
    std::int64_t shown = 0;
    Clock::time_point since;
    std::size_t bytes = 0;  // also while its record is being written
    bool claimed = false;
    Ages::iterator age_position{};
  };
  struct Answer {
    std::uint64_t round = 0;
    std::vector<std::uint8_t> clicks;
    std::vector<DocId> shown;
    Clock::time_point since;
    std::size_t bytes = 0;
    Ages::iterator age_position{};
  };
  // Trees, because all of their memory is in their entries: nothing grows in steps.
  using OpenMap = std::map<std::string, Open>;
  using AnswerMap = std::map<std::string, Answer>;

  void expire(Clock::time_point now);
  static std::size_t bytes_of(const std::string& id, const FeedbackRecord& list, std::int64_t shown);
  /// False if it finds no room.
  bool insert(std::string id, FeedbackRecord list, std::int64_t shown, std::size_t bytes,
              Clock::time_point since);
  OpenMap::iterator oldest_unclaimed();
  /// Forgets the oldest lists and answers until so many bytes fit.
  bool make_room(std::size_t bytes);
  void erase(OpenMap::iterator open);
  void erase(AnswerMap::iterator answer);
  void add_answer(const FeedbackRecord& record, Clock::time_point now);
  [[noreturn]] void reject_unknown(const std::string& id) const;

  ImpressionLimits limits_;
  std::string prefix_;
  ImpressionFile* file_ = nullptr;
  mutable std::mutex mutex_;
  std::uint64_t opened_ = 0;
  std::uint64_t dropped_ = 0;
  std::size_t bytes_ = 0;
  OpenMap open_;
  Ages open_by_age_;
  AnswerMap answers_;
  Ages answers_by_age_;
};

}  // namespace olrank
