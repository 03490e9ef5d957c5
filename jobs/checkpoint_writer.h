#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/io/fingerprint.h"
#include "core/io/state_archive.h"

namespace olrank {

/// Writes the checkpoints of a trial on a thread of its own while rounds go on. What never changes again is
/// appended to block files next to them, each a lineage's, and a checkpoint says how much of each belongs
/// to it. It replaces the one before it when all that it needs is on disk, so that a crash leaves that one
/// valid.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(const std::filesystem::path& folder) : folder_(folder) {}
  ~CheckpointWriter() { end(); }
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// A writer of blocks for what the files do not have yet. Waits for the checkpoint before.
  StateWriter state();
  /// Starts to write what state() returned and was filled since. `before` runs on the thread, when
  /// the blocks are on disk and before the file `name` appears.
  void begin(StateWriter state, std::string name, std::function<void()> before);
  /// Passes on what has arrived. To be called often, as the device sends only so much at a time. It and the
  /// others throw what has failed on the thread.
  void advance();
  void finish();
  /// Finishes what was begun, and ends the thread; errors are lost.
  void end();

 private:
  /// Written by the thread alone.
  struct OpenFile {
    BlockFile file;
    Descriptor descriptor;
    Fingerprinter fingerprinter;

    OpenFile(std::string name, int number) : file{std::move(name), 0, {}}, descriptor(number) {}
  };
  /// A checkpoint whose values have not all arrived.
  struct Pending {
    StateWriter state;
    std::string name;
    std::function<void()> before;
  };

  void pass_on(bool wait);
  void start(std::function<void()> task);
  void work();
  void append(std::uint64_t lineage, std::span<const std::byte> bytes);
  void write(const Pending& pending);
  OpenFile& file_of(std::uint64_t lineage);
  void remove_unused() const;

  std::filesystem::path folder_;
  StateWriter::Stored stored_;
  std::optional<Pending> pending_;
  // These have arrived; destroying one waits for the thread.
  std::vector<std::shared_ptr<ByteArrival>> spent_;
  std::map<std::uint64_t, OpenFile> files_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<std::function<void()>> tasks_;
  bool busy_ = false;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace olrank
