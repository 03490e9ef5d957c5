#include "serve/redis_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>

#include "core/feedback/feedback_record.h"
#include "core/io/fingerprint.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "serve/open_lists.h"
#include "serve/service_identity.h"

namespace olrank {
namespace {

constexpr std::int64_t kReplicaWaitMs = 500;
constexpr std::int64_t kDayMs = 86'400'000;

constexpr const char* kBeginScript = R"lua(
local known = redis.call('HGET', KEYS[1], 'digest')
if known and (known == ARGV[2] or ARGV[1] == '0') then return known end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'digest', unpack(ARGV, 2))
return ARGV[2]
)lua";

constexpr const char* kBeginStreamScript = R"lua(
if redis.call('SETNX', KEYS[1], ARGV[2]) == 0 then return 0 end
redis.call('HSET', KEYS[2], 'begin', ARGV[1], 'round', ARGV[2], 'hash', ARGV[3])
return 1
)lua";

/// {counter before, −1 without; counter now}
constexpr const char* kMendScript = R"lua(
local top = tonumber(redis.call('HGET', KEYS[3], 'round')) or 0
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if last then top = math.max(top, tonumber(string.match(last[1], '^%d+'))) end
local count = tonumber(redis.call('GET', KEYS[2])) or -1
if top > 0 and count < top then redis.call('SET', KEYS[2], string.format('%d', top)) end
return {count, math.max(count, top)}
)lua";

constexpr const char* kPublishScript =
    R"lua(
if redis.call('HGET', KEYS[2], 'digest') ~= ARGV[2] then return -1 end
local known = redis.call('HMGET', KEYS[1], 'round', 'digest')
if known[1] and known[2] == ARGV[2] and tonumber(known[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'round', ARGV[1], 'digest', ARGV[2], 'snapshot', ARGV[3])
return 1
)lua";

constexpr std::pair<const char*, std::string SharedSettings::*> kParts[] = {
    {"identity", &SharedSettings::identity},
    {"model", &SharedSettings::model},
    {"arms", &SharedSettings::arms},
    {"lists", &SharedSettings::lists}};

/// Reads entries: ["ROUND-0", ["record", BODY, "before", HASH]].
std::vector<StreamRecord> records_of(RedisReply& entries) {
  std::vector<StreamRecord> records;
  for (RedisReply& entry : entries.items) {
    if (entry.items.size() != 2) continue;
    StreamRecord record{entry.items[0].whole(), {}, {}};
    std::vector<RedisReply>& fields = entry.items[1].items;
    for (std::size_t field = 0; field + 1 < fields.size(); field += 2) {
      if (fields[field].text == "record") record.body = std::move(fields[field + 1].text);
      if (fields[field].text == "before") record.before = std::move(fields[field + 1].text);
    }
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace

std::string SharedSettings::digest() const {
  Fingerprinter bytes;
  const auto add = [&](std::string_view text) {
    bytes.add(fmt::format("{}:", text.size()));
    bytes.add(text);
  };
  for (const auto& [name, member] : kParts) add(this->*member);
  for (const std::string& arm : arm_models) add(arm);
  return bytes.value().hex();
}

std::string SharedSettings::difference_to(const SharedSettings& stored) const {
  std::string differences = identity_difference(parse_identity(stored.identity, "the prefix"),
                                                parse_identity(identity, "this process"));
  const auto add = [&](const std::string& one) { differences += (differences.empty() ? "" : "; ") + one; };
  std::string_view have = stored.lists;
  std::string_view want = lists;
  while (!have.empty() || !want.empty()) {
    const std::string_view first = have.substr(0, have.find('\n'));
    const std::string_view second = want.substr(0, want.find('\n'));
    const std::size_t value = std::min(second.find(" is ") + 4, second.size());
    if (first != second) add(fmt::format("{}, not {}", first, second.substr(value)));
    have.remove_prefix(std::min(first.size() + 1, have.size()));
    want.remove_prefix(std::min(second.size() + 1, want.size()));
  }
  if (arms != stored.arms || arm_models != stored.arm_models) add("the arms differ");
  return differences;
}

void RedisLog::require_durable() const {
  const std::string where = client_.address().text();
  if (durability_.assume) {
    log_warning(
        "{}: --log-durability assume: The server was not asked whether it keeps the feedback that it has "
        "acknowledged.",
        where);
    return;
  }
  std::vector<RedisReply> replies;
  try {
    replies = client_.call_all({{"CONFIG", "GET", "appendonly"},
                                {"CONFIG", "GET", "appendfsync"},
                                {"CONFIG", "GET", "maxmemory-policy"}});
  } catch (const RedisError& error) {
    const std::string_view why = error.what();
    if (why.find("NOPERM") == std::string_view::npos &&
        why.find("unknown command") == std::string_view::npos)
      throw;
    throw_error<IoError>(
        "{} The server cannot be asked whether it keeps the feedback that it has acknowledged. If it keeps "
        "the feedback (appendonly yes, appendfsync always, no eviction of keys without a limit in time), "
        "start with --log-durability assume.",
        error.what());
  }
  const auto value = [](const RedisReply& reply) {
    return reply.items.size() == 2 ? reply.items[1].text : std::string();
  };
  const auto require = [&](std::string_view name, const std::string& have, std::string_view want) {
    if (have == want) return;
    throw_error<IoError>(
        "{}: The server has '{} {}', so that it may lose acknowledged feedback. Set '{} {}' in its "
        "configuration, or accept the loss with --log-durability assume.",
        where, name, have, name, want);
  };
  require("appendonly", value(replies[0]), "yes");
  require("appendfsync", value(replies[1]), "always");
  if (const std::string policy = value(replies[2]); policy.starts_with("allkeys"))
    require("maxmemory-policy", policy, "noeviction");
}

std::vector<RedisClient::Command> RedisLog::wait_commands() const {
  if (durability_.replicas < 1) return {};
  return {{"WAIT", fmt::format("{}", durability_.replicas), fmt::format("{}", kReplicaWaitMs)}};
}

void RedisLog::require_replicas(const std::vector<RedisReply>& replies) const {
  if (durability_.replicas < 1 || replies.back().number >= durability_.replicas) return;
  throw_error<IoError>("{}: {} of the server's {} that --log-replicas wants have the record so far; retry.",
                       client_.address().text(), replies.back().number,
                       counted(durability_.replicas, "replica"));
}

std::optional<SharedSettings> RedisLog::settings() const {
  const RedisReply all = client_.call({"HGETALL", client_.key("service")});
  if (all.items.empty()) return std::nullopt;
  std::map<std::string, std::string> fields;
  for (std::size_t item = 0; item + 1 < all.items.size(); item += 2)
    fields.emplace(all.items[item].text, all.items[item + 1].text);
  SharedSettings settings;
  for (const auto& [name, member] : kParts) settings.*member = fields[name];
  for (auto arm = fields.find("arm:0"); arm != fields.end();
       arm = fields.find(fmt::format("arm:{}", settings.arm_models.size())))
    settings.arm_models.push_back(arm->second);
  return settings;
}

void RedisLog::begin(const SharedSettings& settings, bool replace) {
  digest_ = settings.digest();
  std::vector<std::string> fields = {replace ? "1" : "0", digest_};
  for (const auto& [name, member] : kParts) fields.insert(fields.end(), {name, settings.*member});
  for (std::size_t arm = 0; arm < settings.arm_models.size(); ++arm)
    fields.insert(fields.end(), {fmt::format("arm:{}", arm), settings.arm_models[arm]});
  if (client_.run(kBeginScript, {"service"}, fields).text == digest_) return;
  throw_error<InvalidArgument>(
      "{} belongs to a service with other settings ({}): give this process the same ones or another "
      "prefix. To change them, stop all processes of the prefix and delete its key {}.",
      client_.address().text(), settings.difference_to(this->settings().value_or(settings)),
      client_.key("service"));
}

void RecordChain::add(std::string_view body) {
  hash = sha1_hex(hash + fingerprint_of(body).hex());
  ++round;
}

RecordChain RecordChain::of(const FileLog& log, std::uint64_t begin, std::uint64_t end) {
  RecordChain chain{begin, 0, {}};
  FileLog::Reader reader(log, 0);
  for (std::string_view line; chain.round < end && reader.next(line);) {
    if (chain.round < begin) {
      ++chain.round;
    } else {
      chain.add(body_of(line));
    }
  }
  return chain;
}

std::string RedisLog::known() const {
  const std::uint64_t cleared = cleared_;  // set after the records that belong to it
  return fmt::format("{} {}", rounds_.load(), cleared);
}

StreamState RedisLog::poll() {
  std::uint64_t known = rounds_;
  const std::vector<RedisReply> replies =
      client_.call_all({{"GET", client_.key("rounds")},
                        {"HGET", client_.key("service"), "digest"},
                        {"HMGET", client_.key("model"), "round", "digest"},
                        {"HMGET", client_.key("chain"), "begin", "round", "hash", "awaited", "cleared"}});
  if (replies[1].is_null()) {
    throw_error<IoError>("{}: The server has lost its data; a learner that starts begins it again.",
                         client_.address().text());
  }
  if (replies[1].text != digest_) {
    throw SettingsReplaced(fmt::format(
        "{}: The settings were replaced, by a learner with other --arms or by hand: start this process "
        "again, and it takes the new ones.",
        client_.address().text()));
  }
  const bool has_model = replies[2].items.size() == 2 && replies[2].items[1].text == digest_;
  model_round_ = has_model ? static_cast<std::int64_t>(replies[2].items[0].whole()) : -1;
  StreamState state;
  if (!replies[0].is_null()) state.rounds = replies[0].whole();
  const std::uint64_t rounds = state.rounds.value_or(0);
  const std::vector<RedisReply>& chain = replies[3].items;
  if (!chain.at(1).is_null()) state.chain = RecordChain{chain[0].whole(), chain[1].whole(), chain[2].text};
  if (const std::uint64_t cleared = chain[4].whole(); cleared > cleared_) {
    rounds_ = known = rounds;
    cleared_ = cleared;
  }
  known = std::max(known, chain[3].whole());
  know_round(std::max(known, rounds));
  if (const bool behind = rounds < known; behind_.exchange(behind) != behind) {
    log_warning("{}: {}", client_.address().text(),
                behind ? fmt::format("The server came back with {}, but {} acknowledged: feedback is "
                                     "rejected until a learner has sent the others again.",
                                     counted(rounds, "record"),
                                     known == 1 ? "1 was" : fmt::format("{} were", known))
                       : "The server takes feedback again.");
  }
  return state;
}

std::optional<std::uint64_t> RedisLog::first_round() const {
  const RedisReply first = client_.call({"XRANGE", client_.key("log"), "-", "+", "COUNT", "1"});
  if (first.items.empty() || first.items[0].items.empty()) return std::nullopt;
  return first.items[0].items[0].whole();
}

void RedisLog::begin_after(const RecordChain& chain) const {
  client_.run(kBeginStreamScript, {"rounds", "chain"},
              {fmt::format("{}", chain.begin), fmt::format("{}", chain.round), chain.hash});
}

bool RedisLog::mend_counter() const {
  const RedisReply counter = client_.run(kMendScript, {"log", "rounds", "chain"}, {});
  const std::int64_t before = counter.items.at(0).number;
  const std::int64_t now = counter.items.at(1).number;
  if (now <= std::max<std::int64_t>(before, 0)) return before >= 0;
  log_warning("{}: The counter of records, {}, was {}. Restored it to {}, which the stream has.",
              client_.address().text(), client_.key("rounds"),
              before < 0 ? std::string("missing") : fmt::format("{}", before), now);
  return true;
}

void RedisLog::await(std::uint64_t round) const {
  client_.call({"HSET", client_.key("chain"), "awaited", fmt::format("{}", round)});
}

void RedisLog::stop_awaiting() const {
  const std::string key = client_.key("chain");
  const std::uint64_t now = std::max(static_cast<std::uint64_t>(utc_milliseconds()), cleared_ + 1);
  client_.call_all({{"HDEL", key, "awaited"}, {"HSET", key, "cleared", fmt::format("{}", now)}});
}

std::vector<StreamRecord> RedisLog::records(std::uint64_t from, std::uint64_t to, std::int64_t most,
                                            std::string_view stream) const {
  RedisReply entries = client_.call({"XRANGE", client_.key(stream), fmt::format("{}-0", from),
                                     fmt::format("{}-0", to), "COUNT", fmt::format("{}", most)});
  return records_of(entries);
}

std::vector<std::string> RedisLog::read(std::uint64_t after, std::int64_t most,
                                        std::chrono::milliseconds wait, const RecordChain* chain) const {
  RedisReply reply =
      client_.call({"XREAD", "COUNT", fmt::format("{}", most), "BLOCK", fmt::format("{}", wait.count()),
                    "STREAMS", client_.key("log"), fmt::format("{}-0", after)});
  std::vector<std::string> bodies;
  std::uint64_t later = 0;  // the first round there, if it is not the next one
  if (!reply.items.empty() && reply.items[0].items.size() == 2) {
    RecordChain known = chain != nullptr ? *chain : RecordChain{after, after, {}};
    for (StreamRecord& record : records_of(reply.items[0].items[1])) {
      if (record.round != after + bodies.size() + 1) {
        later = record.round;
        break;
      }
      // A new chain begins after records of earlier versions.
      if (record.before && record.before->empty()) known = {known.round, known.round, {}};
      if (chain != nullptr && record.before && *record.before != known.hash) {
        if (!bodies.empty()) break;
        throw_error<RecordsDiffer>("{}: Record {} there follows other records than those of the log here.",
                                   client_.address().text(), record.round);
      }
      known.add(record.body);
      bodies.push_back(std::move(record.body));
    }
  }
  if (!bodies.empty()) return bodies;
  const std::uint64_t known = client_.call({"GET", client_.key("rounds")}).whole();
  if (known <= after) return bodies;
  const std::optional<std::uint64_t> first = first_round();
  if (later == 0 && first && *first > after + 1) later = *first;
  if (later == 0 && !first) later = known + 1;
  if (later <= after + 1) return bodies;
  throw_error<IoError>(
      "{}: The stream was trimmed before it was archived here: records {} to {} are missing. Copy "
      "feedback*.jsonl* and checkpoint of another learner of this prefix into the folder.",
      client_.address().text(), after + 1, later - 1);
}

void RedisLog::trim(const std::string& learner, Archived archived, std::uint64_t keep,
                    std::int64_t now_ms) const {
  const std::string key = client_.key("learners");
  // A server without memory refuses the first, and most of all needs the last.
  std::exception_ptr refusal;
  try {
    client_.call(
        {"HSET", key, learner, fmt::format("{} {} {}", archived.records, now_ms, archived.documents)});
  } catch (const RedisError&) {
    refusal = std::current_exception();
  }
  const RedisReply learners = client_.call({"HGETALL", key});
  Archived all = archived;
  for (std::size_t item = 1; item < learners.items.size(); item += 2) {
    const std::string& told = learners.items[item].text;  // earlier versions tell no documents
    if (now_ms - static_cast<std::int64_t>(whole_number(told, 1)) >= kDayMs) continue;
    all.records = std::min(all.records, whole_number(told));
    all.documents = std::min(all.documents, whole_number(told, 2));
  }
  const auto cut = [&](std::string_view stream, std::uint64_t archived_there) {
    if (archived_there > keep)
      client_.call(
          {"XTRIM", client_.key(stream), "MINID", "~", fmt::format("{}-0", archived_there - keep + 1)});
  };
  cut("log", all.records);
  if (all.records > keep) cut("documents", all.documents);
  if (refusal) std::rethrow_exception(refusal);
}

bool RedisLog::has_learner(std::chrono::milliseconds within) const {
  const RedisReply learners = client_.call({"HVALS", client_.key("learners")});
  const std::int64_t now_ms = server_milliseconds();
  return std::any_of(learners.items.begin(), learners.items.end(), [&](const RedisReply& told) {
    return now_ms - static_cast<std::int64_t>(whole_number(told.text, 1)) < within.count();
  });
}

std::int64_t RedisLog::server_milliseconds() const {
  const RedisReply time = client_.call({"TIME"});
  return static_cast<std::int64_t>(time.items.at(0).whole() * 1000 + time.items.at(1).whole() / 1000);
}

void RedisLog::publish(std::uint64_t round, const std::string& snapshot) {
  client_.run(kPublishScript, {"model", "service"}, {fmt::format("{}", round), digest_, snapshot});
}

std::optional<std::string> RedisLog::model() const {
  RedisReply reply = client_.call({"HMGET", client_.key("model"), "digest", "snapshot"});
  if (reply.items.size() != 2 || reply.items[1].is_null() || reply.items[0].text != digest_)
    return std::nullopt;
  return std::move(reply.items[1].text);
}

}  // namespace olrank
