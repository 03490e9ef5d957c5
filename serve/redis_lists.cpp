#include "serve/redis_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "core/io/fingerprint.h"
#include "core/runtime/log.h"
#include "core/throw_error.h"
#include "serve/api_error.h"

namespace olrank {
namespace {

constexpr std::int64_t kSafetyMs = 86'400'000;  // for which a list is kept whose window stays open
constexpr std::int64_t kLeaseMs = 5'000;        // for which a process has a due list to itself
constexpr std::int64_t kDueAtOnce = 100;
constexpr std::size_t kTypesAtOnce = 1000;  // lists whose events are read together
constexpr std::chrono::milliseconds kCloseInterval{250};
constexpr std::string_view kMostLate = "100000";
constexpr std::size_t kBytesAtOnce = 1'000'000;  // of lists sent together
constexpr std::chrono::milliseconds kRetry{100};
constexpr std::chrono::milliseconds kLongestPause{100};  // for a list that may be on its way; 150 in all
constexpr std::chrono::seconds kLastWait{2};

const std::string kAcceptScript = std::string(kAppendScript) + R"lua(
local answer = redis.call('GET', KEYS[2])
if answer then redis.call('PEXPIRE', KEYS[2], ARGV[3]) return {0, answer} end
if redis.call('EXISTS', KEYS[1]) == 0 then return {} end
local round, refusal = append(KEYS[3], KEYS[4], KEYS[5], ARGV[1], ARGV[4], ARGV[5])
if refusal then return refusal end
redis.call('SET', KEYS[2], round .. ' ' .. ARGV[2], 'PX', ARGV[3])
redis.call('DEL', KEYS[1])
return {1, round}
)lua";

/// {how many are new, every place with events}; nothing if the list is gone.
constexpr const char* kEventsScript = R"lua(
local left = redis.call('PTTL', KEYS[1])
if left < 0 then return {} end
local new = 0
for i = 1, #ARGV, 2 do new = new + redis.call('HSETNX', KEYS[2], ARGV[i], ARGV[i + 1]) end
if #ARGV > 0 then redis.call('PEXPIRE', KEYS[2], left) end
return {new, redis.call('HKEYS', KEYS[2])}
)lua";

/// Due lists, which other processes leave alone for a while. The clock is the server's, as those of the
/// processes may differ.
constexpr const char* kDueScript =
    R"lua(
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
for _, id in ipairs(due) do redis.call('ZADD', KEYS[1], now + ARGV[2], id) end
return due
)lua";

/// Stores a list that collects events, unless it is closed already: the sender may repeat what was done.
constexpr const char* kStoreScript = R"lua(
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
local time = redis.call('TIME')
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('ZADD', KEYS[3], time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[3], ARGV[4])
return 1
)lua";

/// 0 if events have come since they were counted.
const std::string kCloseScript = std::string(kAppendScript) + R"lua(
if redis.call('EXISTS', KEYS[1]) == 0 then return '-1' end
if redis.call('HLEN', KEYS[2]) ~= tonumber(ARGV[2]) then return '0' end
local round, refusal = append(KEYS[3], KEYS[4], KEYS[7], ARGV[1], ARGV[5], ARGV[6])
if refusal then return refusal end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('ZREM', KEYS[5], ARGV[3])
redis.call('SET', KEYS[6], 'closed', 'PX', ARGV[4])
return round
)lua";

/// Appends a record that the server has lost, and closes its list again. With a hash the record comes next
/// after the records with this one, or not at all; without, it is there already if its list has an answer.
const std::string kAgainScript = std::string(kAppendScript) + R"lua(
local last = redis.call('HMGET', KEYS[5], 'round', 'hash')
if ARGV[6] == '' then
  if redis.call('EXISTS', KEYS[2]) == 1 then return '0' end
elseif redis.call('GET', KEYS[4]) ~= ARGV[6] or (last[1] == ARGV[6] and last[2] ~= ARGV[7]) then
  return '0'
end
local round, refusal = append(KEYS[3], KEYS[4], KEYS[5], ARGV[1], ARGV[2], '')
if refusal then return refusal end
redis.call('SET', KEYS[2], ARGV[3] == 'closed' and ARGV[3] or round .. ' ' .. ARGV[3], 'PX', ARGV[4])
redis.call('DEL', KEYS[1], KEYS[6])
redis.call('ZREM', KEYS[7], ARGV[5])
return round
)lua";

/// Repeated feedback is known for as long again as its list was open.
std::string answer_life(const RedisLists::Settings& settings) {
  const std::int64_t window = settings.window.count();
  return fmt::format("{}", window > 0 ? window + kSafetyMs : 2 * settings.age.count());
}

/// Reads for each shown document a bit of each type of its events.
std::vector<std::uint32_t> seen_events(const EventTypes& types, std::int64_t shown,
                                       const RedisReply& places) {
  std::vector<std::uint32_t> seen(shown, 0);
  for (const RedisReply& place : places.items) {
    const std::size_t colon = std::min(place.text.find(':'), place.text.size() - 1);
    const std::int64_t type = types.index(std::string_view(place.text).substr(colon + 1));
    std::int64_t rank = -1;
    std::from_chars(place.text.data(), place.text.data() + colon, rank);
    if (type >= 0 && rank >= 0 && rank < shown) seen[rank] |= std::uint32_t{1} << type;
  }
  return seen;
}

}  // namespace

RedisLists::RedisLists(RedisLog& log, Settings settings, std::string start)
    : log_(log), client_(log.client()), settings_(std::move(settings)), start_(std::move(start)) {
  sender_ = std::thread([this] { send(); });
}

RedisLists::~RedisLists() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  sender_.join();
}

void RedisLists::require_types(RedisClient& client, const EventTypes& types) {
  const RedisReply open = client.call({"ZRANGE", client.key("due"), "0", "-1"});
  std::map<std::string, std::int64_t> counts;
  std::vector<RedisClient::Command> commands;
  for (const RedisReply& id : open.items) {
    commands.push_back({"HKEYS", client.key("events:" + id.text)});
    if (commands.size() < kTypesAtOnce && &id != &open.items.back()) continue;
    for (const RedisReply& places : client.call_all(std::exchange(commands, {}))) {
      for (const RedisReply& place : places.items) ++counts[place.text.substr(place.text.find(':') + 1)];
    }
  }
  types.require_all(counts, client.address().text());
}

void RedisLists::append_store_commands(const Waiting& list,
                                       std::vector<RedisClient::Command>& commands) const {
  const bool collects = settings_.window.count() > 0;
  const std::int64_t age = steady_milliseconds() - list.since;
  const std::int64_t left = (collects ? settings_.window.count() + kSafetyMs : settings_.age.count()) - age;
  if (left < 1) return;
  if (!collects) {
    commands.push_back(
        {"SET", client_.key("impression:" + list.id), list.bytes, "PX", fmt::format("{}", left)});
    return;
  }
  commands.push_back({"EVAL", kStoreScript, "3", client_.key("impression:" + list.id),
                      client_.key("answered:" + list.id), client_.key("due"), list.bytes,
                      fmt::format("{}", left), fmt::format("{}", settings_.window.count() - age), list.id});
}

std::string RedisLists::open(FeedbackRecord list, std::int64_t shown) {
  Waiting waiting{fmt::format("{}-{}", start_, ++opened_), {}, steady_milliseconds()};
  waiting.bytes = ImpressionFile::named(waiting.id, ImpressionFile::encoded(list, shown));
  std::string id = waiting.id;
  {
    const std::lock_guard lock(mutex_);
    waiting_bytes_ += waiting.bytes.size();
    waiting_.push_back(std::move(waiting));
    drop_oldest();
  }
  changed_.notify_all();
  return id;
}

void RedisLists::drop_oldest() {
  while (waiting_.size() > settings_.limits.open || waiting_bytes_ > settings_.limits.bytes) {
    waiting_bytes_ -= waiting_.front().bytes.size();
    waiting_.pop_front();
    ++dropped_;
  }
}

void RedisLists::send() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (waiting_.empty() || client_.is_away()) {
      changed_.wait_for(lock, kRetry);
      continue;
    }
    std::size_t bytes = 0;
    while (!waiting_.empty() && bytes < kBytesAtOnce) {
      bytes += waiting_.front().bytes.size();
      sending_.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    lock.unlock();
    bool sent = false;
    std::string refusal;
    try {
      std::vector<RedisClient::Command> commands;
      for (const Waiting& list : sending_) append_store_commands(list, commands);
      if (!commands.empty()) client_.call_all(commands);
      sent = true;
    } catch (const RedisAway&) {
    } catch (const std::exception& error) {  // no memory left, say
      refusal = error.what();
    }
    if (refused_ != !refusal.empty() && (sent || !refusal.empty())) {
      refused_ = !refusal.empty();
      log_warning("{}", refused_ ? refusal + " Lists wait in this process, and their feedback is rejected."
                                 : "The server takes lists again.");
    }
    lock.lock();
    if (sent) {
      waiting_bytes_ -= bytes;
      sending_.clear();
      changed_.notify_all();
      continue;
    }
    for (auto list = sending_.rbegin(); list != sending_.rend(); ++list)
      waiting_.push_front(std::move(*list));
    sending_.clear();
    drop_oldest();
    // Lists that are shown meanwhile are no reason to try again.
    const auto until = std::chrono::steady_clock::now() + kRetry;
    while (!stopping_ && std::chrono::steady_clock::now() < until) changed_.wait_until(lock, until);
  }
}

bool RedisLists::waits_here(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto is_it = [&id](const Waiting& list) { return list.id == id; };
  return std::any_of(waiting_.begin(), waiting_.end(), is_it) ||
         std::any_of(sending_.begin(), sending_.end(), is_it);
}

void RedisLists::keep_open() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kLastWait,
                    [this] { return client_.is_away() || (waiting_.empty() && sending_.empty()); });
}

std::vector<RedisReply> RedisLists::look_up(const std::string& id) const {
  // This process knows which of its own lists are on their way.
  const bool may_come = !id.starts_with(start_ + "-") || waits_here(id);
  std::vector<RedisReply> known;
  const std::string list = client_.key("impression:" + id);
  const auto is_there = [&] {
    known = client_.call_all({{"GET", list}, {"GET", client_.key("answered:" + id)}, {"PTTL", list}});
    return !known[0].is_null() || !known[1].is_null();
  };
  if (is_there() || !may_come) return known;
  if (!lookers_.try_acquire()) {
    throw ApiError(503, "", "Too many requests wait for lists that are on their way to the server; retry.")
        .retry_after(1);
  }
  const std::unique_ptr<Lookers, void (*)(Lookers*)> place(&lookers_, [](Lookers* all) { all->release(); });
  for (std::chrono::milliseconds pause{10}; pause <= kLongestPause; pause *= 2) {
    std::this_thread::sleep_for(pause);
    if (is_there()) break;
  }
  return known;
}

ImpressionStore::Outcome RedisLists::add(const std::string& id, std::span<const Click> clicks,
                                         std::span<const Event> events) {
  if (!is_impression_id(id)) refuse_unknown_impression();
  const std::vector<RedisReply> known = look_up(id);
  const bool collects = settings_.window.count() > 0;
  if (known[0].is_null() && known[1].is_null() && waits_here(id)) {
    throw ApiError(503, "", "The server of the shared log has not taken this list yet; retry.")
        .retry_after(1);
  }
  if (!known[1].is_null() && collects) return add_late(id, events);
  if (!known[1].is_null()) {
    // Its first acknowledgement may have failed for want of replicas. WAIT counts behind a write.
    std::vector<RedisClient::Command> commands = log_.wait_commands();
    if (!commands.empty()) {
      commands.insert(commands.begin(), {"PEXPIRE", client_.key("answered:" + id), answer_life(settings_)});
      log_.require_replicas(client_.call_all(commands));
    }
    return repeat(id, known[1].text, clicks);
  }
  std::optional<OpenList> list = known[0].is_null() ? std::nullopt : ImpressionFile::decoded(known[0].text);
  if (collects) {
    // The server keeps it for so long after its window.
    if (!list || known[2].number <= kSafetyMs) return add_late(id, events);
    return add_events(id, std::move(*list), events);
  }
  if (list) return accept(id, std::move(*list), clicks);
  throw ApiError(410, "impression",
                 fmt::format("This impression has expired: it is more than {} seconds old, or its process "
                             "could not keep it.",
                             settings_.age.count() / 1000));
}

ImpressionStore::Outcome RedisLists::accept(const std::string& id, OpenList list,
                                            std::span<const Click> clicks) {
  FeedbackRecord& record = list.record;
  record.clicks = clicks_on(std::span(record.docs).first(list.shown), clicks);
  const std::string names[] = {"impression:" + id, "answered:" + id, "log", "rounds", "chain"};
  const std::string body = record_body(record);
  const std::string arguments[] = {body, answer_bytes(record), answer_life(settings_),
                                   fingerprint_of(body).hex(), log_.known()};
  const std::vector<RedisReply> replies =
      client_.run(kAcceptScript, names, arguments, log_.wait_commands());
  const RedisReply& reply = replies.front();
  if (reply.items.empty()) throw ApiError(410, "impression", "This impression has expired.");
  const std::int64_t outcome = reply.items.at(0).number;
  if (outcome > 0) log_.know_round(std::stoull(reply.items.at(1).text));
  log_.require_replicas(replies);
  if (outcome == 0) return repeat(id, reply.items.at(1).text, clicks);
  return {false, false, std::stoull(reply.items.at(1).text), std::move(record.clicks), record.arm};
}

ImpressionStore::Outcome RedisLists::repeat(const std::string& id, const std::string& answer,
                                            std::span<const Click> clicks) const {
  const auto outcome =
      repeated_answer(std::string_view(answer).substr(std::min(answer.find(' ') + 1, answer.size())),
                      whole_number(answer), clicks);
  if (!outcome) throw_error<IoError>("{}: Its value is damaged.", client_.key("answered:" + id));
  return *outcome;
}

ImpressionStore::Outcome RedisLists::add_events(const std::string& id, OpenList list,
                                                std::span<const Event> events) {
  const auto places = places_of(settings_.types, std::span(list.record.docs).first(list.shown), events);
  const std::string names[] = {"impression:" + id, "events:" + id};
  std::vector<std::string> arguments;
  for (std::size_t event = 0; event < events.size(); ++event) {
    const auto& [rank, type] = places[event];
    arguments.push_back(fmt::format("{}:{}", rank, settings_.types.names[type]));
    arguments.push_back(fmt::format("{}", events[event].at > 0 ? events[event].at : utc_milliseconds()));
  }
  const std::vector<RedisReply> replies =
      client_.run(kEventsScript, names, arguments, log_.wait_commands());
  const RedisReply& reply = replies.front();
  if (reply.items.empty()) return add_late(id, events);
  log_.require_replicas(replies);
  const std::vector<std::uint32_t> seen = seen_events(settings_.types, list.shown, reply.items.at(1));
  Outcome outcome{reply.items[0].number == 0 && !events.empty(), false};
  outcome.clicks = finished_record(settings_.types, std::move(list.record), seen).clicks;
  return outcome;
}

ImpressionStore::Outcome RedisLists::add_late(const std::string& id, std::span<const Event> events) {
  require_late(settings_.types, id, events);
  if (events.empty()) return {true, true};
  client_.call({"XADD", client_.key("late"), "MAXLEN", "~", std::string(kMostLate), "*", "events",
                "{" + events_body(id, events, {}, utc_milliseconds()).substr(1) + "}"});
  late_ += events.size();
  return {false, true};
}

std::vector<ImpressionStore::Closed> RedisLists::close_due() {
  std::vector<Closed> closed;
  if (client_.is_away()) return closed;
  const auto begin = std::chrono::steady_clock::now();
  if (settings_.window.count() == 0 || begin < close_due_) return closed;
  close_due_ = begin + kCloseInterval;
  for (;;) {
    const RedisReply ids =
        client_.run(kDueScript, {"due"}, {fmt::format("{}", kDueAtOnce), fmt::format("{}", kLeaseMs)});
    for (const RedisReply& id : ids.items) {
      if (auto one = close(id.text)) closed.push_back(std::move(*one));
    }
    if (std::ssize(ids.items) < kDueAtOnce) return closed;
  }
}

/// Nothing if another process has closed it.
std::optional<ImpressionStore::Closed> RedisLists::close(const std::string& id) {
  for (;;) {
    const std::vector<RedisReply> known = client_.call_all(
        {{"GET", client_.key("impression:" + id)}, {"HKEYS", client_.key("events:" + id)}});
    std::optional<OpenList> list =
        known[0].is_null() ? std::nullopt : ImpressionFile::decoded(known[0].text);
    if (!list) {
      client_.call({"ZREM", client_.key("due"), id});
      return std::nullopt;
    }
    const FeedbackRecord record = finished_record(settings_.types, std::move(list->record),
                                                  seen_events(settings_.types, list->shown, known[1]));
    const std::string body = record_body(record);
    const RedisReply reply =
        client_.run(kCloseScript,
                    {"impression:" + id, "events:" + id, "log", "rounds", "due", "answered:" + id, "chain"},
                    {body, fmt::format("{}", known[1].items.size()), id, answer_life(settings_),
                     fingerprint_of(body).hex(), log_.known()});
    const std::int64_t closed = std::stoll(reply.text);
    if (closed > 0) {
      log_.know_round(static_cast<std::uint64_t>(closed));
      return Closed{record.arm, record.clicks};
    }
    if (closed < 0) return std::nullopt;
  }
}

std::uint64_t append_again(RedisLog& log, const RedisLists::Settings& settings,
                           const FeedbackRecord& record, const std::string& body,
                           const RecordChain* after) {
  const std::string& id = record.impression;
  const RedisReply reply = log.client().run(
      kAgainScript, {"impression:" + id, "answered:" + id, "log", "rounds", "chain", "events:" + id, "due"},
      {body, fingerprint_of(body).hex(), settings.window.count() > 0 ? "closed" : answer_bytes(record),
       answer_life(settings), id, after != nullptr ? fmt::format("{}", after->round) : "",
       after != nullptr ? after->hash : ""});
  const std::uint64_t round = std::stoull(reply.text);
  log.know_round(round);
  return round;
}

ImpressionStore::Counts RedisLists::counts() const {
  const std::lock_guard lock(mutex_);
  return {opened_, waiting_.size() + sending_.size(), dropped_, waiting_bytes_, settings_.limits.bytes,
          late_};
}

}  // namespace olrank
