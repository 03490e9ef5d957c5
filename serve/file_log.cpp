#include "serve/file_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <limits>
#include <utility>

#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "serve/own_file.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

/// Ends the compression of a segment, which the next start compresses.
struct Stopping {};

bool is_out_of_space(int error_number) {
  return error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
}

void flush_folder(const std::filesystem::path& folder) {
  const Descriptor open(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!open.is_open() || (::fsync(open.number()) != 0 && errno != EINVAL))
    throw IoError("flush the folder", folder.string(), errno);
}

}  // namespace

struct FileLog::Batch {
  std::vector<std::string> bodies;
  std::vector<std::int64_t> begins{};  // once it is durable
  std::uint64_t calls = 0;             // of enqueue(), that wait for it
  std::uint64_t first_round = 0;
  bool done = false;
  std::exception_ptr failure{};
};

FileLog::FileLog(const std::filesystem::path& path, std::size_t latest, bool accept_loss, Access access,
                 std::optional<std::uint64_t> to_round)
    : path_(path), access_(access), next_batch_(std::make_shared<Batch>()) {
  open(0);
  text_ = std::make_shared<const LogText>(path_);
  if (!text_->exists() && to_round.value_or(0) > 0)
    throw_error<InvalidArgument>("--to-round {}: there is no log {}.", *to_round, path_.string());
  surveyed_end_ = text_->end();
  survey_ = survey_log(*text_, latest, to_round.value_or(std::numeric_limits<std::uint64_t>::max()));
  if (to_round && survey_.records < *to_round)
    throw_error<InvalidArgument>("--to-round {} is beyond the {} of {}: name a round that was logged.",
                                 *to_round, counted(survey_.records, "round"), path_.string());
  if (to_round.value_or(survey_.dropped) < survey_.dropped)
    throw_error<InvalidArgument>("--to-round {}: {} has dropped rounds 1 to {}: name a later one.",
                                 *to_round, path_.string(), survey_.dropped);
  if (survey_.rest == LogSurvey::Rest::kDamage && !accept_loss) refuse_damage();
  dropped_ = survey_.dropped;
  rounds_ = survey_.records;
  grows_at_ = text_->grows_at();
  bytes_ = survey_.end + (survey_.rest == LogSurvey::Rest::kNewline ? 1 : 0);
}

std::string_view body_of(std::string_view line) {
  const std::size_t begin = std::min(line.find(','), line.size());
  return line.substr(begin, line.rfind(",\"check\":") - begin);
}

FileLog::~FileLog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    tidy_.notify_all();
  }
  if (tidying_.joinable()) tidying_.join();
}

/// The log has a lock of its own, because the state folder's may be removed while a service runs.
void FileLog::open(int flags) {
  const bool writes = access_ == Access::kWrite;
  file_.reset();
  const int descriptor = open_own_file(path_, writes ? O_RDWR | O_APPEND | flags : O_RDONLY);
  if (descriptor < 0) return;
  file_.emplace(descriptor);
  if (::flock(descriptor, (writes ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) return;
  if (errno != EWOULDBLOCK) throw IoError("lock", path_.string(), errno);
  throw_error<IoError>("{}: Another process writes this log. Stop it or choose another folder.",
                       path_.string());
}

std::string FileLog::lost_text() const {
  return fmt::format("{} ({} and {} that {} none) after record {}", counted(survey_.rest_bytes, "byte"),
                     counted(survey_.lost_records, "valid record"), counted(survey_.lost_lines, "line"),
                     survey_.lost_lines == 1 ? "is" : "are", survey_.records);
}

void FileLog::refuse_damage() const {
  throw_data_error(
      path_.string(), static_cast<std::int64_t>(survey_.records) + 1, 1,
      "{} Nothing was changed. Repair the log or restore it from a backup. If its end may be lost, start "
      "with --accept-loss: that cuts {} and keeps them in {}.",
      survey_.fault, lost_text(), next_cut_path().string());
}

void FileLog::refuse_change() const {
  throw_error<StateLost>("{}: Another program changed the log after it was checked. Start again.",
                         path_.string());
}

std::filesystem::path FileLog::next_cut_path() const {
  return unused_path(path_.string() + fmt::format(".cut-at-{}", survey_.end));
}

void FileLog::begin_writing() {
  if (repaired_) return;
  if (text_->end() != surveyed_end_) refuse_change();
  if (!file_) {
    open(O_CREAT | O_EXCL);
    if (!file_) refuse_change();
    reopen();
  }
  if (survey_.rest == LogSurvey::Rest::kNewline) {
    if (::write(file_->number(), "\n", 1) != 1) throw IoError("write", path_.string(), errno);
    if (::fsync(file_->number()) != 0) throw IoError("flush", path_.string(), errno);
    log_warning("{}: Record {} lacked the newline at its end. Added it.", path_.string(), survey_.records);
  } else if (survey_.rest != LogSurvey::Rest::kNone) {
    cut_off();
  }
  std::error_code failed;
  for (const LogText::Segment& segment : text()->segments()) {  // a kill may have left both forms
    if (segment.compressed) fs::remove(LogText::segment_path(path_, segment.begin), failed);
  }
  flush_folder(path_.parent_path());
  repaired_ = true;
}

/// Keeps the cut bytes next to the log. They are usually half an unacknowledged record, but a person should
/// be able to check.
void FileLog::cut_off() {
  cut_to_ = next_cut_path();
  std::vector<fs::path> damaged;
  {
    AtomicFile file(cut_to_);
    for (std::int64_t position = survey_.end; position < surveyed_end_;) {
      try {
        const std::string lines = text_->lines_at(position);
        file.write(lines);
        position += std::ssize(lines);
      } catch (const DataError&) {
        const auto segments = text_->segments();
        const auto segment = std::find_if(segments.begin(), segments.end(),
                                          [&](const auto& one) { return one.end > position; });
        damaged.push_back(segment->path);
        position = segment->end;
      }
    }
    file.commit();
  }
  if (::ftruncate(file_->number(), std::max<std::int64_t>(survey_.end - grows_at_, 0)) != 0)
    throw IoError("truncate", path_.string(), errno);
  if (::fsync(file_->number()) != 0) throw IoError("flush", path_.string(), errno);
  if (!text_->segments().empty()) cut_segments(damaged);
  if (survey_.rest == LogSurvey::Rest::kTorn) {
    log_warning("{}: {} bytes after record {} were not a valid record, as after a crash. Moved them to {}.",
                path_.string(), survey_.rest_bytes, survey_.records, cut_to_.string());
  } else if (survey_.rest == LogSurvey::Rest::kLater) {
    log_warning("{}: Moved the {} after round {} to {}.", path_.string(),
                counted(survey_.lost_records, "record"), survey_.records, cut_to_.string());
  } else {
    log_warning("{}: --accept-loss cut {}. Moved them to {}.", path_.string(), lost_text(),
                cut_to_.string());
  }
}

/// The last segments go first, so that a kill leaves the beginning of the log. Those that cannot be read
/// keep their bytes under another name.
void FileLog::cut_segments(const std::vector<fs::path>& damaged) {
  std::vector<LogText::Segment> segments = text_->segments();
  for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
    if (segment->end <= survey_.end && segment->whole) break;
    if (!segment->whole || std::find(damaged.begin(), damaged.end(), segment->path) != damaged.end())
      fs::create_hard_link(segment->path,
                           unused_path(fmt::format("{}.cut-at-{}", segment->path.string(), survey_.end)));
    const fs::path plain = LogText::segment_path(path_, segment->begin);
    if (segment->begin < survey_.end) text_->compress(segment->begin, survey_.end, plain.string() + ".zst");
    if (segment->begin >= survey_.end || !segment->compressed) fs::remove(segment->path);
  }
  flush_folder(path_.parent_path());
  text_ = std::make_shared<const LogText>(path_);
  grows_at_ = text_->grows_at();
}

void FileLog::require_writable() const {
  if (guard_) guard_();
  const std::lock_guard files(files_);
  if (names_open_file(path_, file_ ? file_->number() : -1)) return;
  throw_error<StateLost>(
      "{}: The log was removed or replaced while the service ran. The service stops and writes nothing "
      "more. Put the log back before the next start.",
      path_.string());
}

std::int64_t FileLog::begin_of(const Ticket& ticket, std::size_t line) {
  return ticket.batch->begins[ticket.place + line];
}

FileLog::Ticket FileLog::enqueue(std::vector<std::string> bodies) {
  const std::lock_guard lock(mutex_);
  Ticket ticket{next_batch_, next_batch_->bodies.size()};
  ++next_batch_->calls;
  std::move(bodies.begin(), bodies.end(), std::back_inserter(next_batch_->bodies));
  return ticket;
}

std::uint64_t FileLog::await(const Ticket& ticket) {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Batch>& batch = ticket.batch;
  // The first thread to find no write in progress writes the whole batch.
  written_.wait(lock, [&] { return batch->done || !writing_; });
  if (!batch->done) write(lock);
  if (batch->failure) std::rethrow_exception(batch->failure);
  return batch->first_round + ticket.place;
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
      for (std::size_t i = 0; i < batch->bodies.size(); ++i) {
        batch->begins.push_back(bytes_ + std::ssize(bytes));
        bytes += record_line(batch->first_round + i, std::exchange(batch->bodies[i], {}));
      }
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
  if (!failure && close_at_ > 0 && bytes_ - grows_at_ >= close_at_) {
    written_.notify_all();
    lock.unlock();
    try {
      close_segment();
      lock.lock();
    } catch (...) {
      lock.lock();
      fatal_error_ = std::current_exception();
    }
  }
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
  const int file = file_->number();
  int error_number = 0;
  std::string_view left = bytes;
  while (!left.empty() && error_number == 0) {
    const ssize_t written = ::write(file, left.data(), left.size());
    if (written >= 0) {
      left.remove_prefix(written);
    } else if (errno != EINTR) {
      error_number = errno;
    }
  }
  if (error_number == 0 && ::fdatasync(file) != 0) error_number = errno;
  if (error_number == 0) return;
  const bool restored = ::ftruncate(file, bytes_ - grows_at_) == 0 && ::fdatasync(file) == 0;
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
  return position > bytes() ? std::string() : text()->line_before(position);
}

std::shared_ptr<const LogText> FileLog::text() const {
  const std::lock_guard lock(text_mutex_);
  return text_;
}

/// Takes the files as they are now.
void FileLog::reopen() {
  const std::lock_guard lock(text_mutex_);
  text_ = std::make_shared<const LogText>(path_, text_.get());
}

/// Renames the file and goes on in a new one, which is locked before it gets the name. A kill between the
/// two leaves no file that grows, and the next start makes one. Called by the writing thread only.
void FileLog::close_segment() {
  const fs::path fresh =
      path_.parent_path() / fmt::format(".{}.tmp-{}-0", path_.filename().string(), ::getpid());
  const fs::path segment = LogText::segment_path(path_, grows_at_);
  const std::lock_guard files(files_);
  const int next =
      ::open(fresh.c_str(), O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  bool renamed =
      next >= 0 && ::flock(next, LOCK_EX | LOCK_NB) == 0 && ::rename(path_.c_str(), segment.c_str()) == 0;
  if (renamed && ::rename(fresh.c_str(), path_.c_str()) != 0) {
    const int error_number = errno;
    renamed = ::rename(segment.c_str(), path_.c_str()) != 0;
    errno = error_number;
  }
  if (!renamed) {
    log_warning("{} The log goes on in its file, and is closed as a segment later.",
                IoError("rename", path_.string(), errno).what());
    if (next >= 0) ::close(next);
    ::unlink(fresh.c_str());
    close_at_ += segments_.bytes;
    return;
  }
  flush_folder(path_.parent_path());
  file_.emplace(next);
  grows_at_ = bytes_;
  close_at_ = segments_.bytes;
  reopen();
  const std::lock_guard lock(mutex_);
  untidy_ = true;
  tidy_.notify_all();
}

void FileLog::keep_small(const Segments& segments) {
  segments_ = segments;
  close_at_ = segments.bytes;
  untidy_ = true;
  tidying_ = std::thread([this] { tidy(); });
}

void FileLog::compact(const Segments& segments) {
  segments_ = segments;
  begin_writing();
  if (bytes_ > grows_at_) close_segment();
  compress_segments();
  drop_segments();
}

void FileLog::allow_dropping(std::uint64_t before) {
  const std::lock_guard lock(mutex_);
  droppable_ = before;
  untidy_ = true;
  tidy_.notify_all();
}

/// The thread that nothing waits for.
void FileLog::tidy() {
  ::setpriority(PRIO_PROCESS, 0, 19);  // of this thread alone
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    tidy_.wait(lock, [this] { return stopping_ || untidy_; });
    untidy_ = false;
    lock.unlock();
    try {
      compress_segments();
      if (std::exchange(refused_, false)) log_info("{}: Segments are compressed again.", path_.string());
      drop_segments();
    } catch (const Stopping&) {
    } catch (const StateLost&) {  // the service is about to stop and says why
    } catch (const std::exception& error) {
      if (!std::exchange(refused_, true))
        log_warning("{} The log is whole; a segment stays as it is and is compressed later.", error.what());
    }
    lock.lock();
  }
}

void FileLog::compress_segments() {
  const std::shared_ptr<const LogText> text = this->text();
  for (const LogText::Segment& segment : text->segments()) {
    if (segment.compressed || segment.begin == segment.end) continue;
    if (guard_) guard_();
    text->compress(segment, [this] {
      const std::lock_guard lock(mutex_);
      if (stopping_) throw Stopping();
    });
    reopen();
  }
}

void FileLog::drop_segments() {
  const LogKeep& keep = segments_.keep;
  if (keep.what == LogKeep::What::kAll) return;
  const std::shared_ptr<const LogText> text = this->text();
  std::vector<LogText::Segment> segments = text->segments();
  if (!segments.empty()) segments.pop_back();  // its name says where the log begins
  const std::uint64_t droppable = droppable_;
  const auto answers = segments_.answers ? segments_.answers() : std::chrono::milliseconds(0);
  const std::uint64_t before = dropped_;
  std::int64_t bytes = 0;
  for (const LogText::Segment& segment : segments) {
    const std::uint64_t last = round_of(text->line_before(segment.end));
    const auto age = fs::file_time_type::clock::now() - fs::last_write_time(segment.path);
    const bool stays = last >= droppable || age <= answers ||
                       (keep.what == LogKeep::What::kLists && rounds() - last < keep.count) ||
                       (keep.what == LogKeep::What::kDays && age <= std::chrono::hours(24) * keep.count);
    if (stays) break;
    if (guard_) guard_();
    fs::remove(segment.path);
    dropped_ = last;
    bytes += segment.end - segment.begin;
  }
  if (bytes == 0) return;
  flush_folder(path_.parent_path());
  reopen();
  log_info("{}: Dropped rounds {} to {}, which a checkpoint has learned.", path_.string(), before + 1,
           dropped_.load());
}

LogKeep LogKeep::parse(std::string_view text) {
  if (text == "all") return {};
  if (text == "checkpoint") return {What::kCheckpoint, 0};
  LogKeep keep{text.ends_with('d') ? What::kDays : What::kLists, 0};
  const std::string_view digits = text.substr(0, text.size() - (text.ends_with('d') ? 1 : 0));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), keep.count);
  if (error == std::errc() && end == digits.data() + digits.size() && keep.count > 0 &&
      (keep.what == What::kLists || keep.count <= 100'000))
    return keep;
  throw_error<InvalidArgument>(
      "--keep must be all, checkpoint, days such as 90d, or a number of lists such as 1000000, not '{}'.",
      text);
}

bool FileLog::Reader::next(std::string_view& line) {
  const std::int64_t durable = log_.bytes();
  if (position_ >= durable) return false;
  if (used_ == lines_.size()) {
    used_ = 0;
    const std::int64_t left = durable - position_;
    lines_ = log_.text()->lines_at(position_, std::min(left, LogText::kBytesAtOnce));
    // begin_writing() may not have added the last newline yet.
    if (std::ssize(lines_) == left - 1 && log_.survey_.rest == LogSurvey::Rest::kNewline) lines_ += '\n';
    if (std::ssize(lines_) > left) lines_.resize(static_cast<std::size_t>(left));
    if (lines_.empty()) throw_error<IoError>("{}: The log was truncated.", log_.path().string());
    if (!lines_.ends_with('\n'))
      throw_error<IoError>("{}: The log ends in the middle of a record.", log_.path().string());
  }
  const std::size_t newline = lines_.find('\n', used_);
  line = std::string_view(lines_).substr(used_, newline - used_);
  position_ += static_cast<std::int64_t>(newline + 1 - used_);
  used_ = newline + 1;
  return true;
}

}  // namespace olrank
