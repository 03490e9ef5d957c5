#include "serve/redis_documents.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace olrank {
namespace {

constexpr std::int64_t kLinesAtOnce = 1000;
constexpr std::chrono::milliseconds kWait{100};

/// 0 if the stream has other lines than the caller knows. A learner that starts sends its own documents
/// before it begins the records: until then the requests of other processes wait.
constexpr const char* kAppendLinesScript = R"lua(
if ARGV[5] ~= '' and redis.call('EXISTS', KEYS[4]) == 0 then
  return redis.error_reply('LOST The server has no documents yet: they are stored once a learner has started')
end
local last = redis.call('HMGET', KEYS[2], 'round', 'hash')
if (last[1] or '0') ~= ARGV[1] or (last[2] or '') ~= ARGV[2] then return 0 end
local line = tonumber(ARGV[1])
for i = 6, #ARGV, 3 do
  line = line + 1
  redis.call('XADD', KEYS[1], string.format('%d-0', line), 'record', ARGV[i + 1], 'before', ARGV[i + 2])
  if ARGV[i] ~= '' then  -- alone there, whichever others were stored with it
    local newest = string.gsub(ARGV[i + 1], ',"more":%d+', '', 1)
    redis.call('HSET', KEYS[3], ARGV[i], newest)
  end
end
redis.call('HSET', KEYS[2], 'round', ARGV[3], 'hash', ARGV[4])
return 1
)lua";

/// 0 as above. Versions only rise and deletions come last, so that a learner with fewer lines changes
/// nothing of what another one has set meanwhile.
constexpr const char* kSetNewestScript = R"lua(
local last = redis.call('HMGET', KEYS[1], 'round', 'hash')
if (last[1] or '0') ~= ARGV[1] or (last[2] or '') ~= ARGV[2] then return 0 end
local function order(body)
  local deleted = string.sub(body, -15) == ',"deleted":true' and 1 or 0
  return 2 * tonumber(string.match(body, ',"version":(%d+)')) + deleted
end
for i = 3, #ARGV, 2 do
  local known = redis.call('HGET', KEYS[2], ARGV[i])
  if not known or order(known) < order(ARGV[i + 1]) then redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1]) end
end
return 1
)lua";

}  // namespace

RecordChain RedisDocuments::chain() const {
  const RedisReply reply = client_.call({"HMGET", client_.key("documents-chain"), "round", "hash"});
  RecordChain chain;
  chain.round = reply.items.at(0).whole();
  chain.hash = reply.items.at(1).text;
  return chain;
}

std::vector<StreamRecord> RedisDocuments::lines(std::uint64_t after, std::uint64_t end) const {
  return log_.records(after + 1, end, kLinesAtOnce, "documents");
}

void RedisDocuments::wait(std::uint64_t line) const {
  client_.call({"XREAD", "COUNT", "1", "BLOCK", fmt::format("{}", kWait.count()), "STREAMS",
                client_.key("documents"), fmt::format("{}-0", line)});
}

bool RedisDocuments::append(RecordChain known, const std::vector<Line>& lines, bool is_request) const {
  std::vector<RedisClient::Command> wait;
  if (is_request) wait = log_.wait_commands();
  if (lines.empty() && wait.empty()) return true;
  std::vector<std::string> arguments = {fmt::format("{}", known.round), known.hash, "", "",
                                        is_request ? "1" : ""};
  for (const Line& line : lines) {
    arguments.insert(arguments.end(), {line.id, line.body, known.hash});
    known.add(line.body);
  }
  arguments[2] = fmt::format("{}", known.round);
  arguments[3] = known.hash;
  const std::string names[] = {"documents", "documents-chain", "documents-newest", "rounds"};
  const std::vector<RedisReply> replies = client_.run(kAppendLinesScript, names, arguments, wait);
  if (replies.front().number == 0) return false;
  if (is_request) log_.require_replicas(replies);
  return true;
}

void RedisDocuments::each_newest(const std::function<void(std::string_view body)>& visit) const {
  std::string cursor = "0";
  do {
    RedisReply part = client_.call({"HSCAN", client_.key("documents-newest"), cursor, "COUNT", "1000"});
    cursor = part.items.at(0).text;
    const std::vector<RedisReply>& pairs = part.items.at(1).items;
    for (std::size_t item = 1; item < pairs.size(); item += 2) visit(pairs[item].text);
  } while (cursor != "0");
}

bool RedisDocuments::set_newest(const RecordChain& there, const std::vector<Line>& documents) const {
  const std::vector<std::string> names = {"documents-chain", "documents-newest"};
  const std::vector<std::string> none = {fmt::format("{}", there.round), there.hash};
  std::vector<std::string> arguments = none;
  for (const Line& one : documents) {
    arguments.insert(arguments.end(), {one.id, one.body});
    if (std::ssize(arguments) < 2 * kLinesAtOnce && &one != &documents.back()) continue;
    if (client_.run(kSetNewestScript, names, std::exchange(arguments, none)).number == 0) return false;
  }
  return true;
}

}  // namespace olrank
