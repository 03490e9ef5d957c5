#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/redis_log.h"

namespace olrank {

/// The log of the documents that the processes of a shared log store: a stream of its server,
/// PREFIX:documents. Its entries have the numbers of the lines as IDs, and each the hash of those before.
/// PREFIX:documents-chain has their number and hash, and PREFIX:documents-newest the latest version of each
/// document, so that what the learners have can leave the stream. Thread-safe. Throws as RedisClient does.
class RedisDocuments {
 public:
  explicit RedisDocuments(RedisLog& log) : log_(log), client_(log.client()) {}

  std::string place() const { return client_.address().text(); }
  /// The hash of all lines.
  RecordChain chain() const;
  /// The lines after this one that the stream still has, up to line `end`; not all of them at once.
  std::vector<StreamRecord> lines(std::uint64_t after, std::uint64_t end) const;
  /// Waits a moment for a line behind this one.
  void wait(std::uint64_t line) const;

  struct Line {
    std::string id;  // of its document; empty: the line changes none
    std::string body;
  };
  /// Appends all of them behind the lines of `known`. False if there are others: then it changes nothing.
  /// A request's lines need a log that has begun, and the replicas of the server that it wants.
  bool append(RecordChain known, const std::vector<Line>& lines, bool is_request) const;
  /// Calls `visit` with the latest version of each document, perhaps twice.
  void each_newest(const std::function<void(std::string_view body)>& visit) const;
  /// Sets them while the stream ends with the lines of `there`. False once it does not.
  bool set_newest(const RecordChain& there, const std::vector<Line>& documents) const;
  /// Whether a learner has told within this time how much it has.
  bool has_learner(std::chrono::milliseconds within) const { return log_.has_learner(within); }

 private:
  RedisLog& log_;
  RedisClient& client_;
};

}  // namespace olrank
