#include "serve/event_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "core/io/json.h"
#include "core/io/text_lines.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "logs/log_text.h"
#include "serve/api_error.h"
#include "serve/arms.h"
#include "serve/own_file.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kJournalBytes = 64'000'000;
constexpr NumberedFiles kJournals{"events-", ".jsonl"};

std::optional<double> number_of(std::string_view text) {
  double number = 0.0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Whether a line has events as events_body() writes those of a list.
bool has_events(std::string_view line) {
  const nlohmann::ordered_json told = try_parse_json(line);
  const auto events = told.find("events");
  return events != told.end() && events->is_array() &&
         std::all_of(events->begin(), events->end(), [](const auto& event) {
           return event.is_array() && event.size() == 3 && event[0].is_number_integer() &&
                  event[1].is_string();
         });
}

/// A list as a line of a journal, without its round.
std::string open_body(const OpenLists::List& list) {
  FeedbackRecord record = list.unpacked();
  record.clicks.assign(list.shown, 0);
  return record_body(record);
}

}  // namespace

EventTypes EventTypes::parse(std::string_view text) {
  EventTypes types{{}, {}};
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const std::size_t equals = item.find('=');
    const std::string name(item.substr(0, equals));
    const auto weight =
        equals == std::string_view::npos ? std::nullopt : number_of(item.substr(equals + 1));
    if (!is_plain_name(name) || !weight)
      throw_error<InvalidArgument>("--events: '{}' must be TYPE=WEIGHT, as in click=1,cart=3.", item);
    if (!(*weight >= 0.0 && *weight <= 1e6))
      throw_error<InvalidArgument>("--events {}: The weight must be from 0 to 1000000, not {}.", name,
                                   item.substr(equals + 1));
    if (types.index(name) >= 0)
      throw_error<InvalidArgument>("--events: The type '{}' appears twice.", name);
    types.names.push_back(name);
    types.weights.push_back(*weight);
  }
  if (types.index("click") < 0) {
    types.names.emplace_back("click");
    types.weights.push_back(1.0);
  }
  if (types.names.size() > kMost)
    throw_error<InvalidArgument>("--events: {} types are given; the limit is {}.", types.names.size(),
                                 kMost);
  return types;
}

std::int64_t EventTypes::index(std::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : found - names.begin();
}

void EventTypes::require_all(const std::map<std::string, std::int64_t>& events,
                             std::string_view place) const {
  std::string unknown;
  for (const auto& [name, count] : events) {
    if (index(name) < 0) unknown += fmt::format("{}{} ({})", unknown.empty() ? "" : ", ", name, count);
  }
  if (unknown.empty()) return;
  throw_error<InvalidArgument>(
      "{}: Lists whose window is open have acknowledged events of types that this start does not name: {}. "
      "Give --window and --events as before; TYPE=0 keeps a type out of the rewards.",
      place, unknown);
}

std::vector<std::pair<std::int64_t, std::int64_t>> places_of(
    const EventTypes& types, std::span<const DocId> shown, std::span<const ImpressionStore::Event> events) {
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const ImpressionStore::Event& event = events[i];
    const char* field = "type";
    const auto reject = [&](const std::string& message) {
      throw ApiError(422, fmt::format("events[{}].{}", i, field), message);
    };
    const std::int64_t type = types.index(event.type);
    if (type < 0)
      reject(fmt::format("Unknown type '{}'; this service has {} (--events).", event.type,
                         fmt::join(types.names, ", ")));
    field = event.doc.rank < 0 ? "id" : "rank";
    places.emplace_back(shown_rank(shown, event.doc, reject), type);
  }
  return places;
}

std::string events_body(const std::string& id, std::span<const ImpressionStore::Event> events,
                        std::span<const std::pair<std::int64_t, std::int64_t>> places, std::int64_t now) {
  std::string body = fmt::format(",\"impression\":{},\"events\":[", json_string(id));
  for (std::size_t i = 0; i < events.size(); ++i) {
    const ImpressionStore::Click& doc = events[i].doc;
    const std::int64_t rank = places.empty() ? doc.rank : places[i].first;
    body += fmt::format("{}[{},{},{}]", i > 0 ? "," : "",
                        rank >= 0 ? fmt::format("{}", rank) : json_string(doc.doc),
                        json_string(events[i].type), events[i].at > 0 ? events[i].at : now);
  }
  return body + "]";
}

FeedbackRecord finished_record(const EventTypes& types, FeedbackRecord list,
                               std::span<const std::uint32_t> seen) {
  std::vector<double> rewards(seen.size(), 0.0);
  bool differs = false;  // rewards from clicks
  list.clicks.assign(seen.size(), 0);
  for (std::size_t rank = 0; rank < seen.size(); ++rank) {
    for (std::size_t type = 0; type < types.names.size(); ++type) {
      if ((seen[rank] >> type & 1U) != 0) rewards[rank] += types.weights[type];
    }
    list.clicks[rank] = rewards[rank] > 0.0 ? 1 : 0;
    differs = differs || rewards[rank] != static_cast<double>(list.clicks[rank]);
  }
  if (differs) list.rewards = std::move(rewards);
  return list;
}

void require_late(const EventTypes& types, const std::string& id,
                  std::span<const ImpressionStore::Event> events) {
  if (!is_impression_id(id)) refuse_unknown_impression();
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (types.index(events[i].type) < 0)
      throw ApiError(422, fmt::format("events[{}].type", i),
                     fmt::format("Unknown type '{}'.", events[i].type));
  }
}

EventWindow::EventWindow(Settings settings, std::string prefix, FileLog& log)
    : settings_(std::move(settings)), prefix_(std::move(prefix)), log_(log) {
  if (!settings_.only_counts)
    log_.say_of_disk({"Lists whose window has closed wait for the disk; ranking continues.",
                      "Lists whose window has closed are logged again."});
  take_up();
}

std::chrono::milliseconds EventWindow::age_of_journals(const fs::path& folder) {
  std::int64_t age = 0;
  for (const fs::path& file : kJournals.in(folder)) {
    TextLines journal = TextLines::of_stream(log_stream(std::make_shared<const LogText>(file)),
                                             file.string(), std::size_t{1} << 30);
    bool found = false;
    FeedbackRecord list;
    while (!found && journal.next())
      found = !parse_record(journal.line(), list);  // other lines have the events of a list
    if (found) age = std::max(age, utc_milliseconds() - list.time);
  }
  return std::chrono::milliseconds(age);
}

void EventWindow::set_journals_aside(const fs::path& folder) {
  kJournals.set_aside(folder);
}

void EventWindow::take_up() {
  if (settings_.starts_over) set_journals_aside(settings_.folder);
  std::unordered_map<std::string, std::vector<std::string>> events;  // of each list, as lines
  std::vector<std::pair<FeedbackRecord, std::shared_ptr<EventJournal>>> lists;
  for (const fs::path& file : kJournals.in(settings_.folder)) {
    const std::shared_ptr<EventJournal> journal = open_journal(file);
    FileLog::Reader reader(journal->log, 0);
    std::int64_t place = 0;
    for (std::string_view line; reader.next(line);) {
      ++place;
      if (line.find(",\"events\":") != std::string_view::npos &&
          line.find(",\"shown\":") == std::string_view::npos) {
        if (!has_events(line)) {
          throw DataError(file.string(), place, 1,
                          "The line's events are not those of a window: restore the journal from a backup, "
                          "or move it elsewhere to start without its lists.");
        }
        events[std::string(impression_of(line))].emplace_back(line);
        continue;
      }
      FeedbackRecord& list = lists.emplace_back(FeedbackRecord(), journal).first;
      if (const auto failure = parse_record(line, list))
        throw DataError(file.string(), place, failure->column, failure->message);
      if (list.impression != impression_of(line))
        throw DataError(file.string(), place, 1, "No service writes such an impression: remove the line.");
    }
  }
  const auto written = lists.empty() ? std::unordered_set<std::string>() : logged_impressions(log_);
  const std::int64_t now = settings_.utc();
  const std::int64_t steady = settings_.steady();
  std::map<std::string, std::int64_t> counts;  // events of each type
  for (auto& [list, journal] : lists) {
    const std::string id = list.impression;
    if (written.contains(id) || open_.find(id) != open_.end()) continue;
    const std::int64_t shown = list.shown();
    const std::int64_t age = std::max<std::int64_t>(now - list.time, 0);
    const OpenLists::Place added = add(std::move(list), shown, steady - age);
    added->journal = journal;
    ++journal->open;
    for (const std::string& line : events[id]) {
      const nlohmann::json told = parse_json(line);
      for (const auto& event : told.at("events")) {
        const auto name = event.at(1).get<std::string>();
        const std::int64_t type = settings_.types.index(name);
        const auto rank = event.at(0).get<std::int64_t>();
        ++counts[name];
        if (type >= 0 && rank >= 0 && rank < shown) added->seen[rank] |= std::uint32_t{1} << type;
      }
    }
  }
  if (!settings_.only_counts) settings_.types.require_all(counts, settings_.folder.string());
  open_.sort_by_age();
  remove_old_journals();
}

OpenLists::Place EventWindow::add(FeedbackRecord list, std::int64_t shown, std::int64_t since) {
  OpenLists::List open{std::move(list), shown, since};
  open.seen.assign(shown, 0);
  open.pack();
  return open_.add(std::move(open));
}

void EventWindow::erase(OpenLists::Place list) {
  if (list->journal) --list->journal->open;
  open_.erase(list);
}

/// Goes in order, as later journals may have events of lists that earlier ones have.
void EventWindow::remove_old_journals() {
  while (journals_.size() > 1 && journals_.front()->open == 0) {
    std::error_code ignored;
    fs::remove(journals_.front()->log.path(), ignored);
    journals_.pop_front();
  }
}

std::shared_ptr<EventJournal> EventWindow::open_journal(const fs::path& file) {
  journals_.emplace_back(new EventJournal{FileLog(file, 0)})->log.guard_writes(settings_.guard);
  return journals_.back();
}

std::shared_ptr<EventJournal> EventWindow::current_journal() {
  if (journals_.empty()) return open_journal(kJournals.path(settings_.folder, 1));
  const FileLog& last = journals_.back()->log;
  if (last.bytes() < kJournalBytes) return journals_.back();
  return open_journal(kJournals.path(settings_.folder, kJournals.number_of(last.path()) + 1));
}

std::string EventWindow::open(FeedbackRecord list, std::int64_t shown) {
  const std::lock_guard lock(mutex_);
  list.impression = fmt::format("{}-{}", prefix_, ++opened_);
  return add(std::move(list), shown, settings_.steady())->record.impression;
}

bool EventWindow::is_due(const OpenLists::List& list, std::int64_t now) const {
  return now - list.since >= std::chrono::milliseconds(settings_.window).count();
}

EventWindow::Outcome EventWindow::add(const std::string& id, std::span<const Click>,
                                      std::span<const Event> events) {
  std::unique_lock lock(mutex_);
  const OpenLists::Place list = open_.find(id);
  if (list == open_.end() || (!list->claimed && is_due(*list, settings_.steady())))
    return lock.unlock(), add_late(id, events);
  list->require_unclaimed();
  const std::vector<DocId> docs = list->unpacked().docs;
  const auto places = places_of(settings_.types, std::span(docs).first(list->shown), events);
  bool is_new = false;
  std::vector<std::uint32_t> seen = list->seen;
  for (const auto& [rank, type] : places) {
    const std::uint32_t bit = std::uint32_t{1} << type;
    is_new = is_new || (seen[rank] & bit) == 0;
    seen[rank] |= bit;
  }
  if (is_new) {
    std::vector<std::string> bodies;
    const bool is_first = !list->journal;
    const std::shared_ptr<EventJournal> journal = current_journal();
    if (is_first) {
      bodies.push_back(open_body(*list));
      list->journal = journal;
      ++journal->open;
    }
    bodies.push_back(events_body(id, events, places, settings_.utc()));
    list->claimed = true;
    const auto failure = written_without(lock, [&] { journal->log.append_all(std::move(bodies)); });
    list->claimed = false;
    if (failure) {
      if (is_first) {
        list->journal = nullptr;
        --journal->open;
      }
      std::rethrow_exception(failure);
    }
    list->seen = std::move(seen);
  }
  return {!is_new && !events.empty(), false, {}, finished_record(settings_.types, {}, list->seen).clicks};
}

EventWindow::Outcome EventWindow::add_late(const std::string& id, std::span<const Event> events) {
  require_late(settings_.types, id, events);
  if (events.empty()) return {true, true};
  {
    const std::lock_guard lock(mutex_);
    if (!late_log_) {
      late_log_ = std::make_unique<FileLog>(settings_.folder / "late.jsonl", 0);
      late_log_->guard_writes(settings_.guard);
    }
  }
  late_log_->append_all({events_body(id, events, {}, settings_.utc())});
  const std::lock_guard lock(mutex_);
  late_ += events.size();
  return {false, true};
}

void EventWindow::warn_of_limits(std::int64_t oldest_age) {
  const ImpressionLimits& limits = settings_.limits;
  const auto lists = static_cast<double>(open_.size());
  const auto bytes = static_cast<double>(open_.bytes());
  const double taken =
      std::max(lists / static_cast<double>(limits.open), bytes / static_cast<double>(limits.bytes));
  const double windows = static_cast<double>(std::chrono::milliseconds(settings_.window).count()) /
                         static_cast<double>(oldest_age);  // of so many times that age
  constexpr double kTold = 0.25;  // a smaller share may be of a moment with many requests
  const bool is_early = taken > 1.0 && windows > 1.0;
  const bool is_foreseen = taken > kTold && taken * windows > 1.0 && !foretold_;
  if (is_early ? closed_early_ + 1 < next_warning_ : !is_foreseen) return;
  foretold_ = true;
  if (is_early) next_warning_ = std::max(next_warning_, closed_early_ + 1) * 10;
  const double seconds = static_cast<double>(oldest_age) / 1000.0;
  const std::string what =
      is_early ? fmt::format(
                     "Lists are logged after {:.3g} s of the {} s of --window, because newer ones need "
                     "the place: later events are not learned.",
                     seconds, settings_.window.count())
               : fmt::format(
                     "If lists stay as many as now, they will be logged before the {} s of --window have "
                     "ended, and later events will not be learned.",
                     settings_.window.count());
  log_warning(
      "{} At {:.3g} lists a second of {} each, the window needs --max-impressions {:.0f} and "
      "--max-impression-memory {}, and has {} and {}: raise them, or shorten the window.",
      what, lists / seconds, readable_bytes(bytes / lists), std::ceil(lists * windows),
      readable_bytes(bytes * windows), limits.open, readable_bytes(static_cast<double>(limits.bytes)));
}

std::vector<ImpressionStore::Closed> EventWindow::close_due() {
  std::unique_lock lock(mutex_);
  const std::int64_t now = settings_.steady();
  std::vector<OpenLists::Place> due;
  std::vector<std::string> bodies;
  std::vector<Closed> closed;
  std::size_t left = open_.size();
  std::size_t bytes = open_.bytes();
  std::uint64_t early = 0;
  if (left > 0) warn_of_limits(std::max<std::int64_t>(now - open_.begin()->since, 1));
  for (auto list = open_.begin(); list != open_.end(); ++list) {
    const bool is_early = left > settings_.limits.open || bytes > settings_.limits.bytes;
    if (!is_early && !is_due(*list, now)) break;
    if (list->claimed) continue;
    early += is_due(*list, now) ? 0 : 1;
    --left;
    bytes -= list->bytes;
    list->claimed = true;
    const FeedbackRecord record = finished_record(settings_.types, list->unpacked(), list->seen);
    bodies.push_back(record_body(record));
    closed.push_back({record.arm, record.clicks});
    due.push_back(list);
  }
  if (due.empty()) return closed;
  const auto failure = written_without(lock, [&] { log_.append_all(std::move(bodies)); });
  for (const OpenLists::Place& list : due) {
    list->claimed = false;
    if (!failure) erase(list);
  }
  if (failure) std::rethrow_exception(failure);
  closed_early_ += early;
  remove_old_journals();
  return closed;
}

void EventWindow::keep_open() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> bodies;
  std::vector<OpenLists::Place> kept;
  for (auto list = open_.begin(); list != open_.end(); ++list) {
    if (list->journal || list->claimed) continue;
    bodies.push_back(open_body(*list));
    kept.push_back(list);
  }
  if (kept.empty()) return;
  const std::shared_ptr<EventJournal> journal = current_journal();
  journal->log.say_of_disk({});
  try {
    journal->log.append_all(std::move(bodies));
  } catch (const StateLost&) {
    throw;
  } catch (const IoError& error) {
    throw_error<IoError>("{} {} without events, whose window was open, could not be kept.", error.what(),
                         counted(kept.size(), "list"));
  }
  for (const OpenLists::Place& list : kept) list->journal = journal;
  journal->open += kept.size();
}

ImpressionStore::Counts EventWindow::counts() const {
  const std::lock_guard lock(mutex_);
  return {opened_, open_.size(), closed_early_, open_.bytes(), settings_.limits.bytes,
          late_,   closed_early_};
}

}  // namespace olrank
