#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/io/atomic_file.h"
#include "sim/trial_settings.h"

namespace olrank {

/// One of several parts of the jobs of a run.
struct Shard {
  std::int64_t index = 0;
  std::int64_t count = 1;

  bool is_part() const { return count > 1; }
  /// Whether job `number` of the whole run belongs to it.
  bool has(std::size_t number) const { return static_cast<std::int64_t>(number) % count == index; }
};

/// Parses "I/N", I from 0. Throws InvalidArgument for anything else.
Shard parse_shard(const std::string& text);

/// The shard from a scheduler's environment variables: SLURM_ARRAY_TASK_ID with _MIN, _COUNT and optionally
/// _STEP, JOB_COMPLETION_INDEX with OLRANK_SHARDS, or RANK with WORLD_SIZE, in this order; without them,
/// the whole experiment. `variable` returns null for a variable that is not set.
Shard shard_of_environment(const std::function<const char*(const char*)>& variable);

/// A folder of results holds one of these.
enum class FolderKind { kExperiment, kTuning, kTraining, kGeneralisation, kRecommender, kReport };

/// A folder that commands write results to. The one place that decides whether a folder is olrank's: its
/// manifest.json says so. Any other folder is refused unless it is missing or empty, whatever the flags.
class OutputFolder {
 public:
  /// Throws InvalidArgument unless the folder is olrank's and of this kind, or missing, or empty. Changes
  /// nothing. A report may go to a folder of any kind.
  static void require_own(const std::filesystem::path& path, FolderKind kind);

  /// Checks as require_own() does, creates the folder and locks it against other processes; shards of one
  /// experiment share it. Throws IoError if the folder is in use. The destructor unlocks, and removes a
  /// folder that it created and that stayed empty.
  OutputFolder(const std::filesystem::path& path, FolderKind kind, Shard shard = {});
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  bool has_manifest() const;
  /// The trials that the manifest lists, also those of earlier runs into this folder.
  std::set<TrialIdentity> listed_trials() const;
  /// Writes the manifest, which makes the folder olrank's: the description, with version, command and time.
  /// Trials that it already lists stay listed while they exist, and so do the runs that played them.
  void write_manifest(const nlohmann::ordered_json& description, const std::string& command,
                      const std::vector<TrialIdentity>& trials) const;
  /// The manifest of a folder that has no trials itself, and of one that has none at all.
  void write_manifest(const std::string& command) const;
  void write_manifest(const nlohmann::ordered_json& description, const std::string& command) const;

 private:
  nlohmann::ordered_json earlier_runs() const;
  void lock(Shard shard);
  void remove_leftovers() const;
  void take(FileLock& lock, const std::string& file, FileLock::Mode mode, const std::string& note) const;

  std::filesystem::path path_;
  FolderKind kind_;
  std::filesystem::path created_;  // the topmost folder that this object created
  FileLock lock_;
  FileLock shard_lock_;
};

/// The device of the manifest, "cpu" where it names none; nothing without a manifest.
std::optional<std::string> recorded_device(const std::filesystem::path& folder);

/// Creates a folder for a report, with a manifest if it has none. Throws as require_own() does.
void make_report_folder(const std::filesystem::path& path, const std::string& command);

}  // namespace olrank
