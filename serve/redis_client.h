#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace olrank {

/// The server cannot be reached. What was sent may have been done or not.
class RedisAway : public IoError {
 public:
  using IoError::IoError;
};

/// The server refused a command.
class RedisError : public IoError {
 public:
  using IoError::IoError;
};

/// 40 lower-case digits, as redis.sha1hex() of the server's scripts gives them.
std::string sha1_hex(std::string_view bytes);

/// redis://[USER@]HOST[:PORT]/PREFIX, or rediss:// for TLS.
struct RedisAddress {
  bool tls = false;
  std::string user;
  std::string host;
  int port = 6379;
  std::string prefix;  // of all keys

  /// Throws InvalidArgument. A password in the text is refused, as others can read command lines.
  static RedisAddress parse(std::string_view text);
  std::string text() const;
};

struct RedisSettings {
  RedisAddress address;
  std::string password{};               // empty: none
  std::filesystem::path ca{};           // certificates that sign the server's; empty: the system's
  std::filesystem::path certificate{};  // of this process, with its key; empty: none
  std::filesystem::path key{};
  std::chrono::milliseconds timeout{1000};  // of a connection attempt, and of an answer
  bool ranks = true;                        // the process, also while the server is away
};

/// Returns the whole number with which a word of the text begins, and 0 without one. Words are one space
/// apart and count from 0.
std::uint64_t whole_number(std::string_view text, int word = 0);

struct RedisReply {
  enum class Kind { kNull, kText, kNumber, kList, kError };
  Kind kind = Kind::kNull;
  std::string text;
  std::int64_t number = 0;
  std::vector<RedisReply> items;

  bool is_null() const { return kind == Kind::kNull; }
  /// The whole number that the text begins with, or without one 0.
  std::uint64_t whole() const { return whole_number(text); }
};

/// A Redis or Valkey server, over connections that are kept for later calls. hiredis reads and writes its
/// protocol. Thread-safe.
///
/// Once the server could not be reached, calls fail at once, without waiting for it, until a call of
/// probe() reaches it again. Threads that may wait do that.
class RedisClient {
 public:
  using Command = std::vector<std::string>;

  /// Does not connect. Throws IoError for certificates that cannot be read.
  explicit RedisClient(RedisSettings settings);
  ~RedisClient();
  RedisClient(const RedisClient&) = delete;
  RedisClient& operator=(const RedisClient&) = delete;

  const RedisAddress& address() const { return settings_.address; }
  std::string key(std::string_view name) const;

  /// Throws RedisAway, and RedisError for an answer that is an error. A command whose connection breaks is
  /// sent once more: repeated, it does no harm, but that late events may be kept twice.
  RedisReply call(Command command) { return std::move(call_all({std::move(command)}).front()); }
  /// Calls several commands on one connection, sent together.
  std::vector<RedisReply> call_all(const std::vector<Command>& commands) { return call_all(commands, {}); }
  /// Runs a script, which is one step for the server, with the keys of these names, and then further
  /// commands on the same connection, unless the script answers with an error or an empty list.
  std::vector<RedisReply> run(const std::string& script, std::span<const std::string> names,
                              std::span<const std::string> arguments, std::span<const Command> further);
  RedisReply run(const std::string& script, const std::vector<std::string>& names,
                 const std::vector<std::string>& arguments) {
    return std::move(run(script, names, arguments, {}).front());
  }

  /// Tries to reach a server that is away. Throws RedisAway if it still is.
  void probe();
  bool is_away() const { return away_; }

  /// While a process starts, a call does not fail for a server that is away: it calls a copy of this, which
  /// waits a moment or throws, and tries again.
  void wait_with(std::function<void(const std::string& problem)> wait) { wait_ = std::move(wait); }

 private:
  class Connection;
  class Tls;

  std::vector<RedisReply> attempt(const std::vector<Command>& commands, std::span<const Command> further);
  std::vector<RedisReply> call_all(const std::vector<Command>& commands, std::span<const Command> further);

  RedisSettings settings_;
  std::function<void(const std::string&)> wait_;
  std::unique_ptr<Tls> tls_;
  std::atomic<bool> away_{false};
  std::atomic<bool> was_reached_{false};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_;
};

}  // namespace olrank
