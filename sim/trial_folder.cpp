#include "sim/trial_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/io/json.h"
#include "core/online/model_bytes.h"
#include "core/runtime/host.h"
#include "core/runtime/log.h"
#include "core/version.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCurve = "curve.jsonl";
constexpr std::string_view kSummary = "summary.json";
constexpr std::string_view kQueries = "queries.csv";
constexpr std::string_view kModel = "model.safetensors";
constexpr std::string_view kCheckpoints = "checkpoint";
/// The latest checkpoint, then the one before it, and so on.
constexpr std::string_view kStates[TrialFolder::kMostCheckpoints] = {
    "state.safetensors",   "state-1.safetensors", "state-2.safetensors",
    "state-3.safetensors", "state-4.safetensors", "state-5.safetensors",
    "state-6.safetensors", "state-7.safetensors", "state-8.safetensors"};
/// The checkpoint of earlier versions, which is refused rather than overlooked.
constexpr std::string_view kOldState = "state.olrank";
/// TrialFolder::seconds() among the stages of a checkpoint, whose own names are those of a round.
constexpr std::string_view kElapsed = "elapsed";

/// All names that files of a trial have.
std::span<const std::string_view> trial_files() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> made{kCurve, kSummary, kQueries, kModel, kOldState};
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

/// Provenance of a model, for its metadata.
ModelMetadata provenance(const TrialSummary& summary, std::int64_t rounds) {
  const TrialIdentity& identity = summary.identity;
  return {{"ranker", identity.ranker},
          {"ranker_settings", text_of(summary.recipe, "ranker")},
          {"protocol", text_of(summary.recipe, "protocol")},
          {"data_fingerprint", text_of(summary.recipe, "data")},
          {"clicks", identity.user},
          {"fold", std::to_string(identity.fold)},
          {"seed", std::to_string(identity.seed)},
          {"rounds", std::to_string(rounds)},
          {"commit", std::string(revision())}};
}

}  // namespace

TrialFolder::TrialFolder(const fs::path& experiment, const TrialIdentity& identity, int checkpoints,
                         Access access)
    : path_(experiment / identity.path()),
      checkpoints_(std::clamp(checkpoints, 1, kMostCheckpoints)),
      writes_(access == Access::kWrite),
      checkpoint_writer_(path_ / kCheckpoints) {}

TrialFolder::~TrialFolder() {
  checkpoint_writer_.end();  // uses the curve
  if (curve_ >= 0) ::close(curve_);
}

bool TrialFolder::has_results() const {
  return fs::exists(path_ / kCurve) || fs::exists(path_ / kSummary) || has_checkpoint();
}

bool TrialFolder::has_checkpoint() const {
  return olrank::has_checkpoint(path_);
}

bool TrialFolder::finished() const {
  return fs::exists(path_ / kSummary);
}

bool TrialFolder::finished(const TrialRecipe& recipe) const {
  return finished() && rounds_of(*this->recipe()) >= rounds_of(recipe);
}

std::optional<TrialRecipe> TrialFolder::recipe() const {
  if (!finished()) {
    if (!has_checkpoint()) return std::nullopt;
    return open_latest_checkpoint(false).recipe;
  }
  const fs::path file = path_ / kSummary;
  const auto parsed = try_parse_json(read_file(file, kLargestJson));
  if (!parsed.is_object() || !parsed.contains("recipe")) {
    throw IoError(
        fmt::format("{}: This is not a trial summary. To continue, {}.", file.string(), way_to_restart()));
  }
  return parse_recipe(parsed["recipe"].dump(), file.string());
}

/// Completes "To continue, …".
std::string TrialFolder::way_to_restart() const {
  return fmt::format("remove {} and use --resume: that trial starts again, all others are kept",
                     path_.string());
}

void TrialFolder::check(const TrialRecipe& recipe) const {
  if (finished()) {
    check_finished(recipe);
    if (finished(recipe)) return;
    if (!has_checkpoint()) {
      throw InvalidArgument(
          fmt::format("{} contains a finished trial of {} rounds without its checkpoint, so it cannot be "
                      "extended to {} "
                      "rounds. To continue, {}.",
                      path_.string(), rounds_of(*this->recipe()), rounds_of(recipe), way_to_restart()));
    }
  }
  if (!has_checkpoint()) return;
  Checkpoint latest = open_latest_checkpoint(false);
  check_checkpoint(latest, recipe);
  latest.state.skip_to("trial.round");
  check_rounds(latest.state.get_one<std::int64_t>("trial.round"), rounds_of(recipe));
}

void TrialFolder::check_rounds(std::int64_t there, std::int64_t here) const {
  if (there <= here) return;
  throw InvalidArgument(
      fmt::format("{} contains {} rounds of this trial, more than the {} of this run: a trial can be "
                  "extended, not shortened. Use --rounds {} or more, or choose another --out.",
                  path_.string(), there, here, there));
}

void TrialFolder::check_finished(TrialRecipe recipe) const {
  TrialRecipe there = *this->recipe();
  const std::int64_t rounds_there = rounds_of(there);
  const std::int64_t rounds_here = rounds_of(recipe);
  // A trial finished by another version counts if everything else is equal.
  for (TrialRecipe* either : {&there, &recipe}) {
    std::erase_if(*either, [](const auto& entry) { return entry.first == "version"; });
    *either = without_rounds(std::move(*either));
  }
  const std::string difference = recipe_difference(there, recipe);
  if (difference.empty()) return check_rounds(rounds_there, rounds_here);
  throw InvalidArgument(fmt::format(
      "{} contains a finished trial that differs in {}. Choose another --out, or replace it with "
      "--force.",
      path_.string(), difference));
}

void TrialFolder::check_checkpoint(const Checkpoint& checkpoint, const TrialRecipe& recipe) const {
  const std::string difference =
      recipe_difference(without_rounds(checkpoint.recipe), without_rounds(recipe));
  if (difference.empty()) return;
  throw InvalidArgument(fmt::format(
      "{}: This checkpoint belongs to another trial, which differs in {}. Resume with the settings "
      "and data that wrote it, or start the trial again with --force.",
      checkpoint_file(checkpoint.age).string(), difference));
}

fs::path TrialFolder::checkpoint_file(int age) const {
  return path_ / kCheckpoints / kStates[age];
}

TrialFolder::Checkpoint TrialFolder::open_checkpoint(const fs::path& file, int age,
                                                     const std::string& restart) const {
  Checkpoint checkpoint{read_state_file(file, restart), {}, {}, {}, age};
  StateReader& state = checkpoint.state;
  checkpoint.recipe = parse_recipe(state.get_text("recipe"), file.string());
  checkpoint.curve = CurveState::load(state);
  checkpoint.before_last = CurveState::load(state);
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(path_ / kCurve, failed);
  if (failed || size < checkpoint.curve.bytes) {
    throw IoError(fmt::format("{}: The curve is shorter than at its checkpoint. To continue, {}.",
                              (path_ / kCurve).string(), restart));
  }
  return checkpoint;
}

TrialFolder::Checkpoint TrialFolder::open_latest_checkpoint(bool warn) const {
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

void TrialFolder::open_curve(bool truncate) {
  const fs::path file = path_ / kCurve;
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (truncate ? O_TRUNC : 0);
  curve_ = ::open(file.c_str(), flags, 0666);
  if (curve_ < 0) throw IoError("write", file.string(), errno);
}

/// A killed run may leave temporary files.
void TrialFolder::remove_leftovers() const {
  std::error_code ignored;
  for (const fs::path& folder : {path_, path_ / kCheckpoints}) {
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      const auto files = trial_files();
      const bool ours = std::any_of(files.begin(), files.end(),
                                    [&](std::string_view file) { return is_temporary_of(name, file); });
      if (ours) fs::remove(entry.path(), ignored);
    }
  }
}

double TrialFolder::seconds() const {
  return earlier_seconds_ +
         std::chrono::duration<double>(std::chrono::steady_clock::now() - opened_).count();
}

void TrialFolder::begin() {
  if (!writes_) return;
  make_folder(path_ / kCheckpoints);
  remove_leftovers();
  open_curve(true);
}

void TrialFolder::append(const CurvePoint& point, const StageClock& clock) {
  if (!writes_) return;
  const std::string line = curve_line(point, &clock);
  write_all(curve_, line, path_ / kCurve);
  before_last_ = curve_state_;
  curve_state_.add(point, line.size());
}

void TrialFolder::sync_curve() const {
  if (::fsync(curve_) != 0) throw IoError("flush", (path_ / kCurve).string(), errno);
}

/// Moves the checkpoints one place on. The latest keeps its name until the new one replaces it.
void TrialFolder::make_room_for_checkpoint() const {
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

void TrialFolder::write_checkpoint(const Trial& trial, const TrialRecipe& recipe) {
  if (!writes_) {
    StateWriter unused;
    return trial.save(unused);
  }
  StateWriter state = checkpoint_writer_.state();
  state.put_text("recipe", recipe_json(recipe));
  curve_state_.save(state);
  before_last_.save(state);
  std::string names;
  std::vector<double> seconds;
  for (const auto& stage : trial.clock().stages()) {
    names += stage.name + "\n";
    seconds.push_back(stage.seconds);
  }
  names += fmt::format("{}\n", kElapsed);
  seconds.push_back(this->seconds());
  state.put_text("clock.stages", names);
  state.put("clock.seconds", seconds);
  trial.save_beside(state);
  trial.save(state);
  checkpoint_writer_.begin(std::move(state), std::string(kStates[0]), [this] {
    sync_curve();
    make_room_for_checkpoint();
  });
}

void TrialFolder::restore(Trial& trial, const TrialRecipe& recipe) {
  if (writes_) remove_leftovers();
  Checkpoint latest = open_latest_checkpoint(writes_);
  check_checkpoint(latest, recipe);
  StateReader& state = latest.state;
  const std::string names = state.get_text("clock.stages");
  const std::vector<double> seconds = state.get<double>("clock.seconds");
  std::optional<double> elapsed;  // earlier versions kept the stages only
  std::size_t begin = 0;
  for (const double of_stage : seconds) {
    const std::size_t end = names.find('\n', begin);
    if (end == std::string::npos) state.fail("The saved stage times have no names.");
    const auto name = std::string_view(names).substr(begin, end - begin);
    if (name == kElapsed) {
      elapsed = of_stage;
    } else {
      trial.clock().add(name, of_stage);
    }
    begin = end + 1;
  }
  earlier_seconds_ = elapsed.value_or(trial.clock().total());
  trial.load_beside(state);
  trial.load(state);
  state.require_end();
  check_rounds(trial.rounds_played(), rounds_of(recipe));
  if (!writes_) return;
  // A longer trial has no evaluation where the shorter one ended between two multiples of E.
  const bool undone = static_cast<double>(trial.evaluated_round()) < latest.curve.last_round;
  curve_state_ = undone ? latest.before_last : latest.curve;

  reopen();
  std::error_code ignored;
  for (int damaged = 0; damaged < latest.age; ++damaged) fs::remove(checkpoint_file(damaged), ignored);
  if (latest.age > 0) {
    // The next checkpoint must not remove the only good one before it is complete.
    std::error_code without_links;
    fs::create_hard_link(checkpoint_file(latest.age), checkpoint_file(0), without_links);
    if (without_links) fs::rename(checkpoint_file(latest.age), checkpoint_file(0), ignored);
  }
  open_curve(false);
  if (::ftruncate(curve_, static_cast<off_t>(curve_state_.bytes)) != 0)
    throw IoError("truncate", (path_ / kCurve).string(), errno);
}

/// A trial that goes on is not finished, and what only a finished one has would be of fewer rounds.
void TrialFolder::reopen() const {
  for (const std::string_view name : {kSummary, kQueries, kModel}) {
    std::error_code failed;
    fs::remove(path_ / name, failed);
    if (failed) throw IoError("remove", (path_ / name).string(), failed.value());
  }
}

void TrialFolder::finish(Trial& trial, const OnlineRanker& ranker, const ModelMetadata& metadata,
                         TrialSummary summary) {
  finish_checkpoint();
  ModelMetadata about = metadata;
  const ModelMetadata origin = provenance(summary, trial.rounds_played());
  about.insert(about.end(), origin.begin(), origin.end());
  const std::string model = model_bytes(ranker.model(), about);
  if (writes_) write_file_atomically(path_ / kModel, model);

  const std::string queries = trial.queries_csv();
  if (writes_) write_file_atomically(path_ / kQueries, queries);

  StateWriter state;
  trial.save(state);
  const Fingerprint of_state = state.fingerprint();
  summary.result_fingerprint =
      chained(curve_state_.digest,
              std::string_view(reinterpret_cast<const char*>(&of_state), sizeof of_state))
          .hex();
  summary.last = trial.latest_point();
  summary.parameters = ranker.parameters();
  summary.offline_area = curve_state_.mean_offline();
  summary.online_area = curve_state_.mean_online();
  summary.seconds = seconds();
  summary.rounds_per_second = summary.seconds > 0.0 ? curve_state_.last_round / summary.seconds : 0.0;
  if (writes_) write_file_atomically(path_ / kSummary, summary_json(summary, trial.clock()));
  write_checkpoint(trial, summary.recipe);
  finish_checkpoint();
}

std::vector<TrialIdentity> trials_in(const fs::path& experiment) {
  std::vector<TrialIdentity> found;
  const auto folders_in = [&](const fs::path& folder) {
    std::vector<fs::path> folders;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(experiment / folder, failed)) {
      std::error_code unknown;
      if (entry.is_directory(unknown)) folders.push_back(folder / entry.path().filename());
    }
    return folders;
  };
  for (const fs::path& ranker : folders_in("trials")) {
    for (const fs::path& user : folders_in(ranker)) {
      for (const fs::path& fold : folders_in(user)) {
        for (const fs::path& seed : folders_in(fold)) {
          if (const auto identity = identity_of(seed)) found.push_back(*identity);
        }
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

void remove_trial(const fs::path& experiment, const TrialIdentity& identity) {
  remove_files(experiment, identity.path() / kCheckpoints, trial_files());
  remove_files(experiment, identity.path(), trial_files());
}

bool has_checkpoint(const fs::path& folder) {
  return !checkpoints_in(folder).empty();
}

std::int64_t load_ranker(const fs::path& folder, OnlineRanker& ranker) {
  StateReader state = read_state_file(checkpoints_in(folder).front(),
                                      fmt::format("remove {} and play the trial again", folder.string()));
  const std::int64_t rounds = Trial::load_ranker(state, ranker);
  state.require_end();
  return rounds;
}

std::string summary_json(const TrialSummary& summary, const StageClock& clock) {
  const CurvePoint& last = summary.last;
  auto json = nlohmann::ordered_json::object();
  json["ranker"] = summary.identity.ranker;
  json["clicks"] = summary.identity.user;
  json["fold"] = summary.identity.fold;
  json["seed"] = summary.identity.seed;
  json["rounds"] = last.round;
  json["last"] = nlohmann::ordered_json::parse(curve_line(last, &clock));
  json["last"].erase("seconds");
  if (json["last"].contains("fairness")) json["fairness"] = json["last"]["fairness"];
  json["area"] = {{"offline", summary.offline_area}, {"online", summary.online_area}};
  json["parameters"] = summary.parameters;
  json["seconds"] = summary.seconds;
  json["rounds_per_second"] = summary.rounds_per_second;
  for (const auto& stage : clock.stages()) json["seconds_by_stage"][stage.name] = stage.seconds;
  json["peak_memory_bytes"] = summary.peak_memory_bytes;
  json["result_fingerprint"] = summary.result_fingerprint;
  json["notes"] = summary.notes;
  json["finished"] = utc_now();
  json["version"] = version();
  json["commit"] = revision();
  for (const auto& [name, text] : summary.recipe) json["recipe"][name] = text;
  return json.dump(2) + "\n";
}

}  // namespace olrank
