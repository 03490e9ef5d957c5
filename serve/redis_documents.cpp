#include "serve/redis_documents.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <utility>

namespace olrank {
namespace {

constexpr std::int64_t kLinesAtOnce = 1000;
constexpr std::chrono::milliseconds kWait{100};

/// 0 if the stream has other lines than the caller knows.
constexpr const char* kAppendLinesScript = R"lua(
local last = redis.call('HMGET', KEYS[2], 'round', 'hash')
if (last[1] or '0') ~= ARGV[1] or (last[2] or '') ~= ARGV[2] then return 0 end
local line = tonumber(ARGV[1])
for i = 5, #ARGV, 3 do
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

}  // namespace

RecordChain RedisDocuments::chain() const {
  const RedisReply reply = client_.call({"HMGET", client_.key("documents-chain"), "round", "hash"});
  RecordChain chain;
  const std::string& round = reply.items.at(0).text;
  std::from_chars(round.data(), round.data() + round.size(), chain.round);
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

bool RedisDocuments::append(RecordChain known, const std::vector<Line>& lines) const {
  const std::vector<RedisClient::Command> wait = log_.wait_commands();
  if (lines.empty() && wait.empty()) return true;
  std::vector<std::string> arguments = {fmt::format("{}", known.round), known.hash, "", ""};
  for (const Line& line : lines) {
    arguments.insert(arguments.end(), {line.id, line.body, known.hash});
    known.add(line.body);
  }
  arguments[2] = fmt::format("{}", known.round);
  arguments[3] = known.hash;
  const std::string keys[] = {client_.key("documents"), client_.key("documents-chain"),
                              client_.key("documents-newest")};
  const std::vector<RedisReply> replies = client_.run(kAppendLinesScript, keys, arguments, wait);
  if (replies.front().number == 0) return false;
  log_.require_replicas(replies);
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

void RedisDocuments::set_newest(const std::vector<Line>& documents) const {
  std::vector<RedisClient::Command> commands;
  for (const Line& one : documents) {
    commands.push_back({"HSET", client_.key("documents-newest"), one.id, one.body});
    if (std::ssize(commands) < kLinesAtOnce && &one != &documents.back()) continue;
    client_.call_all(std::exchange(commands, {}));
  }
}

}  // namespace olrank
