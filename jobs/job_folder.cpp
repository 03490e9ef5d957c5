#include "jobs/job_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>

#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/io/json.h"
#include "core/runtime/device.h"
#include "core/runtime/log.h"
#include "core/throw_error.h"
#include "core/version.h"
#include "sim/trial_settings.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::string_view kCurve = "curve.jsonl";
constexpr std::string_view kCheckpoints = "checkpoint";
constexpr std::string_view kChecksums = "checksums";  // in the summary: of the other files
/// The latest checkpoint, then the one before it, and so on.
constexpr std::string_view kStates[JobFolder::kMostCheckpoints] = {
    "state.safetensors",   "state-1.safetensors", "state-2.safetensors",
    "state-3.safetensors", "state-4.safetensors", "state-5.safetensors",
    "state-6.safetensors", "state-7.safetensors", "state-8.safetensors"};
/// The checkpoint of earlier versions, which is refused rather than overlooked.
constexpr std::string_view kOldState = "state.olrank";

/// All names that files of a job have.
std::span<const std::string_view> job_files() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> made{kCurve, kSummaryFile, JobFolder::kQueriesFile, JobFolder::kModelFile,
                                       kOldState};
    made.insert(made.end(), std::begin(kStates), std::end(kStates));
    const auto blocks = block_file_names();
    made.insert(made.end(), blocks.begin(), blocks.end());
    return made;
  }();
  return names;
}

void write_all(int descriptor, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw IoError("write", path.string(), errno);
    bytes.remove_prefix(written);
  }
}

/// The files of the checkpoints there, the latest first.
std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const std::string_view name : kStates) {
    if (const fs::path file = folder / kCheckpoints / name; fs::exists(file)) files.push_back(file);
  }
  if (const fs::path old = folder / kCheckpoints / kOldState; files.empty() && fs::exists(old))
    files.push_back(old);
  return files;
}

}  // namespace

JobFolder::JobFolder(fs::path path) : JobFolder(std::move(path), Options{}) {}

JobFolder::JobFolder(fs::path path, const Options& options)
    : path_(std::move(path)),
      noun_(options.noun),
      checkpoints_(std::clamp(options.checkpoints, 1, kMostCheckpoints)),
      checkpoint_writer_(path_ / kCheckpoints) {}

JobFolder::~JobFolder() {
  checkpoint_writer_.end();  // uses the curve
  if (curve_ >= 0) ::close(curve_);
}

bool JobFolder::has_results() const {
  return fs::exists(path_ / kCurve) || fs::exists(path_ / kSummaryFile) || has_checkpoint();
}

void JobFolder::require_empty() const {
  if (!has_results()) return;
  throw_error<InvalidArgument>(
      "'{}' already contains a {}: continue it with --resume, replace it with --force, or choose another "
      "--out.",
      path_.string(), noun_);
}

bool JobFolder::has_checkpoint() const {
  return olrank::has_checkpoint(path_);
}

bool JobFolder::finished() const {
  return fs::exists(path_ / kSummaryFile);
}

bool JobFolder::finished(const Recipe& recipe) const {
  return finished() && rounds_of(*this->recipe()) >= rounds_of(recipe);
}

ordered_json JobFolder::summary() const {
  const fs::path file = path_ / kSummaryFile;
  ordered_json parsed = parse_checked_json(read_file(file, kLargestJson), file.string(), way_to_restart());
  if (!parsed.is_object() || !parsed.contains("recipe")) {
    throw_error<IoError>("{}: This is not a {} summary. To continue, {}.", file.string(), noun_,
                         way_to_restart());
  }
  return parsed;
}

std::optional<Recipe> JobFolder::recipe() const {
  if (finished()) return parse_recipe(summary()["recipe"].dump(), (path_ / kSummaryFile).string());
  if (!has_checkpoint()) return std::nullopt;
  return open_latest_checkpoint(false).recipe;
}

/// Completes "To continue, …".
std::string JobFolder::way_to_restart() const {
  return fmt::format("remove {} and use --resume: that {} starts again, all others are kept",
                     path_.string(), noun_);
}

/// Throws IoError for a file of the finished job that has changed since.
void JobFolder::check_files() const {
  const ordered_json checksums = summary().value(kChecksums, ordered_json::object());
  for (const std::string_view name : {kCurve, kModelFile, kQueriesFile}) {
    const fs::path file = path_ / name;
    if (!checksums.contains(name) || !fs::exists(file)) continue;
    if (checksums[name] == fingerprint_of(read_file(file)).hex()) continue;
    throw_error<IoError>(
        "{}: This file has changed since its {} finished: its checksum does not match. To continue, {}.",
        file.string(), noun_, way_to_restart());
  }
}

/// The content of the curve up to a checkpoint.
Fingerprinter JobFolder::first_of_curve(std::uint64_t bytes) const {
  Fingerprinter content;
  content.add(std::string_view(read_file(path_ / kCurve)).substr(0, bytes));
  return content;
}

void JobFolder::check(const Recipe& recipe) const {
  if (finished()) {
    check_finished(recipe);
    check_files();
    if (finished(recipe)) return;
    if (!has_checkpoint()) {
      throw_error<InvalidArgument>(
          "{} contains a finished {} of {} rounds without its checkpoint, so it cannot be extended to {} "
          "rounds. To continue, {}.",
          path_.string(), noun_, rounds_of(*this->recipe()), rounds_of(recipe), way_to_restart());
    }
  }
  if (!has_checkpoint()) return;
  const Checkpoint latest = open_latest_checkpoint(false);
  check_checkpoint(latest, recipe);
  check_rounds(latest.steps, rounds_of(recipe));
}

/// A recipe without rounds says nothing of the length.
void JobFolder::check_rounds(std::int64_t there, std::int64_t here) const {
  if (here == 0 || there <= here) return;
  throw_error<InvalidArgument>(
      "{} contains {} rounds of this {}, more than the {} of this run: a {} can be extended, not "
      "shortened. Use --rounds {} or more, or choose another --out.",
      path_.string(), there, noun_, here, noun_, there);
}

void JobFolder::check_finished(Recipe recipe) const {
  Recipe there = *this->recipe();
  const std::int64_t rounds_there = rounds_of(there);
  const std::int64_t rounds_here = rounds_of(recipe);
  // A job finished by another version counts if everything else is equal.
  for (Recipe* either : {&there, &recipe}) {
    std::erase_if(*either, [](const auto& entry) { return entry.first == "version"; });
    *either = without_rounds(std::move(*either));
  }
  const std::string difference = recipe_difference(there, recipe);
  if (difference.empty()) return check_rounds(rounds_there, rounds_here);
  throw_error<InvalidArgument>(
      "{} contains a finished {} that differs in {}. Choose another --out, or replace it with --force.",
      path_.string(), noun_, difference);
}

void JobFolder::check_checkpoint(const Checkpoint& checkpoint, const Recipe& recipe) const {
  const std::string difference =
      recipe_difference(without_rounds(checkpoint.recipe), without_rounds(recipe));
  if (difference.empty()) return;
  throw_error<InvalidArgument>(
      "{}: This checkpoint belongs to another {}, which differs in {}. Resume with the settings and data "
      "that wrote it, or start the {} again with --force.",
      checkpoint_file(checkpoint.age).string(), noun_, difference, noun_);
}

fs::path JobFolder::checkpoint_file(int age) const {
  return path_ / kCheckpoints / kStates[age];
}

JobFolder::Checkpoint JobFolder::open_checkpoint(const fs::path& file, int age,
                                                 const std::string& restart) const {
  Checkpoint checkpoint{read_state_file(file, restart), {}, 0, 0.0, age};
  StateReader& state = checkpoint.state;
  checkpoint.recipe = parse_recipe(state.get_text("recipe"), file.string());
  checkpoint.steps = state.get_one<std::int64_t>("job.steps");
  checkpoint.seconds = state.get_one<double>("job.seconds");
  const auto curve_bytes = state.get_one<std::uint64_t>("job.curve_bytes");
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(path_ / kCurve, failed);
  if (failed || size < curve_bytes) {
    throw_error<IoError>("{}: The curve is shorter than at its checkpoint. To continue, {}.",
                         (path_ / kCurve).string(), restart);
  }
  // Checkpoints of earlier versions have no checksum.
  if (state.is_next("job.curve_checksum") &&
      state.get_text("job.curve_checksum") != first_of_curve(curve_bytes).value().hex()) {
    throw_error<IoError>(
        "{}: The curve has changed since its checkpoint: its checksum does not match. To continue, {}.",
        (path_ / kCurve).string(), restart);
  }
  return checkpoint;
}

JobFolder::Checkpoint JobFolder::open_latest_checkpoint(bool warn) const {
  std::vector<int> ages;
  for (int age = 0; age < kMostCheckpoints; ++age) {
    if (fs::exists(checkpoint_file(age))) ages.push_back(age);
  }
  // A checkpoint of an earlier version is refused rather than overlooked.
  if (ages.empty()) return open_checkpoint(checkpoints_in(path_).front(), 0, way_to_restart());
  const int oldest = ages.back();
  for (const int age : ages) {
    if (age == oldest) break;
    try {
      return open_checkpoint(checkpoint_file(age), age, "olrank uses the checkpoint before it");
    } catch (const IoError& error) {
      if (warn) log_warning("{}", error.what());
    }
  }
  return open_checkpoint(checkpoint_file(oldest), oldest, way_to_restart());
}

void JobFolder::open_curve(bool truncate) {
  const fs::path file = path_ / kCurve;
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (truncate ? O_TRUNC : 0);
  curve_ = ::open(file.c_str(), flags, 0666);
  if (curve_ < 0) throw IoError("write", file.string(), errno);
}

/// A killed run may leave temporary files.
void JobFolder::remove_leftovers() const {
  std::error_code ignored;
  for (const fs::path& folder : {path_, path_ / kCheckpoints}) {
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      const auto files = job_files();
      const bool ours = std::any_of(files.begin(), files.end(),
                                    [&](std::string_view file) { return is_temporary_of(name, file); });
      if (ours) fs::remove(entry.path(), ignored);
    }
  }
}

void JobFolder::begin() {
  make_folder(path_ / kCheckpoints);
  remove_leftovers();
  open_curve(true);
  curve_content_ = {};
}

void JobFolder::append(std::string_view line) {
  curve_content_.add(line);
  write_all(curve_, line, path_ / kCurve);
}

void JobFolder::sync_curve() const {
  if (::fsync(curve_) != 0) throw IoError("flush", (path_ / kCurve).string(), errno);
}

/// Moves the checkpoints one place on. The latest keeps its name until the new one replaces it.
void JobFolder::make_room_for_checkpoint() const {
  std::error_code ignored;
  for (int age = kMostCheckpoints - 1; age >= std::max(checkpoints_ - 1, 1); --age)
    fs::remove(checkpoint_file(age), ignored);
  if (checkpoints_ == 1) return;
  for (int age = checkpoints_ - 2; age >= 1; --age)
    fs::rename(checkpoint_file(age), checkpoint_file(age + 1), ignored);
  std::error_code without_links;
  fs::create_hard_link(checkpoint_file(0), checkpoint_file(1), without_links);
  if (without_links) fs::rename(checkpoint_file(0), checkpoint_file(1), ignored);
}

void JobFolder::write_checkpoint(const Job& job, const Recipe& recipe) {
  StateWriter state = checkpoint_writer_.state();
  state.put_text("recipe", recipe_json(recipe));
  state.put("job.steps", job.steps());
  state.put("job.seconds", seconds());
  state.put("job.curve_bytes", job.curve_bytes());
  state.put_text("job.curve_checksum", curve_content_.value().hex());
  job.save(state);
  checkpoint_writer_.begin(std::move(state), std::string(kStates[0]), [this] {
    sync_curve();
    make_room_for_checkpoint();
  });
}

JobFolder::Checkpoint JobFolder::load_latest(Job& job, const Recipe& recipe, bool warn) const {
  Checkpoint latest = open_latest_checkpoint(warn);
  check_checkpoint(latest, recipe);
  check_rounds(latest.steps, rounds_of(recipe));
  job.load(latest.state);
  latest.state.require_end();
  return latest;
}

void JobFolder::restore(Job& job, const Recipe& recipe) {
  remove_leftovers();
  const Checkpoint latest = load_latest(job, recipe, true);
  earlier_seconds_ = latest.seconds;
  reopen();
  std::error_code ignored;
  for (int damaged = 0; damaged < latest.age; ++damaged) fs::remove(checkpoint_file(damaged), ignored);
  if (latest.age > 0) {
    // The next checkpoint must not remove the only good one before it is complete.
    std::error_code without_links;
    fs::create_hard_link(checkpoint_file(latest.age), checkpoint_file(0), without_links);
    if (without_links) fs::rename(checkpoint_file(latest.age), checkpoint_file(0), ignored);
  }
  curve_content_ = first_of_curve(job.curve_bytes());
  open_curve(false);
  if (::ftruncate(curve_, static_cast<off_t>(job.curve_bytes())) != 0)
    throw IoError("truncate", (path_ / kCurve).string(), errno);
}

/// A job that goes on is not finished, and what only a finished one has would be of fewer rounds.
void JobFolder::reopen() const {
  for (const std::string_view name : {kSummaryFile, kQueriesFile, kModelFile}) {
    std::error_code failed;
    fs::remove(path_ / name, failed);
    if (failed) throw IoError("remove", (path_ / name).string(), failed.value());
  }
}

void JobFolder::finish(const Job& job, const Recipe& recipe, std::span<const ResultFile> files,
                       ordered_json summary) {
  finish_checkpoint();
  summary[kChecksums][kCurve] = curve_content_.value().hex();
  for (const auto& [name, content] : files) {
    write_file_atomically(path_ / name, content);
    summary[kChecksums][name] = fingerprint_of(content).hex();
  }
  summary["finished"] = utc_now();
  summary["version"] = version();
  summary["commit"] = revision();
  for (const auto& [name, text] : recipe) summary["recipe"][name] = text;
  write_file_atomically(path_ / kSummaryFile, dump_checked_json(summary, 2));
  write_checkpoint(job, recipe);
  finish_checkpoint();
}

void remove_job(const fs::path& root, const fs::path& folder) {
  remove_files(root, folder / kCheckpoints, job_files());
  remove_files(root, folder, job_files());
}

bool has_checkpoint(const fs::path& folder) {
  return !checkpoints_in(folder).empty();
}

StateReader read_checkpoint(const fs::path& folder, std::string_view restart) {
  return read_state_file(checkpoints_in(folder).front(), restart);
}

}  // namespace olrank
