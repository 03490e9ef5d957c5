#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/error.h"
#include "serve/feedback_record.h"

namespace olrank {

/// The disk is full. The same call succeeds once there is space again.
class LogFull : public IoError {
 public:
  using IoError::IoError;
};

/// What recovery found when the log was opened.
struct LogRecovery {
  std::uint64_t records = 0;
  std::int64_t bytes = 0;
  std::int64_t cut_bytes = 0;          // torn bytes after the last valid record, moved to `cut_to`
  std::filesystem::path cut_to;        // empty if nothing was cut off
  std::vector<FeedbackRecord> latest;  // up to the requested number, oldest first, without inputs
};

/// Append-only log of accepted feedback: lines with checksums, in round order. A record is acknowledged
/// once it is on disk; records that arrive during a write share the next flush (group commit).
class FeedbackLog {
 public:
  /// Opens or creates the file, verifies every record, and cuts off a torn tail. recovery() holds the
  /// last `latest` records. Throws DataError, and changes nothing, if valid records follow a damaged one.
  FeedbackLog(const std::filesystem::path& path, std::size_t latest);
  ~FeedbackLog();
  FeedbackLog(const FeedbackLog&) = delete;
  FeedbackLog& operator=(const FeedbackLog&) = delete;

  const LogRecovery& recovery() const { return recovery_; }
  const std::filesystem::path& path() const { return path_; }

  /// Assigns the record its round and returns it once the record is durable. Thread-safe. Throws LogFull,
  /// or IoError after a disk error that cannot be undone; every later call then throws too.
  std::uint64_t append(const FeedbackRecord& record);

  std::uint64_t rounds() const;  // durable rounds
  std::int64_t bytes() const;

  /// Sets a callback that runs, without locks held, after records become durable.
  void on_growth(std::function<void()> listener) { listener_ = std::move(listener); }

  /// Reads durable records from a byte position on. Not thread-safe.
  class Reader {
   public:
    Reader(const FeedbackLog& log, std::int64_t position);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    /// Gets the next line without its newline, valid until the next call. False at the durable end.
    bool next(std::string_view& line);
    std::int64_t position() const { return position_; }

   private:
    const FeedbackLog& log_;
    int descriptor_ = -1;
    std::int64_t position_;  // just past the last line returned
    std::string buffer_;
    std::size_t used_ = 0;  // bytes of the buffer already returned
  };

 private:
  struct Batch {
    std::vector<std::string> bodies;
    std::uint64_t first_round = 0;
    bool done = false;
    std::exception_ptr failure;
  };

  void recover(std::size_t latest);
  void reject_damage(std::string_view text, std::size_t end) const;
  void cut_off(std::int64_t end);
  /// Writes one batch, releasing the lock during the disk write.
  void write(std::unique_lock<std::mutex>& lock);
  void store(const std::string& bytes);

  std::filesystem::path path_;
  int descriptor_ = -1;
  LogRecovery recovery_;
  std::function<void()> listener_;

  mutable std::mutex mutex_;
  std::condition_variable written_;
  std::shared_ptr<Batch> next_batch_ = std::make_shared<Batch>();
  bool writing_ = false;
  std::exception_ptr fatal_error_;
  std::uint64_t rounds_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace olrank
