#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
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
/// Throws ApiError 404 for an ID that no list has had.
[[noreturn]] void refuse_unknown_impression();
/// The impression of a log's line; empty if it has none.
std::string_view impression_of(std::string_view line);
/// The impressions of all of a log's lines.
std::unordered_set<std::string> logged_impressions(const FileLog& log);
/// The rank of a shown document. Calls `reject`, which throws, with a message for one that was not shown.
std::int64_t shown_rank(std::span<const DocId> shown, const ImpressionStore::Click& click,
                        const std::function<void(const std::string&)>& reject);
/// The clicks of each shown document; ApiError 422 for documents that were not shown.
std::vector<std::uint8_t> clicks_on(std::span<const DocId> shown,
                                    std::span<const ImpressionStore::Click> clicks);
template <class Clock>
std::int64_t milliseconds_of_clock() {
  return std::chrono::floor<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count();
}
/// Milliseconds since 1970.
inline std::int64_t utc_milliseconds() {
  return milliseconds_of_clock<std::chrono::system_clock>();
}
/// Returns the milliseconds of a clock that never goes back.
inline std::int64_t steady_milliseconds() {
  return milliseconds_of_clock<std::chrono::steady_clock>();
}

/// Writes without the lock, and returns what that throws.
template <class Write>
std::exception_ptr written_without(std::unique_lock<std::mutex>& lock, const Write& write) {
  lock.unlock();
  std::exception_ptr failure;
  try {
    write();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  return failure;
}

struct EventJournal;

/// A shown list that awaits feedback.
struct WaitingList {
  FeedbackRecord record;
  std::int64_t shown = 0;
  std::int64_t since = 0;  // in ms of the clock by which it expires
  bool claimed = false;    // its feedback is being written
  std::size_t bytes = 0;   // of the heap
  // These belong to a list with a window. pack() puts all of its record but the ID and the inputs into
  // bytes, which take less memory. The inputs stay where they are: a copy of them would leave holes.
  std::string packed{};
  std::vector<std::uint32_t> seen{};        // for each shown document a bit for each type of its events
  std::shared_ptr<EventJournal> journal{};  // that has the list; none: nowhere

  std::string_view id() const { return record.impression; }
  std::size_t heap() const;
  /// Throws ApiError 409 for a list that is claimed.
  void require_unclaimed() const;
  void pack();
  /// The record as it was before pack().
  FeedbackRecord unpacked() const;
};

/// An answered list.
struct GivenAnswer {
  std::uint64_t round = 0;
  std::int64_t since = 0;
  std::size_t id_size = 0;
  std::string packed{};  // its ID, then answer_bytes()
  std::size_t bytes = 0;

  static GivenAnswer of(const FeedbackRecord& record, std::int64_t now);
  std::string_view id() const { return std::string_view(packed).substr(0, id_size); }
  std::size_t heap() const { return heap_bytes(packed); }
};

/// Lists by their age and by their ID, and the memory that they take.
template <class Kind>
class ListsByAge {
 public:
  using List = Kind;
  using Place = typename std::list<List>::iterator;

  /// Returns the bytes that a list will take. Its clicks come with its feedback, which needs their memory.
  /// A tree's node has three pointers and a colour before its entry, a list's node two pointers.
  static std::size_t bytes_of(const List& list) {
    return heap_bytes(32 + sizeof(typename decltype(by_id_)::value_type)) + heap_bytes(16 + sizeof(List)) +
           list.heap();
  }
  /// Adds a list as the youngest. It stays at its place.
  Place add(List list) {
    list.bytes = bytes_of(list);
    bytes_ += list.bytes;
    const Place added = lists_.insert(lists_.end(), std::move(list));
    by_id_.emplace(added->id(), added);
    return added;
  }
  void erase(Place list) {
    bytes_ -= list->bytes;
    by_id_.erase(list->id());
    lists_.erase(list);
  }
  /// Returns end() for an unknown ID.
  Place find(std::string_view id) {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? lists_.end() : found->second;
  }
  /// Returns end() if there is none.
  Place oldest_unclaimed() {
    return std::find_if(lists_.begin(), lists_.end(), [](const List& list) { return !list.claimed; });
  }
  void sort_by_age() {
    lists_.sort([](const List& a, const List& b) { return a.since < b.since; });
  }

  Place begin() { return lists_.begin(); }
  Place end() { return lists_.end(); }
  std::size_t size() const { return lists_.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::list<List> lists_;                    // oldest first
  std::map<std::string_view, Place> by_id_;  // a tree, because nothing of it grows in steps
  std::size_t bytes_ = 0;
};
using OpenLists = ListsByAge<WaitingList>;

/// Lists in this process whose first feedback is their only one and goes to its own log. With a file they
/// outlive the process. Accepted answers are remembered, so that none counts twice. Lists and answers are
/// limited in number and, together, in memory; the oldest go first. Thread-safe.
class FirstAnswers : public ImpressionStore {
 public:
  struct Settings {
    ImpressionLimits limits{};
    std::string start;  // starts every ID and differs between runs of the service
    std::optional<ImpressionFile::Settings> file{};
  };
  /// Takes up what earlier runs have left in log and file. `log` outlives this.
  FirstAnswers(Settings settings, FileLog& log);

  /// Throws ApiError 413 for a list that exceeds the limit alone.
  std::string open(FeedbackRecord record, std::int64_t shown) override {
    return open(std::move(record), shown, steady_milliseconds());
  }
  std::string open(FeedbackRecord record, std::int64_t shown, std::int64_t now);
  Outcome add(const std::string& id, std::span<const Click> clicks, std::span<const Event>) override {
    return add(id, clicks, steady_milliseconds());
  }
  /// Throws ApiError for unknown or expired impressions and for invalid or contradicting clicks.
  Outcome add(const std::string& id, std::span<const Click> clicks, std::int64_t now);
  Counts counts() const override;

 private:
  void take_up();
  void expire(std::int64_t now);
  /// False if it finds no room.
  bool insert(OpenLists::List list);
  /// Forgets the oldest lists and answers until so many bytes fit.
  bool make_room(std::size_t bytes);
  void remember(GivenAnswer answer);
  [[noreturn]] void reject_unknown(const std::string& id) const;

  Settings settings_;
  FileLog& log_;
  std::unique_ptr<ImpressionFile> file_;
  mutable std::mutex mutex_;
  OpenLists open_;
  ListsByAge<GivenAnswer> answers_;
  std::uint64_t opened_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace olrank
