#include "serve/state_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <utility>

#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/io/mapped_memory.h"
#include "core/io/state_archive.h"
#include "core/settings/toml_document.h"
#include "core/throw_error.h"
#include "logs/documents.h"
#include "logs/log_text.h"
#include "serve/file_log.h"
#include "serve/own_file.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

/// Only messages use the process ID in a lock, so a full disk does not prevent the start.
void write_lock(int descriptor, const std::string& text) {
  if (::ftruncate(descriptor, 0) == 0 && ::pwrite(descriptor, text.data(), text.size(), 0) < 0) errno = 0;
}

/// Whether this is a segment of the log or of the documents.
bool is_segment(const fs::path& name) {
  return LogText::is_segment(name, "feedback.jsonl") || LogText::is_segment(name, DocumentVersions::kFile);
}

/// Whether a service writes files of this name into its folder.
bool is_own_name(const std::string& name) {
  static constexpr std::string_view kNames[] = {
      "service.toml", "start.safetensors", "feedback.jsonl", DocumentVersions::kFile, "checkpoint",
      "lock",         "arms.toml",         "schemas.json"};
  if (name.starts_with("arm-") && name.ends_with(".safetensors")) return true;
  const std::string whole = name.substr(is_temporary(name) ? 1 : 0);
  if (is_segment(whole.substr(0, std::min(whole.find(".tmp-"), whole.find(".cut-at-"))))) return true;
  if (name.starts_with("events-") || name.starts_with("late.jsonl") || name.starts_with("impressions-"))
    return true;
  for (const std::string_view own : kNames) {
    if (name == own || name.starts_with(fmt::format("{}.cut-at-", own)) ||
        name.starts_with(fmt::format("{}.set-aside", own)) ||
        (is_temporary(name) && name.starts_with(fmt::format(".{}.", own))))
      return true;
  }
  return false;
}

/// Where the last whole line of a copy ends; nothing if the original has another one there.
std::optional<std::int64_t> common_end(const LogText& source, const LogText& copy) {
  const std::int64_t end = copy.end_of_lines();
  const std::string last = copy.line_before(end);
  const bool is_comparable = !last.empty() && end != source.begin();
  if (is_comparable && (end > source.end() || source.line_before(end) != last)) return std::nullopt;
  return end;
}

bool is_fresh(const LogText& copy) {
  return copy.segments().empty() && copy.end_of_lines() == 0;
}

/// Before anything is copied.
void require_same_log(const LogText& from, const LogText& to) {
  const std::string copy = to.file().parent_path().string();
  if (!is_fresh(to) && to.end_of_lines() < from.begin()) {
    throw_error<InvalidArgument>(
        "--out {}: {} has dropped rounds that follow those of the copy: choose another folder.", copy,
        from.file().string());
  }
  if (common_end(from, to)) return;
  throw_error<InvalidArgument>(
      "--out {}: The copy has records that {} lacks, as it is of another log, or of one that was cut "
      "since: "
      "choose another folder.",
      copy, from.file().string());
}

/// Adds to the copy of a journal, or of a log, the lines that it lacks, up to a byte of the original. The
/// copy of another journal is replaced. That of a log has segments of its own.
void copy_lines(const LogText& source, const fs::path& to, StateBackup& backup, std::int64_t most) {
  if (!source.exists()) return;  // all lists of the journal have closed meanwhile
  const fs::path name = source.file().filename();
  const bool is_log = name == "feedback.jsonl";
  const bool has_checks = is_log || name == DocumentVersions::kFile;
  auto copy = std::make_unique<LogText>(to);
  if (is_fresh(*copy) && source.begin() > 0) {  // an empty segment says where the log begins
    write_file_atomically(LogText::segment_path(to, source.begin()), "");
    copy = std::make_unique<LogText>(to);
  }
  std::int64_t end = common_end(source, *copy).value_or(0);
  std::uint64_t round = round_of(copy->line_before(end));
  bool is_first = round == 0;
  std::optional<Descriptor> file;
  const auto open = [&] { file.emplace(open_own_file(to, O_RDWR | O_CREAT)); };
  open();
  if (::ftruncate(file->number(), end - copy->grows_at()) != 0)
    throw IoError("truncate", to.string(), errno);
  const auto flush = [&] {
    if (::fsync(file->number()) != 0) throw IoError("flush", to.string(), errno);
  };
  for (std::int64_t begin = copy->grows_at(); end < most;) {
    std::string text = source.lines_at(end);
    text.resize(std::min(std::ssize(text), most - end));
    text.resize(text.rfind('\n') + 1);
    if (text.empty()) break;
    for (std::string_view left = text; has_checks && !left.empty();) {
      const std::string_view line = left.substr(0, left.find('\n'));
      left.remove_prefix(line.size() + 1);
      if (is_log && std::exchange(is_first, false)) round = round_of(line) - 1;
      if (!has_valid_check(line) || (is_log && round_of(line) != round + 1))
        throw DataError(source.file().string(), static_cast<std::int64_t>(round) + 1, 1,
                        "The record is damaged: the copy has those before it.");
      ++round;
      backup.new_records += is_log ? 1 : 0;
    }
    for (std::string_view left = text; !left.empty();) {
      const ssize_t written = ::pwrite(file->number(), left.data(), left.size(), end - begin);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw IoError("write", to.string(), errno);
      left.remove_prefix(static_cast<std::size_t>(written));
      end += written;
      backup.bytes += written;
    }
    if (!has_checks || end - begin < FileLog::Segments().bytes) continue;
    flush();
    fs::rename(to, LogText::segment_path(to, begin));
    copy = std::make_unique<LogText>(to);
    copy->compress(copy->segments().back());
    begin = end;
    open();
  }
  flush();
  if (is_log) backup.records = round;
}

/// Copies a file that is replaced as a whole, if the copy differs.
void copy_whole(const std::optional<std::string>& bytes, const fs::path& to, StateBackup& backup) {
  if (!bytes || read_own_file(to) == bytes) return;
  write_file_atomically(to, *bytes);
  backup.bytes += std::ssize(*bytes);
}

/// Whether a service with these settings goes on from a checkpoint. Its start says what is wrong with one
/// that cannot be read.
bool fits(const std::string& checkpoint, const std::string& settings) {
  try {
    StateReader state(checkpoint, "checkpoint", "");
    return learn_alike(state.get_text("service.identity"), settings, "service.toml");
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

StateFolder::StateFolder(const fs::path& path, Use use) : path_(path) {
  try {
    if (use == Use::kReading) {
      lock_to_read();
      return;
    }
    make_folders();
    // The previous holder may have removed the lock file between our open() and flock().
    do {
      if (lock_ >= 0) ::close(std::exchange(lock_, -1));
      lock();
    } while (!(owns_lock_ = names_open_file(lock_file(), lock_)));
    write_lock(lock_, fmt::format("{}", ::getpid()));
    refuse_special_files();
  } catch (...) {
    undo();
    throw;
  }
}

/// A copy of a folder may lack the lock.
void StateFolder::lock_to_read() {
  if (!fs::is_directory(path_)) throw IoError("read", path_.string(), fs::exists(path_) ? ENOTDIR : ENOENT);
  refuse_special_files();
  lock_ = open_own_file(lock_file(), O_RDONLY);
  if (lock_ < 0 || ::flock(lock_, LOCK_SH | LOCK_NB) == 0) return;
  throw_error<IoError>(
      "{}: The state folder is in use by process {}. Get the model from that service, for example with "
      "'curl -o model.safetensors http://127.0.0.1:8080/v1/model', and export the file; or stop the "
      "service first.",
      path_.string(), MappedMemory::of_descriptor(lock_, lock_file()).text().substr(0, 32));
}

void StateFolder::refuse_special_files() const {
  for (const fs::path& file : {identity_file(), model(), log(), checkpoint(), arms_file()}) {
    const Descriptor opened(open_own_file(file, O_RDONLY));
  }
}

/// Its parents get the usual mode.
void StateFolder::make_folders() {
  std::error_code failed;
  const fs::path whole = fs::absolute(path_ / "").parent_path();
  std::vector<fs::path> missing;
  for (fs::path folder = whole; !fs::exists(folder, failed) && !failed && folder.has_relative_path();
       folder = folder.parent_path())
    missing.push_back(folder);
  for (auto folder = missing.rbegin(); folder != missing.rend(); ++folder) {
    if (::mkdir(folder->c_str(), *folder == whole ? 0700 : 0777) == 0) created_.push_back(*folder);
  }
  make_folder(path_);  // reports any error
}

void StateFolder::lock() {
  for (lock_ = -1; lock_ < 0;) {
    lock_ = open_own_file(lock_file(), O_RDWR);
    created_lock_ = lock_ < 0;
    if (lock_ < 0) lock_ = open_own_file(lock_file(), O_RDWR | O_CREAT | O_EXCL);
  }
  holder_before_ = MappedMemory::of_descriptor(lock_, lock_file()).text().substr(0, 32);
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    created_lock_ = false;  // another process was faster
    throw_error<IoError>("{}: The state folder is in use by {}. Stop it or choose another folder.",
                         path_.string(),
                         holder_before_.empty() ? "another process" : "process " + holder_before_);
  }
}

/// Leaves the folder as it was.
void StateFolder::undo() {
  if (lock_ >= 0 && owns_lock_) {
    if (created_lock_) {
      ::unlink(lock_file().c_str());
    } else {
      write_lock(lock_, holder_before_);
    }
  }
  if (lock_ >= 0) ::close(lock_);
  for (auto folder = created_.rbegin(); folder != created_.rend(); ++folder)
    ::rmdir(folder->c_str());  // if empty
}

StateFolder::~StateFolder() {
  if (accepted_) {
    ::close(lock_);
  } else {
    undo();
  }
}

void StateFolder::accept() {
  accepted_ = true;
  restrict_to_owner();
}

/// Earlier versions left modes to the umask. A folder with other files in it is somebody's own and keeps
/// its mode.
void StateFolder::restrict_to_owner() const {
  bool only_own = true;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(path_, failed)) {
    const std::string name = entry.path().filename().string();
    if (!is_own_name(name)) {
      only_own = false;
    } else if (is_temporary(name)) {
      fs::remove(entry.path(), failed);
    } else if (const int file =
                   ::open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
               file >= 0) {
      ::fchmod(file, 0600);
      ::close(file);
    }
  }
  if (only_own) ::chmod(path_.c_str(), 0700);
}

std::optional<ServiceIdentity> StateFolder::identity() const {
  const auto text = read_own_file(identity_file());
  if (!text) return std::nullopt;
  return parse_identity(*text, identity_file().string());
}

std::optional<ArmPlan> StateFolder::arms() const {
  const auto text = read_own_file(arms_file());
  if (!text) return std::nullopt;
  return ArmPlan::parse_toml_text(*text, arms_file().string());
}

void StateFolder::set_arms(const std::optional<ArmPlan>& plan, std::span<const std::string> models) const {
  if (!plan) {
    fs::remove(arms_file());
    return;
  }
  const std::vector<std::string> names = plan->model_names();
  for (std::size_t arm = 0; arm < models.size(); ++arm)
    write_file_atomically(arm_model(names[arm]), models[arm]);
  write_file_atomically(arms_file(), plan->toml_text());
}

void StateFolder::begin(const ServiceIdentity& identity, const std::string& model) const {
  if (!model.empty()) write_file_atomically(this->model(), model);
  write_file_atomically(identity_file(), print_identity(identity));
}

void StateFolder::require_lock() const {
  if (names_open_file(lock_file(), lock_)) return;
  throw_error<StateLost>(
      "{}: The lock was removed or replaced while the service ran, so that another process may use the "
      "folder. The service stops and writes nothing more. Acknowledged feedback is in the log; make sure "
      "that no other service uses the folder, then start again.",
      lock_file().string());
}

void require_service(const fs::path& state) {
  if (read_own_file(state / "service.toml")) return;
  throw_error<InvalidArgument>(
      "{} contains no service: name a folder that was the --state of 'olrank serve'.", state.string());
}

StateBackup back_up_state(const fs::path& state, const fs::path& copy) {
  const fs::path identity = state / "service.toml";
  require_service(state);
  std::error_code failed;
  require_outside_state(fs::absolute(copy / "").parent_path().parent_path(), "--out");
  if (fs::equivalent(state, copy, failed))
    throw_error<InvalidArgument>("--out {} is the state folder itself: choose another folder.",
                                 copy.string());
  StateFolder target(copy);
  const fs::path documents_name = DocumentVersions::kFile;
  require_same_log(LogText(state / "feedback.jsonl"), LogText(target.log()));
  require_same_log(LogText(state / documents_name), LogText(copy / documents_name));
  StateBackup backup;
  std::optional<std::string> now;
  do {  // again if the service takes another schema meanwhile
    // The checkpoint is read first and the log last, so that the log has all that the others know of: lists
    // that closed or were answered meanwhile are in the log.
    // Its segments stay open, as the service may drop what this checkpoint needs.
    const LogText held(state / "feedback.jsonl");
    auto checkpoint = read_own_file(state / "checkpoint");
    // A copy of a service with other features learns its log again, if it is cut off before it is whole.
    now = read_own_file(identity);
    const auto before = read_own_file(target.identity_file());
    if (now && before && !learn_alike(*before, *now, identity.string()))
      fs::remove(target.checkpoint(), failed);
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(state)) {
      const std::string name = entry.path().filename().string();
      const bool is_other = name == "lock" || name == "checkpoint" || name == "feedback.jsonl" ||
                            name == DocumentVersions::kFile || is_segment(name) ||
                            name.find(".cut-at-") != name.npos || name.find(".set-aside") != name.npos;
      if (is_other || is_temporary(name) || !is_own_name(name)) continue;
      names.insert(name);
      if (name.ends_with(".jsonl")) {
        const LogText journal(entry.path());
        copy_lines(journal, copy / name, backup, journal.end());
      } else {
        copy_whole(read_own_file(entry.path()), copy / name, backup);
      }
    }
    // Its records name documents that were stored before them.
    const LogText log(state / "feedback.jsonl");
    const std::int64_t logged = log.end();
    const LogText documents(state / documents_name);
    copy_lines(documents, copy / documents_name, backup, documents.end());
    if (log.begin() > held.begin()) copy_lines(held, target.log(), backup, std::min(held.end(), logged));
    copy_lines(log, target.log(), backup, logged);
    // The service may have begun again with other features meanwhile, or have no checkpoint of its own yet.
    if (checkpoint && !fits(*checkpoint, read_own_file(target.identity_file()).value_or("")))
      checkpoint.reset();
    if (!checkpoint) fs::remove(target.checkpoint(), failed);
    copy_whole(checkpoint, target.checkpoint(), backup);
    for (const auto& entry : fs::directory_iterator(copy)) {
      const std::string name = entry.path().filename().string();
      const bool is_of_state = name.starts_with("events-") || name.starts_with("impressions-") ||
                               name.starts_with("arm-") || name == "arms.toml" || name == "schemas.json";
      if (is_of_state && is_own_name(name) && !names.contains(name)) fs::remove(entry.path(), failed);
    }
  } while (read_own_file(identity) != now);
  target.accept();
  return backup;
}

void require_outside_state(const fs::path& file, std::string_view flag) {
  std::error_code failed;
  // Where a symbolic link leads is what would be written.
  fs::path folder = fs::weakly_canonical(fs::absolute(file, failed), failed);
  if (failed) return;
  if (!fs::is_directory(folder, failed)) folder = folder.parent_path();
  if (!fs::exists(folder / "service.toml", failed)) return;
  throw_error<InvalidArgument>("{} {} is in the state folder of a service, {}: choose another folder.",
                               flag, file.string(), folder.string());
}

}  // namespace olrank
