#include "serve/event_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/io/json.h"
#include "serve/api_error.h"
#include "serve/file_log.h"
#include "serve/impressions.h"
#include "serve/own_file.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSegmentBytes = 64'000'000;
constexpr NumberedFiles kJournals{"events-", ".jsonl"};

std::optional<double> number_of(std::string_view text) {
  double number = 0.0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

EventTypes EventTypes::parse(std::string_view text) {
  EventTypes types{{}, {}};
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const std::size_t equals = item.find('=');
    const std::string name(item.substr(0, equals));
    const bool is_name =
        !name.empty() && name.size() <= 40 &&
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
            std::string::npos;
    const auto weight =
        equals == std::string_view::npos ? std::nullopt : number_of(item.substr(equals + 1));
    if (!is_name || !weight)
      throw InvalidArgument(fmt::format("--events: '{}' must be TYPE=WEIGHT, as in click=1,cart=3.", item));
    if (!(*weight >= 0.0 && *weight <= 1e6))
      throw InvalidArgument(fmt::format("--events {}: The weight must be from 0 to 1000000, not {}.", name,
                                        item.substr(equals + 1)));
    if (types.index(name) >= 0)
      throw InvalidArgument(fmt::format("--events: The type '{}' appears twice.", name));
    types.names.push_back(name);
    types.weights.push_back(*weight);
  }
  if (types.index("click") < 0) {
    types.names.emplace_back("click");
    types.weights.push_back(1.0);
  }
  if (types.names.size() > kMost)
    throw InvalidArgument(
        fmt::format("--events: {} types are given; the limit is {}.", types.names.size(), kMost));
  return types;
}

std::int64_t EventTypes::index(std::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : found - names.begin();
}

std::vector<std::pair<std::int64_t, std::int64_t>> places_of(
    const EventTypes& types, std::span<const DocId> shown, std::span<const ImpressionStore::Event> events) {
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto reject = [&](std::string_view field, const std::string& message) {
      throw ApiError(422, fmt::format("events[{}].{}", i, field), message);
    };
    const ImpressionStore::Event& event = events[i];
    const std::int64_t type = types.index(event.type);
    if (type < 0)
      reject("type", fmt::format("Unknown type '{}'; this service has {} (--events).", event.type,
                                 fmt::join(types.names, ", ")));
    std::int64_t rank = event.doc.rank;
    if (rank < 0) {
      const auto found = std::find_if(shown.begin(), shown.end(),
                                      [&](const DocId& id) { return id.text == event.doc.doc; });
      if (found == shown.end())
        reject("id", fmt::format("Document '{}' was not shown in this impression.", event.doc.doc));
      rank = found - shown.begin();
    } else if (rank >= std::ssize(shown)) {
      reject("rank", fmt::format("Rank {} was not shown; ranks go from 0 to {}.", rank, shown.size() - 1));
    }
    places.emplace_back(rank, type);
  }
  return places;
}

std::string events_body(const std::string& id, std::span<const ImpressionStore::Event> events,
                        std::span<const std::pair<std::int64_t, std::int64_t>> places, std::int64_t now) {
  std::string body = ",\"impression\":";
  append_json_string(body, id);
  body += ",\"events\":[";
  for (std::size_t i = 0; i < events.size(); ++i) {
    body += i > 0 ? ",[" : "[";
    if (!places.empty()) {
      body += fmt::format("{}", places[i].first);
    } else if (events[i].doc.rank >= 0) {
      body += fmt::format("{}", events[i].doc.rank);
    } else {
      append_json_string(body, events[i].doc.doc);
    }
    body += ',';
    append_json_string(body, events[i].type);
    body += fmt::format(",{}]", events[i].at > 0 ? events[i].at : now);
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
  if (!is_impression_id(id))
    throw ApiError(404, "impression", "Unknown impression: this service gives no such ID.");
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (types.index(events[i].type) < 0)
      throw ApiError(422, fmt::format("events[{}].type", i),
                     fmt::format("Unknown type '{}'.", events[i].type));
  }
}

EventWindow::EventWindow(Settings settings, std::string prefix, FileLog& log)
    : settings_(std::move(settings)), prefix_(std::move(prefix)), log_(log) {
  take_up();
}

fs::path EventWindow::journal(std::uint64_t number) const {
  return kJournals.path(settings_.folder, number);
}

void EventWindow::set_journals_aside(const fs::path& folder) {
  kJournals.set_aside(folder);
}

void EventWindow::take_up() {
  if (settings_.starts_over) set_journals_aside(settings_.folder);
  std::unordered_map<std::string, std::vector<std::string>> events;  // of each list, as lines
  std::vector<Open> lists;
  for (const fs::path& file : kJournals.in(settings_.folder)) {
    auto segment = std::make_shared<Segment>();
    segment->log = std::make_unique<FileLog>(file, 0);
    segment->log->guard_writes(settings_.guard);
    segments_.emplace_back(kJournals.number_of(file), segment);
    FileLog::Reader reader(*segment->log, 0);
    std::int64_t place = 0;
    for (std::string_view line; reader.next(line);) {
      ++place;
      if (line.find(",\"events\":") != std::string_view::npos &&
          line.find(",\"shown\":") == std::string_view::npos) {
        events[std::string(impression_of(line))].emplace_back(line);
        continue;
      }
      Open open;
      open.segment = segment;
      if (const auto failure = parse_record(line, open.list))
        throw DataError(file.string(), place, failure->column, failure->message);
      open.shown = open.list.shown();
      lists.push_back(std::move(open));
    }
  }
  std::unordered_set<std::string> written;
  FileLog::Reader reader(log_, 0);
  for (std::string_view line; !lists.empty() && reader.next(line);) written.emplace(impression_of(line));
  for (Open& open : lists) {
    const std::string id = open.list.impression;
    if (written.contains(id) || open_.contains(id)) continue;
    open.list.clicks.clear();
    open.seen.assign(open.shown, 0);
    for (const std::string& line : events[id]) {
      const nlohmann::json told = parse_json(line);
      for (const auto& event : told.at("events")) {
        const std::int64_t type = settings_.types.index(event.at(1).get<std::string>());
        const auto rank = event.at(0).get<std::int64_t>();
        if (type >= 0 && rank >= 0 && rank < open.shown) open.seen[rank] |= std::uint32_t{1} << type;
      }
    }
    ++open.segment->open;
    insert(id, std::move(open));
  }
  by_age_.sort([&](const std::string& a, const std::string& b) {
    return open_.find(a)->second.list.time < open_.find(b)->second.list.time;
  });
  remove_old_segments();
}

EventWindow::OpenMap::iterator EventWindow::insert(std::string id, Open open) {
  open.bytes = heap_bytes(2 * id.size() + 200) + heap_bytes(open.list.inputs) +
               heap_bytes(open.list.docs.size() * sizeof(DocId)) + heap_bytes(open.list.query) +
               heap_bytes(open.seen);
  for (const auto* ids : {&open.list.docs, &open.list.incumbent, &open.list.candidate}) {
    for (const DocId& doc : *ids) open.bytes += sizeof(DocId) + heap_bytes(doc.text);
  }
  bytes_ += open.bytes;
  const auto added = open_.emplace(std::move(id), std::move(open)).first;
  added->second.age = by_age_.insert(by_age_.end(), added->first);
  return added;
}

void EventWindow::erase(OpenMap::iterator known) {
  bytes_ -= known->second.bytes;
  if (known->second.segment) --known->second.segment->open;
  by_age_.erase(known->second.age);
  open_.erase(known);
}

/// Goes in order, as later journals may have events of lists that earlier ones have.
void EventWindow::remove_old_segments() {
  while (segments_.size() > 1 && segments_.front().second->open == 0) {
    std::error_code ignored;
    fs::remove(journal(segments_.front().first), ignored);
    segments_.pop_front();
  }
}

std::shared_ptr<EventWindow::Segment> EventWindow::current_segment() {
  if (!segments_.empty() && segments_.back().second->log->bytes() < kSegmentBytes)
    return segments_.back().second;
  const std::uint64_t number = segments_.empty() ? 1 : segments_.back().first + 1;
  auto segment = std::make_shared<Segment>();
  segment->log = std::make_unique<FileLog>(journal(number), 0);
  segment->log->guard_writes(settings_.guard);
  segments_.emplace_back(number, segment);
  return segment;
}

std::string EventWindow::open(FeedbackRecord list, std::int64_t shown) {
  const std::lock_guard lock(mutex_);
  std::string id = fmt::format("{}-{}", prefix_, ++opened_);
  list.impression = id;
  Open open;
  open.list = std::move(list);
  open.shown = shown;
  open.seen.assign(shown, 0);
  insert(id, std::move(open));
  return id;
}

bool EventWindow::is_due(const Open& open, std::int64_t now) const {
  return now - open.list.time >= std::chrono::milliseconds(settings_.window).count();
}

EventWindow::Outcome EventWindow::add(const std::string& id, std::span<const Event> events,
                                      std::int64_t now) {
  std::unique_lock lock(mutex_);
  const auto known = open_.find(id);
  if (known == open_.end() || (!known->second.claimed && is_due(known->second, now)))
    return lock.unlock(), add_late(id, events, now);
  Open& open = known->second;
  if (open.claimed) {
    throw ApiError(409, "impression", "Feedback for this impression is still being written; retry.")
        .with_code("being_written")
        .retry_after(1);
  }
  const auto places = places_of(settings_.types, std::span(open.list.docs).first(open.shown), events);
  bool is_new = false;
  std::vector<std::uint32_t> seen = open.seen;
  for (const auto& [rank, type] : places) {
    const std::uint32_t bit = std::uint32_t{1} << type;
    is_new = is_new || (seen[rank] & bit) == 0;
    seen[rank] |= bit;
  }
  if (is_new) {
    std::vector<std::string> bodies;
    const std::shared_ptr<Segment> segment = current_segment();
    const bool is_first = !open.segment;
    if (is_first) {
      FeedbackRecord list = open.list;
      list.clicks.assign(open.shown, 0);
      bodies.push_back(record_body(list));
      open.segment = segment;
      ++segment->open;
    }
    bodies.push_back(events_body(id, events, places, now));
    open.claimed = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      segment->log->append_all(std::move(bodies));
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    open.claimed = false;
    if (failure) {
      if (is_first) {
        open.segment = nullptr;
        --segment->open;
      }
      std::rethrow_exception(failure);
    }
    open.seen = std::move(seen);
  }
  return {
      !is_new && !events.empty(), false, {}, finished_record(settings_.types, open.list, open.seen).clicks};
}

EventWindow::Outcome EventWindow::add_late(const std::string& id, std::span<const Event> events,
                                           std::int64_t now) {
  require_late(settings_.types, id, events);
  if (events.empty()) return {true, true};
  {
    const std::lock_guard lock(mutex_);
    if (!late_log_) {
      late_log_ = std::make_unique<FileLog>(settings_.folder / "late.jsonl", 0);
      late_log_->guard_writes(settings_.guard);
    }
  }
  late_log_->append_all({events_body(id, events, {}, now)});
  const std::lock_guard lock(mutex_);
  late_ += events.size();
  return {false, true};
}

std::vector<std::vector<std::uint8_t>> EventWindow::close_due(std::int64_t now) {
  std::unique_lock lock(mutex_);
  std::vector<OpenMap::iterator> due;
  std::vector<std::string> bodies;
  std::vector<std::vector<std::uint8_t>> clicks;
  std::size_t left = open_.size();
  std::size_t bytes = bytes_;
  for (const std::string& id : by_age_) {
    const auto known = open_.find(id);
    const bool is_early = left > settings_.limits.open || bytes > settings_.limits.bytes;
    if (!is_early && !is_due(known->second, now)) break;
    if (known->second.claimed) continue;
    closed_early_ += is_due(known->second, now) ? 0 : 1;
    --left;
    bytes -= known->second.bytes;
    known->second.claimed = true;
    const FeedbackRecord record = finished_record(settings_.types, known->second.list, known->second.seen);
    bodies.push_back(record_body(record));
    clicks.push_back(record.clicks);
    due.push_back(known);
  }
  if (due.empty()) return clicks;
  lock.unlock();
  std::exception_ptr failure;
  try {
    log_.append_all(std::move(bodies));
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  for (const auto& known : due) {
    known->second.claimed = false;
    if (!failure) erase(known);
  }
  if (failure) std::rethrow_exception(failure);
  remove_old_segments();
  return clicks;
}

void EventWindow::keep_open() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> bodies;
  std::vector<Open*> kept;
  for (const std::string& id : by_age_) {
    Open& open = open_.find(id)->second;
    if (open.segment || open.claimed) continue;
    FeedbackRecord list = open.list;
    list.clicks.assign(open.shown, 0);
    bodies.push_back(record_body(list));
    kept.push_back(&open);
  }
  if (kept.empty()) return;
  const std::shared_ptr<Segment> segment = current_segment();
  segment->log->append_all(std::move(bodies));
  for (Open* open : kept) open->segment = segment;
  segment->open += kept.size();
}

ImpressionStore::Counts EventWindow::counts() const {
  const std::lock_guard lock(mutex_);
  return {opened_, open_.size(), closed_early_, bytes_, settings_.limits.bytes, late_};
}

}  // namespace olrank
