#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/feedback/feedback_record.h"
#include "serve/file_log.h"
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
  using Click = ImpressionStore::Click;
  using Counts = ImpressionStore::Counts;

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

  Counts counts() const;

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

/// Lists in this process, whose clicks go to its own log. With a file they outlive the process.
class LoggedImpressions : public ImpressionStore {
 public:
  struct Settings {
    ImpressionLimits limits{};
    std::string start;  // starts every ID and differs between runs of the service
    std::optional<ImpressionFile::Settings> file{};
  };
  /// Takes up what earlier runs have left in log and file. `log` outlives this.
  LoggedImpressions(Settings settings, FileLog& log);

  std::string open(FeedbackRecord list, std::int64_t shown) override;
  Outcome add(const std::string& id, std::span<const Click> clicks, std::span<const Event> events) override;
  Counts counts() const override { return impressions_.counts(); }

 private:
  void reopen_lists();

  FileLog& log_;
  std::unique_ptr<ImpressionFile> file_;
  Impressions impressions_;
};

/// The clicks of each shown document; ApiError 422 for documents that were not shown.
std::vector<std::uint8_t> clicks_on(std::span<const DocId> shown,
                                    std::span<const ImpressionStore::Click> clicks);
/// Says that other clicks were accepted for a list.
[[noreturn]] void refuse_other_clicks(std::uint64_t round);
/// Milliseconds since 1970.
std::int64_t utc_milliseconds();

}  // namespace olrank
