#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "serve/service_identity.h"

namespace olrank {

/// The directory that holds all of a service: what it is, the model it started from, the feedback log and
/// the latest checkpoint. One process at a time.
class StateFolder {
 public:
  /// Makes the folder where there is none and locks it. Throws IoError, with the other's number, while
  /// another process has it. A folder that nothing was written to goes with the object.
  explicit StateFolder(const std::filesystem::path& path);
  ~StateFolder();
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path identity_file() const { return path_ / "service.toml"; }
  std::filesystem::path model() const { return path_ / "start.safetensors"; }
  std::filesystem::path log() const { return path_ / "feedback.jsonl"; }
  std::filesystem::path checkpoint() const { return path_ / "checkpoint"; }

  /// Nothing in a fresh folder.
  std::optional<ServiceIdentity> identity() const;
  /// Writes a fresh folder's identity, last of all that a start needs. `model` are the bytes of the model
  /// file to start from, empty without one.
  void begin(const ServiceIdentity& identity, const std::string& model) const;

 private:
  std::filesystem::path lock_file() const { return path_ / "lock"; }
  void lock();

  std::filesystem::path path_;
  bool made_ = false;  // the folder was not there before
  int lock_ = -1;
};

}  // namespace olrank
