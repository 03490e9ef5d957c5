#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/feedback/feedback_record.h"
#include "core/interface.h"
#include "core/io/atomic_file.h"

namespace olrank {

/// A shown list that awaits feedback.
struct OpenList {
  FeedbackRecord record;  // without clicks
  std::int64_t shown = 0;
};

/// The lists of a service that await feedback, in files beside its log, so that the next start takes their
/// feedback, too. Lists are written without a flush: a killed process loses none of them, a machine that
/// loses its power perhaps the last seconds. Files are removed once all of their lists have expired.
/// Thread-safe.
class ImpressionFile {
 public:
  struct Settings {
    std::filesystem::path folder;
    std::int64_t age_ms = 3'600'000;  // a list expires after this
    std::size_t bytes = 256'000'000;  // of all files; the oldest go first
    std::function<void()> guard{};    // throws if nothing may be written
    bool starts_over = false;         // sets the files of earlier runs aside
  };
  /// Keeps the lists of a state folder from being taken up.
  static void set_aside(const std::filesystem::path& folder);
  /// Lists have their time in `utc`, ms since 1970; files grow old by `steady`, a clock that never goes
  /// back.
  ImpressionFile(Settings settings, std::int64_t utc, std::int64_t steady);
  /// The lists of earlier runs that have not expired, oldest first.
  std::vector<OpenList> take_up(std::int64_t utc) const;

  /// All of a list but its ID.
  static std::string encoded(const FeedbackRecord& list, std::int64_t shown);
  /// Adds the ID to that.
  static std::string named(std::string_view id, std::string_view encoded);
  /// Reads such bytes; returns nothing if they are no list.
  static std::optional<OpenList> decoded(std::string_view bytes);
  /// Keeps a list. Where that fails, it says so once in the log: the list is open all the same.
  void append(std::string_view id, std::string_view encoded, std::int64_t steady);

 private:
  struct Segment {
    std::filesystem::path path;
    std::int64_t latest = 0;  // when its last list came, in steady time
    std::size_t bytes = 0;
  };
  void remove_old(std::int64_t steady);
  void begin_segment(std::int64_t steady);

  Settings settings_;
  std::mutex mutex_;
  std::deque<Segment> segments_;  // the last one is written to
  std::uint64_t next_number_ = 1;
  std::int64_t begun_ = 0;          // when the last segment was
  std::optional<Descriptor> file_;  // of the last segment
  bool failing_ = false;
};

/// Shown lists that await feedback, and how they become records of the feedback log. Thread-safe. Errors of
/// the caller are ApiErrors; an IoError says that nothing was accepted.
class ImpressionStore : public Interface {
 public:
  /// A clicked rank (from 0) or document.
  struct Click {
    static constexpr std::string_view kEither = "clicks";
    std::int64_t rank = -1;
    std::string doc;                  // if rank is −1
    std::string_view list = kEither;  // the field of the request, which says whether integers are ranks
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
    std::string arm{};                     // of a record that is new
  };
  /// Returns once the feedback is durable: the clicks of a list, or in a service with a window its events.
  virtual Outcome add(const std::string& id, std::span<const Click> clicks,
                      std::span<const Event> events) = 0;

  struct Closed {
    std::string arm;  // empty without arms
    std::vector<std::uint8_t> clicks;
  };
  /// Does what has to be done now and then, such as logging the lists whose window has closed, which it
  /// returns.
  virtual std::vector<Closed> close_due() { return {}; }
  /// It is called before the end of the process.
  virtual void keep_open() {}

  struct Counts {
    std::uint64_t opened = 0;
    std::size_t open = 0;
    std::uint64_t dropped = 0;  // unanswered before their time, because newer ones needed the place
    std::size_t bytes = 0;      // of the heap; never above the limit
    std::size_t byte_limit = 0;
    std::uint64_t late = 0;   // events, since the start
    std::uint64_t early = 0;  // lists logged before the end of their window, as newer ones needed the place
  };
  virtual Counts counts() const = 0;
};

/// The store of a process that only ranks.
class NoLists final : public ImpressionStore {
 public:
  std::string open(FeedbackRecord /*list*/, std::int64_t /*shown*/) override { return {}; }
  Outcome add(const std::string& /*id*/, std::span<const Click> /*clicks*/,
              std::span<const Event> /*events*/) override {
    return {};
  }
  Counts counts() const override { return {}; }
};

/// An answered list needs these again: its clicks and the documents that had them.
std::string answer_bytes(const FeedbackRecord& record);
/// Returns what a repeated answer gets of such bytes; nothing if damaged. Throws ApiError for other clicks.
std::optional<ImpressionStore::Outcome> repeated_answer(std::string_view bytes, std::uint64_t round,
                                                        std::span<const ImpressionStore::Click> clicks);

}  // namespace olrank
