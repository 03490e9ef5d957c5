#include "serve/feedback_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <utility>

#include "core/io/atomic_file.h"
#include "core/io/mapped_memory.h"
#include "core/runtime/log.h"

namespace olrank {
namespace {

constexpr std::int64_t kReadBytes = 1 << 18;

bool is_out_of_space(int error_number) {
  return error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
}

void flush_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw IoError("flush the folder", folder.string(), errno);
  const int flushed = ::fsync(descriptor);
  const int error_number = errno;
  ::close(descriptor);
  if (flushed != 0 && error_number != EINVAL)
    throw IoError("flush the folder", folder.string(), error_number);
}

}  // namespace

FeedbackLog::FeedbackLog(const std::filesystem::path& path, std::size_t latest) : path_(path) {
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw IoError("write", path.string(), errno);
  try {
    recover(latest);
    flush_folder(path.parent_path());
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

FeedbackLog::~FeedbackLog() {
  ::close(descriptor_);
}

void FeedbackLog::recover(std::size_t latest) {
  std::deque<std::string_view> lines;  // the latest records
  std::int64_t end = 0;                // just past the last valid record
  {
    const MappedMemory file = MappedMemory::of_descriptor(descriptor_, path_);
    const std::string_view text = file.text();
    const std::string expected = "{\"round\":";
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t newline = text.find('\n', begin);
      if (newline == std::string_view::npos) break;
      const std::string_view line = text.substr(begin, newline - begin);
      if (!has_valid_check(line) ||
          line.rfind(fmt::format("{}{},", expected, recovery_.records + 1), 0) != 0) {
        break;
      }
      ++recovery_.records;
      end = begin = newline + 1;
      lines.push_back(line);
      if (lines.size() > latest) lines.pop_front();
    }
    reject_damage(text, end);
    recovery_.cut_bytes = std::ssize(text) - end;
    for (const std::string_view line : lines) {
      FeedbackRecord record;
      if (const auto failure = parse_record(line, record)) {
        throw DataError(path_.string(), 0, failure->column, failure->message);
      }
      record.inputs = {};
      recovery_.latest.push_back(std::move(record));
    }
  }
  if (recovery_.cut_bytes > 0) cut_off(end);
  rounds_ = recovery_.records;
  bytes_ = recovery_.bytes = end;
}

/// A crash tears only the end of the log. Valid records after a damaged one mean other damage, and cutting
/// there would lose acknowledged feedback.
void FeedbackLog::reject_damage(std::string_view text, std::size_t end) const {
  std::int64_t valid = 0;
  std::size_t newline = 0;
  for (std::size_t begin = end; (newline = text.find('\n', begin)) != std::string_view::npos;
       begin = newline + 1) {
    if (has_valid_check(text.substr(begin, newline - begin))) ++valid;
  }
  if (valid == 0) return;
  const std::uint64_t line = recovery_.records + 1;
  throw DataError(
      path_.string(), static_cast<std::int64_t>(line), 1,
      fmt::format(
          "Record {} is damaged or missing, but {} valid records follow it. Nothing was changed. Restore "
          "the log from a backup, or truncate it to {} bytes if you can lose every record after "
          "record {}.",
          line, valid, end, recovery_.records));
}

/// Keeps the cut bytes next to the log. They are usually half an unacknowledged record, but a person should
/// be able to check.
void FeedbackLog::cut_off(std::int64_t end) {
  recovery_.cut_to = path_.string() + fmt::format(".cut-at-{}", end);
  {
    const MappedMemory file = MappedMemory::of_descriptor(descriptor_, path_);
    write_file_atomically(recovery_.cut_to, file.text().substr(end));
  }
  if (::ftruncate(descriptor_, end) != 0) throw IoError("truncate", path_.string(), errno);
  if (::fsync(descriptor_) != 0) throw IoError("flush", path_.string(), errno);
  log_warning("{}: {} bytes after record {} were not a valid record, as after a crash. Moved them to {}.",
              path_.string(), recovery_.cut_bytes, recovery_.records, recovery_.cut_to.string());
}

std::uint64_t FeedbackLog::append(const FeedbackRecord& record) {
  std::string body = record_body(record);
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Batch> batch = next_batch_;
  const std::size_t place = batch->bodies.size();
  batch->bodies.push_back(std::move(body));
  // The first thread to find no write in progress writes the whole batch.
  written_.wait(lock, [&] { return batch->done || !writing_; });
  if (!batch->done) write(lock);
  if (batch->failure) std::rethrow_exception(batch->failure);
  return batch->first_round + place;
}

void FeedbackLog::write(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Batch> batch = std::exchange(next_batch_, std::make_shared<Batch>());
  writing_ = true;
  batch->first_round = rounds_ + 1;
  std::exception_ptr failure = fatal_error_;
  std::int64_t written = 0;
  lock.unlock();
  if (!failure) {
    try {
      std::string bytes;
      for (std::size_t i = 0; i < batch->bodies.size(); ++i)
        bytes += record_line(batch->first_round + i, batch->bodies[i]);
      store(bytes);
      written = std::ssize(bytes);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  lock.lock();
  if (!failure) {
    rounds_ += batch->bodies.size();
    bytes_ += written;
  }
  batch->failure = failure;
  batch->done = true;
  writing_ = false;
  written_.notify_all();
  if (failure || !listener_) return;
  lock.unlock();
  listener_();
  lock.lock();
}

/// Writes all bytes to disk or restores the file. Called by the writing thread only.
void FeedbackLog::store(const std::string& bytes) {
  int error_number = 0;
  std::string_view left = bytes;
  while (!left.empty() && error_number == 0) {
    const ssize_t written = ::write(descriptor_, left.data(), left.size());
    if (written >= 0) {
      left.remove_prefix(written);
    } else if (errno != EINTR) {
      error_number = errno;
    }
  }
  if (error_number == 0 && ::fdatasync(descriptor_) != 0) error_number = errno;
  if (error_number == 0) return;
  const bool restored = ::ftruncate(descriptor_, bytes_) == 0 && ::fdatasync(descriptor_) == 0;
  if (restored && is_out_of_space(error_number)) throw LogFull("write", path_.string(), error_number);
  const IoError error("write", path_.string(), error_number);
  {
    const std::lock_guard lock(mutex_);
    fatal_error_ = std::make_exception_ptr(error);
  }
  throw error;
}

std::uint64_t FeedbackLog::rounds() const {
  const std::lock_guard lock(mutex_);
  return rounds_;
}

std::int64_t FeedbackLog::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

FeedbackLog::Reader::Reader(const FeedbackLog& log, std::int64_t position)
    : log_(log), position_(position) {
  descriptor_ = ::open(log.path().c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw IoError("read", log.path().string(), errno);
}

FeedbackLog::Reader::~Reader() {
  ::close(descriptor_);
}

bool FeedbackLog::Reader::next(std::string_view& line) {
  buffer_.erase(0, used_);
  used_ = 0;
  const std::int64_t durable = log_.bytes();
  if (position_ >= durable) return false;
  std::size_t searched = 0;
  for (;;) {
    const std::size_t newline = buffer_.find('\n', searched);
    if (newline != std::string::npos) {
      line = std::string_view(buffer_).substr(0, newline);
      used_ = newline + 1;
      position_ += used_;
      return true;
    }
    searched = buffer_.size();
    const std::int64_t from = position_ + std::ssize(buffer_);
    const std::int64_t wanted = std::min(kReadBytes, durable - from);
    if (wanted == 0)
      throw IoError(fmt::format("{}: The log ends in the middle of a record.", log_.path().string()));
    buffer_.resize(searched + wanted);
    const ssize_t count = ::pread(descriptor_, buffer_.data() + searched, wanted, from);
    if (count < 0 && errno != EINTR) throw IoError("read", log_.path().string(), errno);
    if (count == 0) throw IoError(fmt::format("{}: The log was truncated.", log_.path().string()));
    buffer_.resize(searched + std::max<ssize_t>(count, 0));
  }
}

}  // namespace olrank
