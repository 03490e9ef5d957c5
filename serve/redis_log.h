#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

/// The feedback log as a stream of a Redis or Valkey server, PREFIX:log. Its entries have the rounds as
/// IDs, which PREFIX:rounds counts; beside it lie the settings (PREFIX:service), the latest model
/// (PREFIX:model) and how far each learner has archived the stream (PREFIX:learners). Thread-safe.
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
  void know_round(std::uint64_t round) {
    for (std::uint64_t known = rounds_; known < round && !rounds_.compare_exchange_weak(known, round);) {
    }
  }
  bool is_failing() const override { return archive_fails_; }
  bool is_away() const override { return client_.is_away(); }
  std::optional<std::uint64_t> archived() const override;
  void set_archived(std::uint64_t records, bool fails) {
    archived_ = static_cast<std::int64_t>(records);
    archive_fails_ = fails;
  }
  std::int64_t model_round() const { return model_round_; }  // −1 before the first model
  /// Asks for them. Throws IoError if the server has lost its data, and SettingsReplaced if the prefix has
  /// other settings than begin() stored or settings() read.
  void poll();

  /// Prepares the stream for an archive of `archived` records, whose last line is `last_line`. Throws
  /// IoError for a stream that does not continue it.
  void continue_from(std::uint64_t archived, std::string_view last_line, bool accept_loss);
  /// The bodies of the records after round `after`, at most `most`; waits up to `wait` for one. Throws
  /// IoError, with the missing rounds, if the stream was trimmed behind them.
  std::vector<std::string> read(std::uint64_t after, std::int64_t most,
                                std::chrono::milliseconds wait) const;
  /// Tells how far `learner` has archived the stream, and cuts what every learner of the last day has
  /// archived, but for `keep` records.
  void trim(const std::string& learner, std::uint64_t archived, std::uint64_t keep,
            std::int64_t now_ms) const;
  /// Milliseconds since 1970 by the server's clock, as those of learners may differ.
  std::int64_t server_milliseconds() const;

  /// Stores a model unless there is one of this or a later round.
  void publish(std::uint64_t round, const std::string& snapshot);
  /// Nothing before the first one.
  std::optional<std::string> model() const;

 private:
  std::optional<std::uint64_t> first_round() const;

  RedisClient& client_;
  Durability durability_;
  std::string digest_;
  std::atomic<std::uint64_t> rounds_ = 0;
  std::atomic<std::int64_t> model_round_ = -1;
  std::atomic<std::int64_t> archived_ = -1;
  std::atomic<bool> archive_fails_ = false;
};

}  // namespace olrank
