#include "serve/file_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <limits>
#include <utility>

#include "core/io/atomic_file.h"
#include "core/io/mapped_memory.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "serve/own_file.h"

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

FileLog::FileLog(const std::filesystem::path& path, std::size_t latest, bool accept_loss, Access access,
                 std::optional<std::uint64_t> to_round)
    : path_(path), access_(access) {
  open(0);
  if (descriptor_ < 0 && to_round.value_or(0) > 0)
    throw_error<InvalidArgument>("--to-round {}: there is no log {}.", *to_round, path_.string());
  if (descriptor_ < 0) return;
  try {
    const MappedMemory file = MappedMemory::of_descriptor(descriptor_, path_);
    surveyed_bytes_ = file.size();
    survey_ = survey_log(file.text(), latest, to_round.value_or(std::numeric_limits<std::uint64_t>::max()));
    if (to_round && survey_.records < *to_round) {
      throw_error<InvalidArgument>("--to-round {} is beyond the {} of {}: name a round that was logged.",
                                   *to_round, counted(survey_.records, "round"), path_.string());
    }
    if (survey_.rest == LogSurvey::Rest::kDamage && !accept_loss) refuse_damage();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
  rounds_ = survey_.records;
  bytes_ = survey_.end + (survey_.rest == LogSurvey::Rest::kNewline ? 1 : 0);
}

std::string_view body_of(std::string_view line) {
  const std::size_t begin = std::min(line.find(','), line.size());
  return line.substr(begin, line.rfind(",\"check\":") - begin);
}

FileLog::~FileLog() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

/// The log has a lock of its own, because the state folder's may be removed while a service runs.
void FileLog::open(int flags) {
  const bool writes = access_ == Access::kWrite;
  descriptor_ = open_own_file(path_, writes ? O_RDWR | O_APPEND | flags : O_RDONLY);
  if (descriptor_ < 0 || ::flock(descriptor_, (writes ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) return;
  const int error_number = errno;
  ::close(descriptor_);
  if (error_number != EWOULDBLOCK) throw IoError("lock", path_.string(), error_number);
  throw_error<IoError>("{}: Another process writes this log. Stop it or choose another folder.",
                       path_.string());
}

void FileLog::refuse_damage() const {
  throw DataError(
      path_.string(), static_cast<std::int64_t>(survey_.records) + 1, 1,
      fmt::format(
          "{} Nothing was changed. Repair the log or restore it from a backup. If its end may be lost, "
          "start with --accept-loss: that cuts {} ({} and {} that {} none) after record {} and keeps "
          "them in {}.",
          survey_.fault, counted(survey_.rest_bytes, "byte"), counted(survey_.lost_records, "valid record"),
          counted(survey_.lost_lines, "line"), survey_.lost_lines == 1 ? "is" : "are", survey_.records,
          next_cut_path().string()));
}

void FileLog::refuse_change() const {
  throw StateLost(fmt::format("{}: Another program changed the log after it was checked. Start again.",
                              path_.string()));
}

std::filesystem::path FileLog::next_cut_path() const {
  return unused_path(path_.string() + fmt::format(".cut-at-{}", survey_.end));
}

void FileLog::begin_writing() {
  if (repaired_) return;
  if (descriptor_ < 0) {
    open(O_CREAT | O_EXCL);
    if (descriptor_ < 0) refuse_change();
  } else if (MappedMemory::of_descriptor(descriptor_, path_).size() != surveyed_bytes_) {
    refuse_change();
  } else if (survey_.rest == LogSurvey::Rest::kNewline) {
    if (::write(descriptor_, "\n", 1) != 1) throw IoError("write", path_.string(), errno);
    if (::fsync(descriptor_) != 0) throw IoError("flush", path_.string(), errno);
    log_warning("{}: Record {} lacked the newline at its end. Added it.", path_.string(), survey_.records);
  } else if (survey_.rest != LogSurvey::Rest::kNone) {
    cut_off();
  }
  flush_folder(path_.parent_path());
  repaired_ = true;
}

/// Keeps the cut bytes next to the log. They are usually half an unacknowledged record, but a person should
/// be able to check.
void FileLog::cut_off() {
  cut_to_ = next_cut_path();
  {
    const MappedMemory file = MappedMemory::of_descriptor(descriptor_, path_);
    write_file_atomically(cut_to_, file.text().substr(survey_.end));
  }
  if (::ftruncate(descriptor_, survey_.end) != 0) throw IoError("truncate", path_.string(), errno);
  if (::fsync(descriptor_) != 0) throw IoError("flush", path_.string(), errno);
  if (survey_.rest == LogSurvey::Rest::kTorn) {
    log_warning("{}: {} bytes after record {} were not a valid record, as after a crash. Moved them to {}.",
                path_.string(), survey_.rest_bytes, survey_.records, cut_to_.string());
  } else if (survey_.rest == LogSurvey::Rest::kLater) {
    log_warning("{}: Moved the {} after round {} to {}.", path_.string(),
                counted(survey_.lost_records, "record"), survey_.records, cut_to_.string());
  } else {
    log_warning("{}: --accept-loss cut {} ({} and {} that {} none) after record {}. Moved them to {}.",
                path_.string(), counted(survey_.rest_bytes, "byte"),
                counted(survey_.lost_records, "valid record"), counted(survey_.lost_lines, "line"),
                survey_.lost_lines == 1 ? "is" : "are", survey_.records, cut_to_.string());
  }
}

void FileLog::require_writable() const {
  if (guard_) guard_();
  if (names_open_file(path_, descriptor_)) return;
  throw StateLost(
      fmt::format("{}: The log was removed or replaced while the service ran. The service stops and writes "
                  "nothing more. Put the log back before the next start.",
                  path_.string()));
}

std::uint64_t FileLog::append(const FeedbackRecord& record) {
  return append_all({record_body(record)});
}

std::uint64_t FileLog::append_all(std::vector<std::string> bodies) {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Batch> batch = next_batch_;
  const std::size_t place = batch->bodies.size();
  ++batch->calls;
  std::move(bodies.begin(), bodies.end(), std::back_inserter(batch->bodies));
  // The first thread to find no write in progress writes the whole batch.
  written_.wait(lock, [&] { return batch->done || !writing_; });
  if (!batch->done) write(lock);
  if (batch->failure) std::rethrow_exception(batch->failure);
  return batch->first_round + place;
}

void FileLog::write(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Batch> batch = std::exchange(next_batch_, std::make_shared<Batch>());
  writing_ = true;
  batch->first_round = rounds_ + 1;
  std::exception_ptr failure = fatal_error_;
  std::int64_t written = 0;
  lock.unlock();
  if (!failure) {
    try {
      begin_writing();
      require_writable();
      std::string bytes;
      for (std::size_t i = 0; i < batch->bodies.size(); ++i)
        bytes += record_line(batch->first_round + i, std::exchange(batch->bodies[i], {}));
      store(bytes);
      written = std::ssize(bytes);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  report(failure, batch->calls);
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

/// Says once that the disk refuses records, and once that it takes them again. Called by the writing thread
/// only.
void FileLog::report(const std::exception_ptr& failure, std::uint64_t calls) {
  if (!failure) {
    const std::uint64_t rejected = failed_.exchange(0);
    if (rejected > 0 && words_ && !words_->taken.empty()) {
      log_warning("{}: {}", path_.string(), words_->taken);
    } else if (rejected > 0) {
      log_warning("{}: Feedback is accepted again; {} rejected.", path_.string(),
                  rejected == 1 ? "1 was" : fmt::format("{} were", rejected));
    }
    return;
  }
  try {
    std::rethrow_exception(failure);
  } catch (const StateLost&) {  // the service is about to stop and says why
  } catch (const std::exception& error) {
    if (failed_.fetch_add(calls) > 0) return;
    if (words_) {
      if (!words_->refused.empty()) log_warning("{} {}", error.what(), words_->refused);
      return;
    }
    const bool full = dynamic_cast<const LogFull*>(&error) != nullptr;
    log_warning("{} Feedback is rejected {}; ranking continues.", error.what(),
                full ? "until there is space" : "from now on");
  }
}

/// Writes all bytes to disk or restores the file. Called by the writing thread only.
void FileLog::store(const std::string& bytes) {
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

std::uint64_t FileLog::rounds() const {
  const std::lock_guard lock(mutex_);
  return rounds_;
}

std::int64_t FileLog::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::string FileLog::line_before(std::int64_t position) const {
  if (position < 1 || position > bytes()) return {};
  const MappedMemory file = MappedMemory::of_descriptor(descriptor_, path_);
  // The last newline may be about to be added.
  const std::string_view lines = file.text().substr(0, position - 1);
  if (std::ssize(file.text()) >= position && file.text()[position - 1] != '\n') return {};
  return std::string(lines.substr(lines.rfind('\n') + 1));
}

bool FileLog::Reader::next(std::string_view& line) {
  const std::int64_t durable = log_.bytes();
  if (position_ >= durable) return false;
  std::size_t searched = used_;
  for (;;) {
    const std::size_t newline = buffer_.find('\n', searched);
    if (newline != std::string::npos) {
      line = std::string_view(buffer_).substr(used_, newline - used_);
      position_ += static_cast<std::int64_t>(newline + 1 - used_);
      used_ = newline + 1;
      return true;
    }
    buffer_.erase(0, std::exchange(used_, 0));
    searched = buffer_.size();
    const std::int64_t from = position_ + std::ssize(buffer_);
    const std::int64_t wanted = std::min(kReadBytes, durable - from);
    if (wanted == 0)
      throw_error<IoError>("{}: The log ends in the middle of a record.", log_.path().string());
    buffer_.resize(searched + wanted);
    const ssize_t count = ::pread(log_.descriptor_, buffer_.data() + searched, wanted, from);
    if (count < 0 && errno != EINTR) throw IoError("read", log_.path().string(), errno);
    if (count == 0 && log_.survey_.rest == LogSurvey::Rest::kNewline && from == log_.survey_.end) {
      buffer_.back() = '\n';  // begin_writing() has not added it yet
      continue;
    }
    if (count == 0) throw_error<IoError>("{}: The log was truncated.", log_.path().string());
    buffer_.resize(searched + std::max<ssize_t>(count, 0));
  }
}

}  // namespace olrank
