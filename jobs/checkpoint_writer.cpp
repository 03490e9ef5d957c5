#include "jobs/checkpoint_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "core/error.h"

namespace olrank {

namespace fs = std::filesystem;

void CheckpointWriter::end() {
  try {
    finish();
  } catch (const std::exception&) {  // the caller has stopped for another reason
  }
  pending_.reset();
  spent_.clear();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

StateWriter CheckpointWriter::state() {
  finish();
  return StateWriter(stored_);
}

void CheckpointWriter::begin(StateWriter state, std::string name, std::function<void()> before) {
  stored_ = state.with_new_bytes();
  pending_.emplace(Pending{std::move(state), std::move(name), std::move(before)});
  pass_on(false);
}

void CheckpointWriter::advance() {
  if (pending_) return pass_on(false);
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  if (tasks_.empty() && !busy_) spent_.clear();
}

void CheckpointWriter::finish() {
  if (pending_) pass_on(true);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return tasks_.empty() && !busy_; });
  spent_.clear();
  if (failure_) std::rethrow_exception(failure_);
}

void CheckpointWriter::pass_on(bool wait) {
  std::vector<StateWriter::NewBytes>& all = pending_->state.new_bytes();
  // Bytes of a lineage come in order, but no lineage waits for another: some must leave at once.
  std::set<std::uint64_t> waiting;
  for (StateWriter::NewBytes& next : all) {
    if (next.arrival == nullptr || waiting.contains(next.lineage)) continue;
    const bool done = next.arrival->pass_on(
        [&](ArrivedBytes bytes) {
          start([this, lineage = next.lineage, bytes = std::move(bytes)] { append(lineage, bytes.bytes); });
        },
        wait);
    if (done) {
      spent_.push_back(std::move(next.arrival));
    } else {
      waiting.insert(next.lineage);
    }
  }
  if (!waiting.empty()) return;
  all.clear();
  start([this, pending = std::make_shared<Pending>(std::move(*pending_))] { write(*pending); });
  pending_.reset();
}

void CheckpointWriter::start(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    tasks_.push(std::move(task));
  }
  changed_.notify_all();
}

void CheckpointWriter::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop();
    busy_ = true;
    const bool skipped = failure_ != nullptr;
    lock.unlock();
    std::exception_ptr failure;
    try {
      if (!skipped) task();
    } catch (...) {
      failure = std::current_exception();
    }
    task = {};  // frees its bytes
    lock.lock();
    busy_ = false;
    if (failure && !failure_) failure_ = failure;
    changed_.notify_all();
  }
}

/// The first name that is free.
CheckpointWriter::OpenFile& CheckpointWriter::file_of(std::uint64_t lineage) {
  const auto found = files_.find(lineage);
  if (found != files_.end()) return found->second;
  int error = 0;
  for (const std::string& name : block_file_names()) {
    const fs::path path = folder_ / name;
    const int number = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (number >= 0) return files_.try_emplace(lineage, name, number).first->second;
    error = errno;
    if (error != EEXIST) break;
  }
  throw IoError("write", (folder_ / block_file_names().front()).string(), error);
}

void CheckpointWriter::append(std::uint64_t lineage, std::span<const std::byte> bytes) {
  OpenFile& open = file_of(lineage);
  open.fingerprinter.add(bytes);
  open.file.bytes += bytes.size();
  while (!bytes.empty()) {
    const ssize_t written = ::write(open.descriptor.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw IoError("write", (folder_ / open.file.name).string(), errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void CheckpointWriter::write(const Pending& pending) {
  std::map<std::uint64_t, BlockFile> used;
  for (const auto& [lineage, bytes] : pending.state.with_new_bytes()) {
    OpenFile& open = file_of(lineage);
    if (::fsync(open.descriptor.number()) != 0)
      throw IoError("flush", (folder_ / open.file.name).string(), errno);
    open.file.checksum = open.fingerprinter.value();
    used.emplace(lineage, open.file);
  }
  pending.before();
  pending.state.write(folder_ / pending.name, used);
  std::erase_if(files_, [&](const auto& one) { return !used.contains(one.first); });
  remove_unused();
}

/// Removes the block files that no checkpoint needs; none if that cannot be told.
void CheckpointWriter::remove_unused() const {
  std::set<std::string> needed;
  for (const auto& [lineage, open] : files_) needed.insert(open.file.name);
  std::error_code failed;
  const fs::directory_iterator all(folder_, failed);
  if (failed) return;
  for (const auto& entry : all) {
    if (entry.path().extension() != ".safetensors") continue;
    const auto names = block_files_of(entry.path());
    if (!names) return;
    needed.insert(names->begin(), names->end());
  }
  for (const std::string& name : block_file_names()) {
    if (!needed.contains(name)) fs::remove(folder_ / name, failed);
  }
}

}  // namespace olrank
