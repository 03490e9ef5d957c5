#include "jobs/output_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "core/io/folder.h"
#include "core/io/json.h"
#include "core/runtime/device.h"
#include "core/runtime/log.h"
#include "core/settings/enum_names.h"
#include "core/throw_error.h"
#include "core/version.h"

namespace olrank {

template <>
struct EnumNames<FolderKind> {
  static constexpr std::array values = names_in_order<FolderKind>(
      "experiment", "tuning", "training", "generalisation", "recommender", "report");
};

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::string_view kManifest = "manifest.json";
constexpr std::array<std::string_view, 4> kWrittenFiles = {kManifest, "config.toml", "summary.csv",
                                                           "report.html"};
constexpr std::string_view kTrialList = "trial_folders";
/// Strings that every version has written.
constexpr std::array kOwnKeys = {"version", "commit", "compiler", "command"};
/// Hidden, and with a name that no other file has.
constexpr std::string_view kLock = ".olrank-lock";

bool says_olrank(const ordered_json& manifest) {
  if (!manifest.is_object()) return false;
  return std::all_of(kOwnKeys.begin(), kOwnKeys.end(), [&](const char* key) {
    const auto found = manifest.find(key);
    return found != manifest.end() && found->is_string();
  });
}

std::optional<ordered_json> own_manifest(const fs::path& folder) {
  const fs::path file = folder / kManifest;
  std::error_code unreadable;
  if (!fs::is_regular_file(file, unreadable)) return std::nullopt;
  try {
    ordered_json manifest = parse_ordered_json(read_file(file, kLargestJson));
    if (says_olrank(manifest)) return manifest;
  } catch (const nlohmann::json::exception&) {
  }
  return std::nullopt;
}

/// A killed start may leave the lock's file and temporary files.
bool is_leftover(const std::string& name) {
  return name.starts_with(kLock) || is_temporary(name);
}

bool has_no_content(const fs::path& folder) {
  std::error_code failed;
  const fs::directory_iterator entries(folder, failed);
  if (failed) throw IoError("open the folder", folder.string(), failed.value());
  return std::all_of(begin(entries), end(entries),
                     [](const auto& entry) { return is_leftover(entry.path().filename().string()); });
}

/// Finds the file that shows that a folder holds a data set: "train.txt"; empty for any other.
std::string data_in(const fs::path& folder) {
  for (const std::string stem : {"train", "Fold1", "S1"}) {
    for (const char* ending : {"", ".txt", ".txt.gz", ".txt.zst", ".olrank"}) {
      std::error_code unreadable;
      if (fs::exists(folder / (stem + ending), unreadable)) return stem + ending;
    }
  }
  return {};
}

/// Every manifest begins with this heading.
ordered_json heading(FolderKind kind, const std::string& command) {
  return {{"version", version()}, {"commit", revision()}, {"compiler", compiler()}, {"kind", name_of(kind)},
          {"started", utc_now()}, {"command", command},   {"cpu", cpu_model()}};
}

void write_json(const fs::path& folder, const ordered_json& manifest) {
  write_file_atomically(folder / kManifest, dump_json(manifest, 2) + "\n");
}

fs::path absolute_folder(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

/// The topmost folder of the path that does not exist; empty if all do.
fs::path first_missing(const fs::path& path) {
  fs::path missing;
  std::error_code unreadable;
  for (fs::path folder = absolute_folder(path); !fs::exists(folder, unreadable);
       folder = folder.parent_path()) {
    missing = folder;
    if (!folder.has_relative_path()) break;
  }
  return missing;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

std::int64_t number_of(const char* name, const char* text) {
  if (text == nullptr)
    throw_error<InvalidArgument>("The environment variable {} is required for the shard but not set.",
                                 name);
  const auto number = parse_integer(text);
  if (!number)
    throw_error<InvalidArgument>("The environment variable {} must be an integer, not '{}'.", name, text);
  return *number;
}

Shard checked(Shard shard, std::string_view origin) {
  if (shard.count >= 1 && shard.index >= 0 && shard.index < shard.count) return shard;
  throw_error<InvalidArgument>("{}: Shard {} of {} does not exist; shards are numbered from 0.", origin,
                               shard.index, shard.count);
}

}  // namespace

void OutputFolder::require_own(const fs::path& path, FolderKind kind) {
  std::error_code unreadable;
  const fs::file_status status = fs::status(path, unreadable);
  if (!fs::exists(status)) return;
  if (!fs::is_directory(status))
    throw_error<InvalidArgument>("'{}' is not a folder. Choose another --out.", path.string());
  const auto manifest = own_manifest(path);
  if (!manifest) {
    if (has_no_content(path)) return;
    if (const std::string data = data_in(path); !data.empty()) {
      throw_error<InvalidArgument>(
          "'{}' is a folder of data (it contains {}), and results need a folder of their own. Choose "
          "another --out.",
          path.string(), data);
    }
    throw_error<InvalidArgument>(
        "'{}' contains files but no manifest.json of olrank, so it is not a folder that olrank made, and "
        "nothing in it will be overwritten or removed. Choose another --out or an empty folder.",
        path.string());
  }
  const std::string there = manifest->value("kind", std::string(name_of(FolderKind::kExperiment)));
  if (kind == FolderKind::kReport || there == name_of(kind)) return;
  throw_error<InvalidArgument>(
      "'{}' contains the files of another command (its manifest.json says '{}', not '{}'). Choose another "
      "--out.",
      path.string(), there, name_of(kind));
}

OutputFolder::OutputFolder(const fs::path& path, FolderKind kind, Shard shard) : path_(path), kind_(kind) {
  require_own(path_, kind_);
  created_ = first_missing(path_);
  make_folder(path_);
  lock(shard);
  require_own(path_, kind_);  // as it may have changed before the lock
  if (!shard.is_part()) remove_leftovers();
}

/// A killed run may leave the temporary files of those that it was writing.
void OutputFolder::remove_leftovers() const {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path_, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool ours = std::any_of(kWrittenFiles.begin(), kWrittenFiles.end(),
                                  [&](std::string_view file) { return is_temporary_of(name, file); });
    if (ours) fs::remove(entry.path(), ignored);
  }
}

OutputFolder::~OutputFolder() {
  shard_lock_.release();
  lock_.release();
  if (created_.empty()) return;
  // Stops at the first folder that is not empty.
  for (fs::path folder = absolute_folder(path_); ::rmdir(folder.c_str()) == 0 && folder != created_;)
    folder = folder.parent_path();
}

void OutputFolder::lock(Shard shard) {
  const std::string process = fmt::format("process {}", ::getpid());
  if (shard.count == 1) return take(lock_, std::string(kLock), FileLock::Mode::kAlone, process);
  take(lock_, std::string(kLock), FileLock::Mode::kShared, fmt::format("a run in {} shards", shard.count));
  take(shard_lock_, fmt::format("{}-{}-of-{}", kLock, shard.index, shard.count), FileLock::Mode::kAlone,
       process);
}

void OutputFolder::take(FileLock& lock, const std::string& file, FileLock::Mode mode,
                        const std::string& note) const {
  switch (lock.take(path_ / file, mode, note)) {
    case FileLock::Outcome::kTaken:
      return;
    case FileLock::Outcome::kUnsupported:
      log_warning("The file system of {} has no locks: start no second run there while this one lasts.",
                  path_.string());
      return;
    case FileLock::Outcome::kHeld:
      throw_error<IoError>("'{}' is in use by {}. Wait until it ends, or choose another --out.",
                           path_.string(), lock.holder().empty() ? "another process" : lock.holder());
  }
}

bool OutputFolder::has_manifest() const {
  return own_manifest(path_).has_value();
}

std::optional<std::string> recorded_device(const std::filesystem::path& folder) {
  const auto manifest = own_manifest(folder);
  return manifest ? std::optional(manifest->value("device", std::string("cpu"))) : std::nullopt;
}

std::set<TrialIdentity> OutputFolder::listed_trials() const {
  const auto manifest = own_manifest(path_);
  std::set<TrialIdentity> trials;
  if (!manifest) return trials;
  try {
    for (const auto& folder : manifest->at(kTrialList)) {
      if (const auto identity = identity_of(folder.get<std::string>())) trials.insert(*identity);
    }
  } catch (const nlohmann::json::exception&) {
    trials.clear();  // a damaged list lists nothing
  }
  return trials;
}

/// Returns runs whose trials are still here; none where --force has removed them.
ordered_json OutputFolder::earlier_runs() const {
  const auto manifest = own_manifest(path_);
  const std::set<TrialIdentity> listed = listed_trials();
  const bool kept = std::any_of(listed.begin(), listed.end(), [&](const TrialIdentity& identity) {
    return fs::exists(path_ / identity.path());
  });
  if (!manifest || !kept) return ordered_json::array();
  const auto runs = manifest->find("runs");
  return runs != manifest->end() && runs->is_array() ? *runs : ordered_json::array();
}

void OutputFolder::write_manifest(const ordered_json& description, const std::string& command,
                                  const std::vector<TrialIdentity>& trials) const {
  std::set<TrialIdentity> listed(trials.begin(), trials.end());
  for (const TrialIdentity& earlier : listed_trials()) {
    if (fs::exists(path_ / earlier.path())) listed.insert(earlier);
  }
  ordered_json manifest = heading(kind_, command);
  manifest.update(description);
  manifest["trials"] = listed.size();
  manifest["runs"] = earlier_runs();
  ordered_json run = {{"started", manifest["started"]}, {"version", version()}, {"command", command}};
  if (description.contains("config")) run["rounds"] = description["config"]["protocol"]["rounds"];
  manifest["runs"].push_back(run);
  manifest[kTrialList] = ordered_json::array();
  for (const TrialIdentity& identity : listed) manifest[kTrialList].push_back(identity.path().string());
  write_json(path_, manifest);
}

void OutputFolder::write_manifest(const std::string& command) const {
  write_json(path_, heading(kind_, command));
}

void OutputFolder::write_manifest(const ordered_json& description, const std::string& command) const {
  ordered_json manifest = heading(kind_, command);
  manifest.update(description);
  write_json(path_, manifest);
}

void make_report_folder(const fs::path& path, const std::string& command) {
  OutputFolder::require_own(path, FolderKind::kReport);
  make_folder(path);
  if (!own_manifest(path)) write_json(path, heading(FolderKind::kReport, command));
}

Shard parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash != std::string::npos) {
    const auto index = parse_integer(std::string_view(text).substr(0, slash));
    const auto count = parse_integer(std::string_view(text).substr(slash + 1));
    if (index && count) return checked({*index, *count}, "--shard " + text);
  }
  throw_error<InvalidArgument>("--shard must have the form I/N, such as 0/4, not '{}'.", text);
}

Shard shard_of_environment(const std::function<const char*(const char*)>& variable) {
  if (const char* task = variable("SLURM_ARRAY_TASK_ID")) {
    const std::int64_t first = number_of("SLURM_ARRAY_TASK_MIN", variable("SLURM_ARRAY_TASK_MIN"));
    const std::int64_t count = number_of("SLURM_ARRAY_TASK_COUNT", variable("SLURM_ARRAY_TASK_COUNT"));
    // An array such as 0-6:2 has a step.
    const char* step_text = variable("SLURM_ARRAY_TASK_STEP");
    const std::int64_t step = step_text != nullptr ? number_of("SLURM_ARRAY_TASK_STEP", step_text) : 1;
    const std::int64_t distance = number_of("SLURM_ARRAY_TASK_ID", task) - first;
    if (step < 1 || distance % step != 0) {
      throw_error<InvalidArgument>(
          "SLURM_ARRAY_TASK_ID {} is not in the array that starts at {} with step {}.", task, first, step);
    }
    return checked({distance / step, count}, "SLURM_ARRAY_TASK_ID");
  }
  for (const auto& [index_name, count_name] :
       {std::pair{"JOB_COMPLETION_INDEX", "OLRANK_SHARDS"}, std::pair{"RANK", "WORLD_SIZE"}}) {
    const char* index = variable(index_name);
    if (index == nullptr) continue;
    if (const char* count = variable(count_name)) {
      return checked({number_of(index_name, index), number_of(count_name, count)}, index_name);
    }
    log_info("{} is set but {} is not, so this process runs the whole experiment.", index_name, count_name);
  }
  return {};
}

}  // namespace olrank
