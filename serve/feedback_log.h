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

/// No space is left for feedback; once there is some, the same call succeeds.
class LogFull : public IoError {
 public:
  using IoError::IoError;
};

/// What opening a log found.
struct LogSurvey {
  std::uint64_t records = 0;
  std::int64_t bytes = 0;
  std::int64_t cut_bytes = 0;          // behind the last valid record, moved aside
  std::filesystem::path cut_to;        // where they are now
  std::vector<FeedbackRecord> latest;  // as many as were asked for, oldest first, without inputs
};

/// The accepted feedback in order: lines with checksums, appended and never changed. A record is
/// acknowledged when it is on the disk; records that arrive while others are being written go together in
/// one flush.
class FeedbackLog {
 public:
  /// Opens or makes the file, checks every record, and cuts off what a crash left behind the last valid
  /// one. The `latest` records come back in the survey. Throws DataError, and changes nothing, where valid
  /// records stand behind a damaged one.
  FeedbackLog(const std::filesystem::path& path, std::size_t latest);
  ~FeedbackLog();
  FeedbackLog(const FeedbackLog&) = delete;
  FeedbackLog& operator=(const FeedbackLog&) = delete;

  const LogSurvey& survey() const { return survey_; }
  const std::filesystem::path& path() const { return path_; }

  /// Gives the record its round and returns it when it is durable. Any thread. Throws LogFull, or IoError
  /// for a disk that cannot be trusted any more: then every later call throws too.
  std::uint64_t append(const FeedbackRecord& record);

  std::uint64_t rounds() const;  // durable ones
  std::int64_t bytes() const;

  /// Called after records became durable, without locks held.
  void on_growth(std::function<void()> listener) { listener_ = std::move(listener); }

  /// Reads durable records from a position on; one thread.
  class Reader {
   public:
    Reader(const FeedbackLog& log, std::int64_t position);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    /// The next line without its newline; false when all durable ones are read. Valid until the next call.
    bool next(std::string_view& line);
    std::int64_t position() const { return position_; }

   private:
    const FeedbackLog& log_;
    int descriptor_ = -1;
    std::int64_t position_;  // behind the line given last
    std::string buffer_;
    std::size_t used_ = 0;  // of the buffer
  };

 private:
  struct Batch {
    std::vector<std::string> bodies;
    std::uint64_t first_round = 0;
    bool done = false;
    std::exception_ptr failure;
  };

  void inspect(std::size_t latest);
  void refuse_damage(std::string_view text, std::size_t end) const;
  void cut_off(std::int64_t end);
  /// Writes one batch; the lock is not held while the disk works.
  void write(std::unique_lock<std::mutex>& lock);
  void store(const std::string& bytes);

  std::filesystem::path path_;
  int descriptor_ = -1;
  LogSurvey survey_;
  std::function<void()> listener_;

  mutable std::mutex mutex_;
  std::condition_variable written_;
  std::shared_ptr<Batch> gathering_ = std::make_shared<Batch>();
  bool writing_ = false;
  std::exception_ptr broken_;
  std::uint64_t rounds_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace olrank
