#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "serve/file_log.h"
#include "serve/learner.h"
#include "serve/redis_log.h"

namespace olrank {

/// Ties the learner of this process to a shared log: archives the stream in its own log, from which it
/// learns, and publishes what it has learned. Two such processes of one prefix reach the same bits, so that
/// each is the other's standby.
class StreamArchive {
 public:
  struct Settings {
    std::string name;           // of this learner among those of the prefix
    std::uint64_t keep = 1000;  // archived records that stay in the stream
    bool accept_loss = false;
  };
  /// Throws IoError for a stream that does not continue the log.
  StreamArchive(RedisLog& stream, FileLog& log, Learner& learner, Settings settings);
  ~StreamArchive();
  StreamArchive(const StreamArchive&) = delete;
  StreamArchive& operator=(const StreamArchive&) = delete;

  void start();
  void stop();
  /// Throws StateLost with what ended the archive: a gap in the stream, replaced settings, a lost folder.
  void require_running() const;

 private:
  void run(const std::function<void()>& step);
  void archive();
  void publish();
  void pause(int milliseconds) const;

  RedisLog& stream_;
  FileLog& log_;
  Learner& learner_;
  Settings settings_;
  std::atomic<bool> stopping_ = false;
  std::int64_t told_ = 0;  // when it last told how far it is, in ms
  std::thread archiving_;
  std::thread publishing_;
  mutable std::mutex mutex_;
  std::string failure_;
};

}  // namespace olrank
