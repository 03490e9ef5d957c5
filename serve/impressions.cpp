#include "serve/impressions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_set>
#include <utility>

#include "core/runtime/log.h"
#include "core/text/byte_size.h"
#include "core/text/message_text.h"
#include "serve/api_error.h"
#include "serve/file_log.h"

namespace olrank {
namespace {

std::size_t ids_bytes(const std::vector<DocId>& docs) {
  std::size_t bytes = heap_bytes(docs.size() * sizeof(DocId));
  for (const DocId& doc : docs) bytes += heap_bytes(doc.text);
  return bytes;
}

/// A tree's node has three pointers and a colour before the entry, a list's node two pointers.
template <class Map>
std::size_t entry_bytes(const std::string& key) {
  return heap_bytes(32 + sizeof(typename Map::value_type)) + heap_bytes(16 + sizeof(const std::string*)) +
         string_heap_bytes(key.size());
}

}  // namespace

std::vector<std::uint8_t> clicks_on(std::span<const DocId> shown,
                                    std::span<const ImpressionStore::Click> clicks) {
  std::vector<std::uint8_t> clicked(shown.size(), 0);
  for (std::size_t i = 0; i < clicks.size(); ++i) {
    const ImpressionStore::Click& click = clicks[i];
    std::int64_t rank = click.rank;
    const auto reject = [&](const std::string& message) {
      throw ApiError(422, fmt::format("clicks[{}]", i), message);
    };
    if (rank < 0) {
      const auto found =
          std::find_if(shown.begin(), shown.end(), [&](const DocId& id) { return id.text == click.doc; });
      if (found == shown.end())
        reject(fmt::format("Document '{}' was not shown in this impression.", click.doc));
      rank = found - shown.begin();
    } else if (rank >= std::ssize(shown)) {
      reject(fmt::format("Rank {} was not shown; ranks go from 0 to {}.", rank, shown.size() - 1));
    }
    if (std::exchange(clicked[rank], 1) == 0) continue;
    if (click.rank < 0) reject(fmt::format("Document '{}' is already among the clicks.", click.doc));
    reject(fmt::format(
        "Rank {} appears twice: clicks are ranks from 0 or document IDs, not a 0 or 1 for each document.",
        rank));
  }
  return clicked;
}

void refuse_other_clicks(std::uint64_t round) {
  throw ApiError(
      409, "clicks",
      fmt::format("Different clicks were already accepted for this impression as round {}.", round))
      .with_code("other_clicks_accepted");
}

std::int64_t utc_milliseconds() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool is_impression_id(std::string_view id) {
  const std::size_t dash = id.find('-');
  const auto all_of = [](std::string_view text, std::string_view digits) {
    return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
  };
  return dash == 16 && all_of(id.substr(0, dash), "0123456789abcdef") && id.size() < 40 &&
         all_of(id.substr(dash + 1), "0123456789");
}

std::string_view impression_of(std::string_view line) {
  constexpr std::string_view kKey = "\"impression\":\"";
  const std::size_t begin = line.find(kKey);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = line.substr(begin + kKey.size());
  return rest.substr(0, rest.find('"'));
}

Impressions::Impressions(const ImpressionLimits& limits, std::string prefix)
    : limits_(limits), prefix_(std::move(prefix)) {}

// The clicks come with claim(), which needs their memory.
std::size_t Impressions::bytes_of(const std::string& id, const FeedbackRecord& list, std::int64_t shown) {
  return entry_bytes<OpenMap>(id) + heap_bytes(list.query) + ids_bytes(list.docs) +
         heap_bytes(list.inputs) + heap_bytes(list.groups) + heap_bytes(list.propensity) +
         ids_bytes(list.incumbent) + ids_bytes(list.candidate) + heap_bytes(list.arm) +
         heap_bytes(list.experiment) + heap_bytes(list.teams) + heap_bytes(static_cast<std::size_t>(shown));
}

bool Impressions::insert(std::string id, FeedbackRecord list, std::int64_t shown, std::size_t bytes,
                         Clock::time_point since) {
  while (open_.size() >= limits_.open && oldest_unclaimed() != open_.end()) {
    erase(oldest_unclaimed());
    ++dropped_;
  }
  if (!make_room(bytes)) return false;
  const auto added = open_.emplace(std::move(id), Open{std::move(list), shown, since, bytes}).first;
  added->second.age_position = open_by_age_.insert(open_by_age_.end(), &added->first);
  bytes_ += bytes;
  return true;
}

std::string Impressions::open(FeedbackRecord list, std::int64_t shown, Clock::time_point now) {
  const std::int64_t time = list.time;
  const std::string kept = file_ != nullptr ? ImpressionFile::encoded(list, shown) : std::string();
  std::string id;
  {
    const std::lock_guard lock(mutex_);
    expire(now);
    id = fmt::format("{}-{}", prefix_, opened_ + 1);
    const std::size_t bytes = bytes_of(id, list, shown);
    if (bytes > limits_.bytes) {
      throw ApiError(413, "docs",
                     fmt::format("Remembering this list takes {}, but --max-impression-memory is {}.",
                                 readable_bytes(static_cast<double>(bytes)),
                                 readable_bytes(static_cast<double>(limits_.bytes))));
    }
    if (!insert(id, std::move(list), shown, bytes, now)) {
      throw ApiError(503, "", "Feedback that is being written takes all of --max-impression-memory; retry.")
          .retry_after(1);
    }
    ++opened_;
  }
  if (file_ != nullptr) file_->append(id, kept, time);
  return id;
}

void Impressions::reopen(OpenList list, std::int64_t now_ms, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto since = now - std::chrono::milliseconds(std::max<std::int64_t>(now_ms - list.record.time, 0));
  std::string id = list.record.impression;
  if (now - since > limits_.age || open_.contains(id) || answers_.contains(id)) return;
  const std::size_t bytes = bytes_of(id, list.record, list.shown);
  if (bytes <= limits_.bytes) insert(std::move(id), std::move(list.record), list.shown, bytes, since);
}

void Impressions::expire(Clock::time_point now) {
  for (auto key = open_by_age_.begin(); key != open_by_age_.end();) {
    const auto oldest = open_.find(**key);
    if (now - oldest->second.since <= limits_.age) return;
    ++key;
    if (!oldest->second.claimed) erase(oldest);
  }
}

Impressions::OpenMap::iterator Impressions::oldest_unclaimed() {
  for (const std::string* key : open_by_age_) {
    if (const auto open = open_.find(*key); !open->second.claimed) return open;
  }
  return open_.end();
}

bool Impressions::make_room(std::size_t bytes) {
  while (bytes_ + bytes > limits_.bytes) {
    const auto open = oldest_unclaimed();
    const auto answer = answers_.empty() ? answers_.end() : answers_.find(*answers_by_age_.front());
    if (open == open_.end() && answer == answers_.end()) return false;
    if (open == open_.end() || (answer != answers_.end() && answer->second.since <= open->second.since)) {
      erase(answer);
    } else {
      erase(open);
      ++dropped_;
    }
  }
  return true;
}

void Impressions::erase(OpenMap::iterator open) {
  bytes_ -= open->second.bytes;
  open_by_age_.erase(open->second.age_position);
  open_.erase(open);
}

void Impressions::erase(AnswerMap::iterator answer) {
  bytes_ -= answer->second.bytes;
  answers_by_age_.erase(answer->second.age_position);
  answers_.erase(answer);
}

/// An ID that a service may have given and that is neither open nor answered has expired.
void Impressions::reject_unknown(const std::string& id) const {
  std::uint64_t number = 0;
  const std::string begin = prefix_ + "-";
  bool is_expired = is_impression_id(id);
  if (id.starts_with(begin)) {
    const char* last = id.data() + id.size();
    const auto [rest, error] = std::from_chars(id.data() + begin.size(), last, number);
    is_expired = error == std::errc{} && rest == last && number >= 1 && number <= opened_;
  }
  if (is_expired) {
    throw ApiError(
        410, "impression",
        fmt::format("This impression has expired: it is more than {} seconds old, or newer ones "
                    "needed its place (--max-impressions {}, --max-impression-memory {}){}.",
                    limits_.age.count(), limits_.open, readable_bytes(static_cast<double>(limits_.bytes)),
                    id.starts_with(begin) ? "" : ", or it is of an earlier start with --window"));
  }
  throw ApiError(404, "impression", "Unknown impression: this service gives no such ID.");
}

Impressions::Claim Impressions::claim(const std::string& id, std::span<const Click> clicks,
                                      Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  expire(now);
  if (const auto answered = answers_.find(id); answered != answers_.end()) {
    if (clicks_on(answered->second.shown, clicks) != answered->second.clicks)
      refuse_other_clicks(answered->second.round);
    return {true, answered->second.round, {}};
  }
  const auto known = open_.find(id);
  if (known == open_.end()) reject_unknown(id);
  Open& open = known->second;
  if (open.claimed) {
    throw ApiError(409, "impression", "Feedback for this impression is still being written; retry.")
        .with_code("being_written")
        .retry_after(1);
  }
  const auto shown = std::span(open.list.docs).first(open.shown);
  open.list.clicks = clicks_on(shown, clicks);
  open.list.impression = id;
  open.claimed = true;
  return {false, 0, std::move(open.list)};
}

void Impressions::add_answer(const FeedbackRecord& record, Clock::time_point now) {
  if (const auto known = answers_.find(record.impression); known != answers_.end()) erase(known);
  Answer answer;
  answer.round = record.round;
  answer.clicks = record.clicks;
  answer.shown.assign(record.docs.begin(), record.docs.begin() + record.shown());
  answer.since = now;
  answer.bytes =
      entry_bytes<AnswerMap>(record.impression) + heap_bytes(answer.clicks) + ids_bytes(answer.shown);
  // One that does not fit is forgotten at once: repeating it gets a 410 instead of a duplicate.
  if (!make_room(answer.bytes)) return;
  const auto added = answers_.emplace(record.impression, std::move(answer)).first;
  added->second.age_position = answers_by_age_.insert(answers_by_age_.end(), &added->first);
  bytes_ += added->second.bytes;
  if (answers_.size() > limits_.open) erase(answers_.find(*answers_by_age_.front()));
}

void Impressions::remember(const FeedbackRecord& record, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  add_answer(record, now);
}

void Impressions::commit(const FeedbackRecord& record, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (const auto known = open_.find(record.impression); known != open_.end()) erase(known);
  add_answer(record, now);
}

void Impressions::release(FeedbackRecord record) {
  const std::lock_guard lock(mutex_);
  const auto known = open_.find(record.impression);
  if (known == open_.end()) return;
  known->second.list = std::move(record);
  known->second.claimed = false;
}

Impressions::Counts Impressions::counts() const {
  const std::lock_guard lock(mutex_);
  return {opened_, open_.size(), dropped_, bytes_, limits_.bytes, 0};
}

LoggedImpressions::LoggedImpressions(Settings settings, FileLog& log)
    : log_(log), impressions_(settings.limits, std::move(settings.start)) {
  FileLog::Reader latest(log, log.latest_begin());
  FeedbackRecord record;
  for (std::string_view line; latest.next(line);) {
    if (!parse_record(line, record)) impressions_.remember(record);
  }
  if (!settings.file) return;
  file_ = std::make_unique<ImpressionFile>(std::move(*settings.file), utc_milliseconds());
  reopen_lists();
}

/// Reopens the lists of earlier runs whose feedback is not in the log.
void LoggedImpressions::reopen_lists() {
  const std::int64_t now = utc_milliseconds();
  std::vector<OpenList> lists = file_->take_up(now);
  std::unordered_set<std::string> answered;
  FileLog::Reader reader(log_, 0);
  for (std::string_view line; !lists.empty() && reader.next(line);) answered.emplace(impression_of(line));
  for (OpenList& list : lists) {
    if (!answered.contains(list.record.impression)) impressions_.reopen(std::move(list), now);
  }
  if (const std::size_t open = impressions_.counts().open; open > 0)
    log_info("Took up {} that await feedback.", counted(open, "list"));
  impressions_.keep_in(*file_);
}

std::string LoggedImpressions::open(FeedbackRecord list, std::int64_t shown) {
  return impressions_.open(std::move(list), shown);
}

ImpressionStore::Outcome LoggedImpressions::add(const std::string& id, std::span<const Click> clicks,
                                                std::span<const Event>) {
  Impressions::Claim claim = impressions_.claim(id, clicks);
  if (claim.duplicate) return {true, false, claim.round, {}};
  try {
    claim.record.round = log_.append(claim.record);
  } catch (...) {
    impressions_.release(std::move(claim.record));
    throw;
  }
  impressions_.commit(claim.record);
  return {false, false, claim.record.round, claim.record.clicks};
}

}  // namespace olrank
