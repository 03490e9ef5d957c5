#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serve/arms.h"
#include "serve/service_identity.h"

namespace olrank {

/// The folder with a service's whole state: identity, initial model, feedback log and latest checkpoint.
/// Locked for one process at a time. Only its owner may read it: mode 0700, files 0600.
class StateFolder {
 public:
  enum class Use { kService, kReading };
  /// Locks the folder; creates it if necessary, unless it is only read, which changes nothing. Throws an
  /// IoError with the holder's process ID if another process holds the lock, and for symbolic links and
  /// other special files in place of its own.
  explicit StateFolder(const std::filesystem::path& path, Use use = Use::kService);
  /// Without accept(), undoes what the constructor did.
  ~StateFolder();
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path identity_file() const { return path_ / "service.toml"; }
  std::filesystem::path model() const { return path_ / "start.safetensors"; }
  std::filesystem::path log() const { return path_ / "feedback.jsonl"; }
  std::filesystem::path checkpoint() const { return path_ / "checkpoint"; }

  /// The schemas while one takes the place of the other.
  std::filesystem::path schemas() const { return path_ / "schemas.json"; }

  /// None in a fresh folder.
  std::optional<ServiceIdentity> identity() const;
  /// The arms of the last start; none without.
  std::optional<ArmPlan> arms() const;
  std::filesystem::path arms_file() const { return path_ / "arms.toml"; }
  /// The model of the arm of that name.
  std::filesystem::path arm_model(const std::string& name) const {
    return path_ / ("arm-" + name + ".safetensors");
  }

  /// The start succeeded: what the constructor created stays. Restricts the folder and its files to their
  /// owner and removes what killed writes left behind.
  void accept();
  /// Initialises a fresh folder. Writes the identity last, so that a crash leaves the folder fresh. `model`
  /// holds the bytes of the initial model file, empty without one.
  void begin(const ServiceIdentity& identity, const std::string& model) const;
  /// Keeps the arms for later starts, with the bytes of their models in the plan's order; none removes
  /// them.
  void set_arms(const std::optional<ArmPlan>& plan, std::span<const std::string> models) const;

  /// Throws StateLost if the lock was removed or replaced.
  void require_lock() const;

 private:
  std::filesystem::path lock_file() const { return path_ / "lock"; }
  void make_folders();
  void lock();
  void lock_to_read();
  void refuse_special_files() const;
  void undo();
  void restrict_to_owner() const;

  std::filesystem::path path_;
  std::vector<std::filesystem::path> created_;  // by this object, the innermost last
  bool accepted_ = false;
  int lock_ = -1;
  bool owns_lock_ = false;
  bool created_lock_ = false;  // by this object
  std::string holder_before_;  // what the lock said
};

/// Throws InvalidArgument for a folder without a service.
void require_service(const std::filesystem::path& state);

struct StateBackup {
  std::uint64_t records = 0;      // in the log of the copy
  std::uint64_t new_records = 0;  // that the copy did not have
  std::int64_t bytes = 0;         // written
};

/// Copies the state of a service, which may run, to a folder that a service can start on. Of logs and
/// journals it copies what an earlier copy there lacks. A copy that is interrupted loses nothing that it
/// had, and the next one completes it. Throws InvalidArgument for a folder without a service, or if the
/// copy is of another log, IoError if a service uses the copy, DataError for a damaged line.
StateBackup back_up_state(const std::filesystem::path& state, const std::filesystem::path& copy);

/// Throws InvalidArgument for a file or folder that `flag` would write into the state folder of a service.
void require_outside_state(const std::filesystem::path& file, std::string_view flag);

}  // namespace olrank
