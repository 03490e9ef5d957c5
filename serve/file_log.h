#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/feedback/feedback_record.h"
#include "core/io/atomic_file.h"
#include "logs/log_text.h"
#include "logs/log_view.h"

namespace olrank {

/// Its members tell about the log of accepted feedback: a file of its own, or a stream that several
/// processes share. What is appended comes from the service's ImpressionStore. A process that only ranks
/// has this one, without records. Thread-safe.
class FeedbackLog {
 public:
  virtual ~FeedbackLog() = default;

  virtual std::uint64_t rounds() const { return 0; }  // durable records
  virtual std::int64_t bytes() const { return 0; }    // 0 where that is not known
  /// Whether a disk fails, so that no more feedback is logged at the moment.
  virtual bool is_failing() const { return false; }
  /// A learner that archives a shared log tells the records that it has.
  virtual std::optional<std::uint64_t> archived() const { return std::nullopt; }
  /// Whether the log is on a server that cannot be reached.
  virtual bool is_away() const { return false; }
  /// Whether that server has fewer records than were acknowledged.
  virtual bool is_behind() const { return false; }
  /// Why the learner of this process no longer follows the log; nothing while it does.
  virtual std::optional<std::string> fault() const { return std::nullopt; }
};

/// The disk is full. The same call succeeds once there is space again.
class LogFull : public IoError {
 public:
  using IoError::IoError;
};

/// The state folder's lock or log was removed or replaced while the service ran, so that another process
/// may use it. The service stops, and writes nothing more.
class StateLost : public IoError {
 public:
  using IoError::IoError;
};

/// This says what stays of a log. Its last segment stays in any case, and so does what a start needs: the
/// records from that of the latest checkpoint on, and those of lists that may still be open. Whole segments
/// go, the oldest first.
struct LogKeep {
  enum class What { kAll, kCheckpoint, kLists, kDays };
  What what = What::kAll;
  std::uint64_t count = 0;  // of lists or days

  /// all, checkpoint, 90d (days) or 1000000 (lists). Throws InvalidArgument.
  static LogKeep parse(std::string_view text);
};

/// Append-only log of accepted feedback: lines with checksums, in round order. A record is acknowledged
/// once it is on disk; records that arrive during a write share the next flush (group commit).
///
/// A log that grows large is closed as a segment, which is renamed, and goes on in a new file; a thread of
/// its own compresses segments and drops those that need not stay. A kill between any two of these steps
/// leaves the log whole.
class FileLog : public FeedbackLog {
 public:
  /// Locks the file, if it exists, and verifies every record, without changing anything. Throws DataError
  /// for anything but valid records and the torn end that a crash leaves, unless its loss is accepted. With
  /// `to_round` the log ends with that record, and InvalidArgument says if it has fewer.
  enum class Access { kWrite, kRead };
  FileLog(const std::filesystem::path& path, std::size_t latest, bool accept_loss = false,
          Access access = Access::kWrite, std::optional<std::uint64_t> to_round = std::nullopt);
  ~FileLog() override;
  FileLog(const FileLog&) = delete;
  FileLog& operator=(const FileLog&) = delete;

  /// Creates the file or repairs its end: what does not belong to the log is moved to a file next to it,
  /// with a warning. The first append() does this, too.
  void begin_writing();
  /// The survey tells what the file held when it was opened.
  const LogSurvey& survey() const { return survey_; }
  /// Where begin_writing() would move the end.
  std::filesystem::path next_cut_path() const;
  /// Where begin_writing() moved the end; empty if it did not.
  const std::filesystem::path& cut_to() const { return cut_to_; }

  const std::filesystem::path& path() const { return path_; }
  Access access() const { return access_; }
  /// The rounds before the first one that is still there.
  std::uint64_t dropped() const { return dropped_; }
  std::int64_t begin() const { return text()->begin(); }
  /// The files as they are now.
  std::shared_ptr<const LogText> text() const;

  struct Segments {
    std::int64_t bytes = std::int64_t{64} << 20;  // at which one is closed
    LogKeep keep{};
    /// Tells how long a list may await feedback, or be in a file from which a start takes it up.
    std::function<std::chrono::milliseconds()> answers{};
  };
  /// Closes and compresses segments from now on. After begin_writing().
  void keep_small(const Segments& segments);
  /// Does it at once, with what is there, and throws what that thread would say.
  void compact(const Segments& segments);
  /// A checkpoint on disk has learned this round: earlier ones may be dropped.
  void allow_dropping(std::uint64_t before);

  /// Position of the first of the latest records when the log was opened.
  std::int64_t latest_begin() const { return survey_.latest_begin; }

  /// Runs before each write to the folder, and throws if none may follow.
  void guard_writes(std::function<void()> guard) { guard_ = std::move(guard); }
  /// Runs that guard. Throws StateLost if the file was removed or replaced.
  void require_writable() const;

  /// Assigns the record its round and returns it once the record is durable. Thread-safe. Throws LogFull,
  /// or IoError after a disk error that cannot be undone; every later call then throws too.
  std::uint64_t append(const FeedbackRecord& record) { return append_all({record_body(record)}); }
  /// Appends several lines, given without their rounds and checksums, which become durable together;
  /// returns the round of the first.
  std::uint64_t append_all(std::vector<std::string> bodies) { return await(enqueue(std::move(bodies))); }

  struct Batch;
  /// Lines that wait for a flush, after all that were enqueued before.
  struct Ticket {
    std::shared_ptr<Batch> batch;
    std::size_t place = 0;
  };
  Ticket enqueue(std::vector<std::string> bodies);
  /// Returns once they are durable, as append_all().
  std::uint64_t await(const Ticket& ticket);
  /// Where a durable line of the ticket begins.
  static std::int64_t begin_of(const Ticket& ticket, std::size_t line);

  /// They tell what to say once the disk refuses records, and once it takes them again. Without them, each
  /// append() is the feedback of one request, and those that were refused are counted.
  struct DiskWords {
    std::string_view refused;
    std::string_view taken;
  };
  void say_of_disk(DiskWords words) { words_ = words; }
  /// Whether the last record found the disk full, or another disk error.
  bool is_failing() const override { return failed_ > 0; }

  std::uint64_t rounds() const override;
  std::int64_t bytes() const override;
  /// The line of the record that ends at this position, without its newline; empty if none does.
  std::string line_before(std::int64_t position) const;

  /// Sets a callback that runs, without locks held, after records become durable.
  void on_growth(std::function<void()> listener) { listener_ = std::move(listener); }

  /// Reads durable records from a byte position on. Not thread-safe.
  class Reader {
   public:
    Reader(const FileLog& log, std::int64_t position) : log_(log), position_(position) {}

    /// Gets the next line without its newline, valid until the next call. False at the durable end.
    bool next(std::string_view& line);
    std::int64_t position() const { return position_; }

   private:
    const FileLog& log_;
    std::int64_t position_;  // just past the last line returned
    std::string lines_;
    std::size_t used_ = 0;  // bytes of them already returned
  };

 private:
  void open(int flags);
  void report(const std::exception_ptr& failure, std::uint64_t calls);
  std::string lost_text() const;  // what --accept-loss cuts
  [[noreturn]] void refuse_damage() const;
  [[noreturn]] void refuse_change() const;
  void cut_off();
  void cut_segments(const std::vector<std::filesystem::path>& damaged);
  void close_segment();
  void compress_segments();
  void drop_segments();
  void reopen();
  void tidy();
  /// Writes one batch, releasing the lock during the disk write.
  void write(std::unique_lock<std::mutex>& lock);
  void store(const std::string& bytes);

  std::filesystem::path path_;
  Access access_;
  std::optional<Descriptor> file_;
  mutable std::mutex text_mutex_;
  std::shared_ptr<const LogText> text_;
  std::int64_t grows_at_ = 0;  // where the open file begins; used by the writing thread
  LogSurvey survey_;
  std::int64_t surveyed_end_ = 0;
  std::filesystem::path cut_to_;
  std::function<void()> guard_;
  std::optional<DiskWords> words_;
  std::function<void()> listener_;

  mutable std::mutex mutex_;
  std::condition_variable written_;
  std::shared_ptr<Batch> next_batch_;
  bool repaired_ = false;  // by begin_writing()
  bool writing_ = false;
  std::exception_ptr fatal_error_;
  std::atomic<std::uint64_t> failed_ = 0;  // calls that the disk refused since the last one that it took
  std::uint64_t rounds_ = 0;
  std::int64_t bytes_ = 0;

  std::atomic<std::uint64_t> dropped_ = 0;
  mutable std::mutex files_;  // held while a segment is closed, so that no reader misses the file
  Segments segments_;
  std::int64_t close_at_ = 0;  // bytes of the open file at which it is closed next; 0: never
  std::condition_variable tidy_;
  bool untidy_ = false;
  bool stopping_ = false;
  std::atomic<std::uint64_t> droppable_ = 0;
  bool refused_ = false;  // the disk had no space for the compressed form of a segment
  std::thread tidying_;
};

/// Returns what is between the round of a record's line and its checksum.
std::string_view body_of(std::string_view line);

/// Returns what an allocation of so many bytes takes from the heap: glibc adds a header, rounds up to 16
/// bytes, takes at least 32, and rounds large allocations up to whole pages.
inline std::size_t heap_bytes(std::size_t bytes) {
  if (bytes == 0) return 0;
  constexpr std::size_t kLarge = std::size_t{128} << 10;
  const std::size_t unit = bytes >= kLarge ? 4096 : 16;
  const std::size_t taken = (bytes + (bytes >= kLarge ? 16 : 8) + unit - 1) / unit * unit;
  return taken < 32 ? 32 : taken;
}

/// Returns what a string with this capacity takes, beyond the object itself.
inline std::size_t string_heap_bytes(std::size_t capacity) {
  static const std::size_t inline_capacity = std::string().capacity();
  return capacity > inline_capacity ? heap_bytes(capacity + 1) : 0;
}
inline std::size_t heap_bytes(const std::string& text) {
  return string_heap_bytes(text.capacity());
}
template <class T>
std::size_t heap_bytes(const std::vector<T>& values) {
  return heap_bytes(values.capacity() * sizeof(T));
}

}  // namespace olrank
