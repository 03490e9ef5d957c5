#include "serve/open_lists.h"

#include <fmt/format.h>

#include <charconv>

#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "serve/api_error.h"

namespace olrank {
namespace {

std::size_t ids_bytes(const std::vector<DocId>& docs) {
  std::size_t bytes = heap_bytes(docs.size() * sizeof(DocId));
  for (const DocId& doc : docs) bytes += heap_bytes(doc.text);
  return bytes;
}

/// Whether a record with feedback on the list can be read again.
bool can_be_logged(const OpenList& list) {
  FeedbackRecord record = list.record;
  record.clicks.assign(list.shown, 0);
  FeedbackRecord read;
  return !parse_record(record_line(1, record_body(record)), read) && read.docs == record.docs;
}

}  // namespace

std::int64_t shown_rank(std::span<const DocId> shown, const ImpressionStore::Click& click,
                        const std::function<void(const std::string&)>& reject) {
  if (click.rank >= 0 && click.list == ImpressionStore::Click::kEither) {
    const std::string text = fmt::format("{}", click.rank);
    const auto same = std::find(shown.begin(), shown.end(), DocId{text, true});
    if (same != shown.end() && same - shown.begin() != click.rank)
      reject(
          fmt::format("{0} may be rank {0} or the ID of the document at rank {1}: send the clicks as 'ids' "
                      "or as 'ranks'.",
                      text, same - shown.begin()));
  }
  if (click.rank >= std::ssize(shown))
    reject(fmt::format("Rank {} was not shown; ranks go from 0 to {}.", click.rank, shown.size() - 1));
  if (click.rank >= 0) return click.rank;
  const auto found =
      std::find_if(shown.begin(), shown.end(), [&](const DocId& id) { return id.text == click.doc; });
  if (found == shown.end())
    reject(fmt::format("Document '{}' was not shown in this impression.", click.doc));
  return found - shown.begin();
}

std::vector<std::uint8_t> clicks_on(std::span<const DocId> shown,
                                    std::span<const ImpressionStore::Click> clicks) {
  std::vector<std::uint8_t> clicked(shown.size(), 0);
  for (std::size_t i = 0; i < clicks.size(); ++i) {
    const auto reject = [&](const std::string& message) {
      throw ApiError(422, fmt::format("{}[{}]", clicks[i].list, i), message);
    };
    const std::int64_t rank = shown_rank(shown, clicks[i], reject);
    if (std::exchange(clicked[rank], 1) == 0) continue;
    if (clicks[i].rank < 0)
      reject(fmt::format("Document '{}' is already among the clicks.", clicks[i].doc));
    reject(fmt::format(
        "Rank {} appears twice: clicks are ranks from 0 or document IDs, not a 0 or 1 for each document.",
        rank));
  }
  return clicked;
}

bool is_impression_id(std::string_view id) {
  const std::size_t dash = id.find('-');
  const auto all_of = [](std::string_view text, std::string_view digits) {
    return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
  };
  return dash == 16 && all_of(id.substr(0, dash), "0123456789abcdef") && id.size() < 40 &&
         all_of(id.substr(dash + 1), "0123456789");
}

void refuse_unknown_impression() {
  throw ApiError(404, "impression", "Unknown impression: this service gives no such ID.");
}

std::string_view impression_of(std::string_view line) {
  constexpr std::string_view kKey = "\"impression\":\"";
  const std::size_t begin = line.find(kKey);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = line.substr(begin + kKey.size());
  return rest.substr(0, rest.find('"'));
}

std::unordered_set<std::string> logged_impressions(const FileLog& log) {
  std::unordered_set<std::string> impressions;
  FileLog::Reader reader(log, log.begin());
  for (std::string_view line; reader.next(line);) impressions.emplace(impression_of(line));
  return impressions;
}

void WaitingList::require_unclaimed() const {
  if (!claimed) return;
  throw ApiError(409, "impression", "Feedback for this impression is still being written; retry.")
      .with_code("being_written")
      .retry_after(1);
}

void WaitingList::pack() {
  FeedbackRecord rest;
  rest.impression = std::move(record.impression);
  rest.inputs = std::move(record.inputs);
  record.inputs.clear();
  rest.columns = std::exchange(record.columns, 0);
  packed = ImpressionFile::encoded(record, shown);
  record = std::move(rest);
}

FeedbackRecord WaitingList::unpacked() const {
  FeedbackRecord whole =
      ImpressionFile::decoded(ImpressionFile::named(record.impression, packed)).value().record;
  whole.inputs = record.inputs;
  whole.columns = record.columns;
  return whole;
}

std::size_t WaitingList::heap() const {
  return heap_bytes(record.impression) + heap_bytes(record.query) + ids_bytes(record.docs) +
         heap_bytes(record.inputs) + heap_bytes(record.groups) + heap_bytes(record.propensity) +
         ids_bytes(record.incumbent) + ids_bytes(record.candidate) + heap_bytes(record.arm) +
         heap_bytes(record.experiment) + heap_bytes(record.teams) + heap_bytes(record.feature_names) +
         heap_bytes(record.schema) + heap_bytes(record.versions) + ids_bytes(record.rest) +
         heap_bytes(record.given) + heap_bytes(static_cast<std::size_t>(shown)) + heap_bytes(seen) +
         heap_bytes(packed);
}

GivenAnswer GivenAnswer::of(const FeedbackRecord& record, std::int64_t now) {
  GivenAnswer answer{record.round, now, record.impression.size(), record.impression + answer_bytes(record)};
  answer.packed.shrink_to_fit();
  return answer;
}

FirstAnswers::FirstAnswers(Settings settings, FileLog& log) : settings_(std::move(settings)), log_(log) {
  const std::int64_t now = steady_milliseconds();
  FileLog::Reader latest(log, log.latest_begin());
  FeedbackRecord record;
  for (std::string_view line; latest.next(line);) {
    if (!parse_record(line, record)) remember(GivenAnswer::of(record, now));
  }
  if (settings_.file) take_up();
}

/// Takes up the lists of earlier runs whose feedback is not in the log.
void FirstAnswers::take_up() {
  const std::int64_t now = utc_milliseconds();
  const std::int64_t steady = steady_milliseconds();
  file_ = std::make_unique<ImpressionFile>(*settings_.file, now, steady);
  std::vector<OpenList> lists = file_->take_up(now);
  if (lists.empty()) return;
  std::erase_if(lists, [](const OpenList& list) { return !can_be_logged(list); });
  const std::unordered_set<std::string> answered = logged_impressions(log_);
  for (OpenList& list : lists) {
    const std::string& id = list.record.impression;
    if (answered.contains(id) || open_.find(id) != open_.end()) continue;
    const std::int64_t age = std::max<std::int64_t>(now - list.record.time, 0);
    OpenLists::List taken{std::move(list.record), list.shown, steady - age};
    if (OpenLists::bytes_of(taken) <= settings_.limits.bytes) insert(std::move(taken));
  }
  if (open_.size() > 0) log_info("Took up {} that await feedback.", counted(open_.size(), "list"));
}

std::string FirstAnswers::open(FeedbackRecord record, std::int64_t shown, std::int64_t now) {
  const std::string kept = file_ ? ImpressionFile::encoded(record, shown) : std::string();
  std::string id;
  {
    const std::lock_guard lock(mutex_);
    expire(now);
    id = fmt::format("{}-{}", settings_.start, opened_ + 1);
    OpenLists::List list{std::move(record), shown, now};
    list.record.impression = id;
    const std::size_t limit = settings_.limits.bytes;
    if (const std::size_t bytes = OpenLists::bytes_of(list); bytes > limit) {
      throw ApiError(413, "docs",
                     fmt::format("Remembering this list takes {}, but --max-impression-memory is {}.",
                                 readable_bytes(static_cast<double>(bytes)),
                                 readable_bytes(static_cast<double>(limit))));
    }
    if (!insert(std::move(list))) {
      throw ApiError(503, "", "Feedback that is being written takes all of --max-impression-memory; retry.")
          .retry_after(1);
    }
    ++opened_;
  }
  if (file_) file_->append(id, kept, now);
  return id;
}

bool FirstAnswers::insert(OpenLists::List list) {
  for (auto oldest = open_.oldest_unclaimed();
       open_.size() >= settings_.limits.open && oldest != open_.end(); oldest = open_.oldest_unclaimed()) {
    open_.erase(oldest);
    ++dropped_;
  }
  if (!make_room(OpenLists::bytes_of(list))) return false;
  open_.add(std::move(list));
  return true;
}

void FirstAnswers::expire(std::int64_t now) {
  const std::int64_t age = std::chrono::milliseconds(settings_.limits.age).count();
  for (auto list = open_.begin(); list != open_.end() && now - list->since > age;) {
    const auto expired = list++;
    if (!expired->claimed) open_.erase(expired);
  }
}

bool FirstAnswers::make_room(std::size_t bytes) {
  while (open_.bytes() + answers_.bytes() + bytes > settings_.limits.bytes) {
    const auto list = open_.oldest_unclaimed();
    const auto answer = answers_.begin();
    if (list == open_.end() && answer == answers_.end()) return false;
    if (list == open_.end() || (answer != answers_.end() && answer->since <= list->since)) {
      answers_.erase(answer);
    } else {
      open_.erase(list);
      ++dropped_;
    }
  }
  return true;
}

/// An ID that a service may have given and that is neither open nor answered has expired.
void FirstAnswers::reject_unknown(const std::string& id) const {
  const std::string begin = settings_.start + "-";
  bool is_expired = is_impression_id(id);
  if (id.starts_with(begin)) {
    std::uint64_t number = 0;
    const char* last = id.data() + id.size();
    const auto [rest, error] = std::from_chars(id.data() + begin.size(), last, number);
    is_expired = error == std::errc{} && rest == last && number >= 1 && number <= opened_;
  }
  if (!is_expired) refuse_unknown_impression();
  throw ApiError(410, "impression",
                 fmt::format("This impression has expired: it is more than {} seconds old, or newer ones "
                             "needed its place (--max-impressions {}, --max-impression-memory {}){}.",
                             settings_.limits.age.count(), settings_.limits.open,
                             readable_bytes(static_cast<double>(settings_.limits.bytes)),
                             id.starts_with(begin) ? "" : ", or it is of an earlier start with --window"));
}

ImpressionStore::Outcome FirstAnswers::add(const std::string& id, std::span<const Click> clicks,
                                           std::int64_t now) {
  std::unique_lock lock(mutex_);
  expire(now);
  if (const auto answer = answers_.find(id); answer != answers_.end())
    return repeated_answer(std::string_view(answer->packed).substr(answer->id_size), answer->round, clicks)
        .value();
  const auto list = open_.find(id);
  if (list == open_.end()) reject_unknown(id);
  list->require_unclaimed();
  FeedbackRecord& record = list->record;
  record.clicks = clicks_on(std::span(record.docs).first(list->shown), clicks);
  list->claimed = true;
  const auto failure = written_without(lock, [&] { record.round = log_.append(record); });
  list->claimed = false;
  if (failure) std::rethrow_exception(failure);
  Outcome outcome{false, false, record.round, record.clicks, record.arm};
  GivenAnswer answer = GivenAnswer::of(record, now);
  open_.erase(list);
  remember(std::move(answer));
  return outcome;
}

void FirstAnswers::remember(GivenAnswer answer) {
  if (const auto known = answers_.find(answer.id()); known != answers_.end()) answers_.erase(known);
  // One that does not fit is forgotten at once: repeating it gets a 410 instead of a duplicate.
  if (!make_room(answers_.bytes_of(answer))) return;
  answers_.add(std::move(answer));
  if (answers_.size() > settings_.limits.open) answers_.erase(answers_.begin());
}

ImpressionStore::Counts FirstAnswers::counts() const {
  const std::lock_guard lock(mutex_);
  return {opened_, open_.size(), dropped_, open_.bytes() + answers_.bytes(), settings_.limits.bytes, 0};
}

}  // namespace olrank
