#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/file_log.h"
#include "serve/redis_client.h"

namespace olrank {

/// The processes that share a log must have these in common.
struct SharedSettings {
  std::string identity;                 // as print_identity() writes it
  std::string model;                    // bytes of the model to start from; empty without one
  std::string arms;                     // as a state folder keeps them; empty without arms
  std::vector<std::string> arm_models;  // bytes, in the plan's order
  std::string lists;                    // how lists are kept, as lines of "KEY is VALUE"

  std::string digest() const;
  /// "cutoff is 10, not 5" for each setting that differs from the stored ones.
  std::string difference_to(const SharedSettings& stored) const;
};

/// The processes that share a log no longer have this one's settings.
class SettingsReplaced : public StateLost {
 public:
  using StateLost::StateLost;
};

/// A record of the stream is not the successor of those that the reader has.
class RecordsDiffer : public IoError {
 public:
  using IoError::IoError;
};

/// A hash over records in their order. Each record of the stream carries the hash of those before it, so
/// that a learner with different records notices.
struct RecordChain {
  std::uint64_t begin = 0;  // it covers the records after this round
  std::uint64_t round = 0;  // of its last record
  std::string hash;         // empty before its first record

  void add(std::string_view body);  // as kAppendScript adds it
  /// Covers the records of a log after round `begin` up to round `end`.
  static RecordChain of(const FileLog& log, std::uint64_t begin, std::uint64_t end);
};

/// An entry of the stream.
struct StreamRecord {
  std::uint64_t round = 0;
  std::string body;
  std::optional<std::string> before;  // hash of the chain before it; earlier versions gave none
};

/// The server knows this of the stream.
struct StreamState {
  std::optional<std::uint64_t> rounds;  // none: the server has lost its counter
  std::optional<RecordChain> chain;     // as the last record left it that was not of an earlier version
};

/// A function for scripts: append(log, rounds, chain, body, hash of the body, known) returns the round of
/// the new record, or nil and why there is none. A server with fewer records than RedisLog::known() says,
/// or than another process has said, has lost some: it takes none until a learner has sent them again, or
/// has given them up. Without `known` nothing is asked.
inline constexpr std::string_view kAppendScript = R"lua(
local function append(log, rounds, chain, body, hash, known)
  local count = tonumber(redis.call('GET', rounds))
  if not count then
    return nil, redis.error_reply('LOST The server has lost its data: feedback waits for a learner that starts')
  end
  local last = redis.call('HMGET', chain, 'round', 'hash', 'awaited', 'cleared')
  local seen, cleared = string.match(known, '(%d+) (%d+)')
  local awaited = seen and tonumber(last[3]) or 0
  if seen and (tonumber(last[4]) or 0) <= tonumber(cleared) then awaited = math.max(awaited, tonumber(seen)) end
  if count < awaited then
    redis.call('HSET', chain, 'awaited', string.format('%d', awaited))
    return nil, redis.error_reply('BEHIND The server came back with fewer records than were acknowledged: '
      .. 'feedback waits for a learner that has the others')
  end
  local round = string.format('%d', count + 1)
  local before = tonumber(last[1]) == count and last[2] or ''
  redis.call('XADD', log, round .. '-0', 'record', body, 'before', before)
  redis.call('SET', rounds, round)
  if before == '' then redis.call('HSET', chain, 'begin', string.format('%d', count)) end
  redis.call('HSET', chain, 'round', round, 'hash', redis.sha1hex(before .. hash))
  return round
end
)lua";

/// The feedback log as a stream of a Redis or Valkey server, PREFIX:log. Its entries have the rounds as
/// IDs, which PREFIX:rounds counts; beside it lie the hash of its records (PREFIX:chain), the settings
/// (PREFIX:service), the latest model (PREFIX:model) and how far each learner has archived the stream
/// (PREFIX:learners). Thread-safe.
class RedisLog : public FeedbackLog {
 public:
  struct Durability {
    bool assume = false;        // do not ask the server whether it keeps what it has acknowledged
    std::int64_t replicas = 0;  // that must have a record before it is acknowledged
  };
  RedisLog(RedisClient& client, Durability durability) : client_(client), durability_(durability) {}

  RedisClient& client() const { return client_; }
  /// Throws IoError for a server that may lose what it has acknowledged.
  void require_durable() const;
  /// WAIT, where records must have replicas; to be sent behind what makes a record.
  std::vector<RedisClient::Command> wait_commands() const;
  /// Throws IoError if too few replicas have the record.
  void require_replicas(const std::vector<RedisReply>& replies) const;

  /// None before the first learner.
  std::optional<SharedSettings> settings() const;
  /// Stores the settings of a new prefix, or with `replace` others in place of its own. Throws
  /// InvalidArgument, with the difference, if it has others.
  void begin(const SharedSettings& settings, bool replace);

  /// The records that this process knows of: as poll() found them last, or as its own feedback was counted.
  std::uint64_t rounds() const override { return rounds_; }
  /// For append(): the records, and when such knowledge was last given up.
  std::string known() const;
  void know_round(std::uint64_t round) {
    for (std::uint64_t known = rounds_; known < round && !rounds_.compare_exchange_weak(known, round);) {
    }
  }
  bool is_failing() const override { return archive_fails_; }
  bool is_away() const override { return client_.is_away(); }
  bool is_behind() const override { return behind_; }
  std::optional<std::string> fault() const override {
    const std::lock_guard lock(mutex_);
    return fault_;
  }
  void set_fault(std::string why) {
    const std::lock_guard lock(mutex_);
    fault_ = std::move(why);
  }
  std::optional<std::uint64_t> archived() const override {
    return archived_ < 0 ? std::nullopt : std::optional<std::uint64_t>(archived_);
  }
  void set_archived(std::uint64_t records, bool fails) {
    archived_ = static_cast<std::int64_t>(records);
    archive_fails_ = fails;
  }
  std::int64_t model_round() const { return model_round_; }  // −1 before the first model
  /// Asks for them. Throws IoError if the server has lost its data, and SettingsReplaced if the prefix has
  /// other settings than begin() stored or settings() read. Says once if the server has fewer records than
  /// this process knows of.
  StreamState poll();

  /// Begins an empty stream behind the records of a chain, unless somebody else was faster.
  void begin_after(const RecordChain& chain) const;
  /// Restores a counter that is missing, or lower than the last record of the stream, and says so. False if
  /// there is neither a counter nor a record.
  bool mend_counter() const;
  /// Nobody may append before the stream has this round again.
  void await(std::uint64_t round) const;
  /// The records that are missing will not come back: all processes go on without them.
  void stop_awaiting() const;
  /// The records from round `from` to `to` that the stream has, at most `most`.
  std::vector<StreamRecord> records(std::uint64_t from, std::uint64_t to, std::int64_t most,
                                    std::string_view stream = "log") const;
  std::optional<std::uint64_t> first_round() const;
  /// The bodies of the records after round `after`, at most `most`; waits up to `wait` for one. Throws
  /// IoError, with the missing rounds, if the stream was trimmed behind them, and RecordsDiffer for one
  /// that does not continue `chain`.
  std::vector<std::string> read(std::uint64_t after, std::int64_t most, std::chrono::milliseconds wait,
                                const RecordChain* chain = nullptr) const;
  /// A learner tells how far it has archived the stream and that of the documents. Cuts what every learner
  /// of the last day has archived, but for `keep` records. The documents stay while all records are there,
  /// as then a new learner can begin.
  struct Archived {
    std::uint64_t records = 0;
    std::uint64_t documents = 0;  // lines
  };
  void trim(const std::string& learner, Archived archived, std::uint64_t keep, std::int64_t now_ms) const;
  /// Whether a learner has told that within this time.
  bool has_learner(std::chrono::milliseconds within) const;
  /// Milliseconds since 1970 by the server's clock, as those of learners may differ.
  std::int64_t server_milliseconds() const;

  /// Stores a model unless there is one of this or a later round.
  void publish(std::uint64_t round, const std::string& snapshot);
  /// Nothing before the first one.
  std::optional<std::string> model() const;

 private:
  RedisClient& client_;
  Durability durability_;
  std::string digest_;
  std::atomic<std::uint64_t> rounds_ = 0;
  std::atomic<std::int64_t> model_round_ = -1;
  std::atomic<std::int64_t> archived_ = -1;
  std::atomic<bool> archive_fails_ = false;
  std::atomic<bool> behind_ = false;
  std::atomic<std::uint64_t> cleared_ = 0;  // when awaited records were given up last, as stored
  mutable std::mutex mutex_;
  std::optional<std::string> fault_;
};

}  // namespace olrank
