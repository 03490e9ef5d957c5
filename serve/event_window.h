#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/feedback/feedback_record.h"
#include "serve/file_log.h"
#include "serve/open_lists.h"

namespace olrank {

/// These tell what users do with a document, and what it is worth: "click=1,cart=3,purchase=10".
struct EventTypes {
  static constexpr std::size_t kMost = 32;

  std::vector<std::string> names = {"click"};
  std::vector<double> weights = {1.0};

  /// Throws InvalidArgument. Without `click` there is one of weight 1.
  static EventTypes parse(std::string_view text);
  /// −1 for an unknown type.
  std::int64_t index(std::string_view name) const;
  /// Throws InvalidArgument if the open lists of a place have so many events of types that these lack.
  void require_all(const std::map<std::string, std::int64_t>& events, std::string_view place) const;
};

/// The (rank, type) of each event. ApiError 422 for unknown types and documents that were not shown.
std::vector<std::pair<std::int64_t, std::int64_t>> places_of(
    const EventTypes& types, std::span<const DocId> shown, std::span<const ImpressionStore::Event> events);
/// The record of a list whose window has closed: `seen` has a bit for each type of event of each shown
/// document.
FeedbackRecord finished_record(const EventTypes& types, FeedbackRecord list,
                               std::span<const std::uint32_t> seen);
/// Events as a line of a journal, without its round. Empty `places`: as they were given.
std::string events_body(const std::string& id, std::span<const ImpressionStore::Event> events,
                        std::span<const std::pair<std::int64_t, std::int64_t>> places, std::int64_t now);
/// ApiError for events of a list that is not open, unless they came too late.
void require_late(const EventTypes& types, const std::string& id,
                  std::span<const ImpressionStore::Event> events);

/// A file of events, with lists that have some.
struct EventJournal {
  FileLog log;
  std::size_t open = 0;  // lists in it whose window is open
};

/// Shown lists that collect events until their window closes, and then become records of the feedback log,
/// whether they have events or not. An event is acknowledged once it is on disk, in a journal next to the
/// log, from which the next start takes up the lists whose window was open. Each event of a document counts
/// once. Events that come later are kept, in late.jsonl, and counted, but not learned. Thread-safe.
class EventWindow : public ImpressionStore {
 public:
  struct Settings {
    std::chrono::seconds window{0};
    EventTypes types;
    std::filesystem::path folder;
    ImpressionLimits limits;  // of lists whose window is open: the oldest close early
    std::function<void()> guard;
    bool starts_over = false;  // sets journals of earlier runs aside
    bool only_counts = false;  // what earlier runs have left open, whatever the types of its events
    // The second times windows, as it never goes back; the first tells the age of a list after a restart.
    std::function<std::int64_t()> utc = [] { return utc_milliseconds(); };
    std::function<std::int64_t()> steady = steady_milliseconds;
  };
  /// Takes up the lists of earlier runs that are not in the log yet. `prefix` starts the ID of each list.
  /// Throws InvalidArgument if they have events of other types: those were acknowledged, too.
  EventWindow(Settings settings, std::string prefix, FileLog& log);

  /// Returns the age of the first list in the journals of a state folder, of which a start takes up those
  /// that the log lacks; 0 without one.
  static std::chrono::milliseconds age_of_journals(const std::filesystem::path& folder);
  /// Keeps the journals of a state folder from being taken up.
  static void set_journals_aside(const std::filesystem::path& folder);

  std::string open(FeedbackRecord list, std::int64_t shown) override;
  Outcome add(const std::string& id, std::span<const Click>, std::span<const Event> events) override;
  std::vector<Closed> close_due() override;
  /// Keeps lists without events for the next start, too.
  void keep_open() override;
  Counts counts() const override;

 private:
  void take_up();
  OpenLists::Place add(FeedbackRecord list, std::int64_t shown, std::int64_t since);
  void erase(OpenLists::Place list);
  /// The newest journal, or a new one if that is large.
  std::shared_ptr<EventJournal> current_journal();
  std::shared_ptr<EventJournal> open_journal(const std::filesystem::path& file);
  void remove_old_journals();
  bool is_due(const OpenLists::List& list, std::int64_t now) const;
  /// Says what the window needs at the rate of the open lists, before lists close early and as they do.
  void warn_of_limits(std::int64_t oldest_age);
  Outcome add_late(const std::string& id, std::span<const Event> events);

  Settings settings_;
  std::string prefix_;
  FileLog& log_;
  mutable std::mutex mutex_;
  OpenLists open_;
  std::deque<std::shared_ptr<EventJournal>> journals_;
  std::unique_ptr<FileLog> late_log_;
  std::uint64_t opened_ = 0;
  std::uint64_t closed_early_ = 0;
  std::uint64_t next_warning_ = 1;  // lists closed early
  bool foretold_ = false;           // that lists would close early
  std::uint64_t late_ = 0;
};

}  // namespace olrank
