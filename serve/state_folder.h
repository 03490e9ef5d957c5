#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "serve/service_identity.h"

namespace olrank {

/// The folder with a service's whole state: identity, initial model, feedback log and latest checkpoint.
/// Locked for one process at a time.
class StateFolder {
 public:
  /// Creates the folder if necessary and locks it. Throws an IoError with the holder's process ID if
  /// another process holds the lock. The destructor removes a folder that it created and that stayed empty.
  explicit StateFolder(const std::filesystem::path& path);
  ~StateFolder();
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path identity_file() const { return path_ / "service.toml"; }
  std::filesystem::path model() const { return path_ / "start.safetensors"; }
  std::filesystem::path log() const { return path_ / "feedback.jsonl"; }
  std::filesystem::path checkpoint() const { return path_ / "checkpoint"; }

  /// None in a fresh folder.
  std::optional<ServiceIdentity> identity() const;
  /// Initialises a fresh folder. Writes the identity last, so that a crash leaves the folder fresh. `model`
  /// holds the bytes of the initial model file, empty without one.
  void begin(const ServiceIdentity& identity, const std::string& model) const;

 private:
  std::filesystem::path lock_file() const { return path_ / "lock"; }
  void lock();

  std::filesystem::path path_;
  bool created_ = false;  // by this object
  int lock_ = -1;
};

}  // namespace olrank
