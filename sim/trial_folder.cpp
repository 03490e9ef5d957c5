#include "sim/trial_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/io/json.h"
#include "core/online/model_bytes.h"
#include "core/runtime/host.h"
#include "core/version.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCurve = "curve.jsonl";
constexpr std::string_view kSummary = "summary.json";
constexpr std::string_view kQueries = "queries.csv";
constexpr std::string_view kModel = "model.safetensors";
constexpr std::string_view kCheckpoints = "checkpoint";
constexpr std::string_view kCheckpoint = "checkpoint/state.safetensors";
constexpr std::string_view kState = kCheckpoint.substr(kCheckpoints.size() + 1);
/// The checkpoint of earlier versions, which is refused rather than overlooked.
constexpr std::string_view kOldState = "state.olrank";
constexpr std::string_view kFiles[] = {kCurve, kSummary, kQueries, kModel, kState, kOldState};

void write_all(int descriptor, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw IoError("write", path.string(), errno);
    bytes.remove_prefix(written);
  }
}

fs::path checkpoint_in(const fs::path& folder) {
  const fs::path old = folder / kCheckpoints / kOldState;
  const fs::path current = folder / kCheckpoint;
  return fs::exists(old) && !fs::exists(current) ? old : current;
}

StateReader read_checkpoint(const fs::path& folder) {
  return read_state_file(checkpoint_in(folder), "start the trial again with --force");
}

const std::string& text_of(const TrialRecipe& recipe, std::string_view name) {
  static const std::string nothing;
  for (const auto& [known, text] : recipe) {
    if (known == name) return text;
  }
  return nothing;
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

Fingerprint chained(const Fingerprint& before, std::string_view text) {
  Fingerprinter fingerprinter;
  fingerprinter.add(&before, sizeof before);
  fingerprinter.add(text);
  return fingerprinter.value();
}

}  // namespace

TrialFolder::TrialFolder(const fs::path& experiment, const TrialIdentity& identity)
    : path_(experiment / identity.path()) {}

TrialFolder::~TrialFolder() {
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

void TrialFolder::check(const TrialRecipe& recipe) const {
  if (finished()) return check_finished(recipe);
  if (!has_checkpoint()) return;
  StateReader state = read_checkpoint(path_);
  check_checkpoint(state, recipe);
}

void TrialFolder::check_finished(TrialRecipe recipe) const {
  const fs::path file = path_ / kSummary;
  const auto parsed = try_parse_json(read_file(file, kLargestJson));
  if (!parsed.is_object() || !parsed.contains("recipe")) {
    throw IoError(
        fmt::format("{}: This is not a trial summary. Start the trial again with --force.", file.string()));
  }
  TrialRecipe there = parse_recipe(parsed["recipe"].dump(), file.string());
  // A trial finished by another version counts if everything else is equal.
  for (TrialRecipe* either : {&there, &recipe}) {
    std::erase_if(*either, [](const auto& entry) { return entry.first == "version"; });
  }
  const std::string difference = recipe_difference(there, recipe);
  if (difference.empty()) return;
  throw InvalidArgument(fmt::format(
      "{} contains a finished trial that differs in {}. Choose another --out, or replace it with "
      "--force.",
      path_.string(), difference));
}

/// The recipe is the first entry of a checkpoint.
void TrialFolder::check_checkpoint(StateReader& state, const TrialRecipe& recipe) const {
  const std::string file = (path_ / kCheckpoint).string();
  const std::string difference = recipe_difference(parse_recipe(state.get_text("recipe"), file), recipe);
  if (difference.empty()) return;
  throw InvalidArgument(fmt::format(
      "{}: This checkpoint belongs to another trial, which differs in {}. Resume with the settings "
      "and data that wrote it, or start the trial again with --force.",
      file, difference));
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
      const bool ours = std::any_of(std::begin(kFiles), std::end(kFiles),
                                    [&](std::string_view file) { return is_temporary_of(name, file); });
      if (ours) fs::remove(entry.path(), ignored);
    }
  }
}

void TrialFolder::begin() {
  make_folder(path_ / kCheckpoints);
  remove_leftovers();
  open_curve(true);
}

void TrialFolder::append(const CurvePoint& point, const StageClock& clock) {
  const std::string line = curve_line(point, &clock);
  write_all(curve_, line, path_ / kCurve);
  curve_bytes_ += line.size();
  curve_digest_ = chained(curve_digest_, curve_line(point, nullptr));
  const auto round = static_cast<double>(point.round);
  if (points_ > 0) {
    offline_area_ += 0.5 * (round - last_round_) * (point.offline_ndcg + last_offline_);
    online_area_ += 0.5 * (round - last_round_) * (point.online_ndcg + last_online_);
  }
  ++points_;
  last_round_ = round;
  last_offline_ = point.offline_ndcg;
  last_online_ = point.online_ndcg;
}

void TrialFolder::sync_curve() {
  if (::fsync(curve_) != 0) throw IoError("flush", (path_ / kCurve).string(), errno);
}

void TrialFolder::write_checkpoint(const Trial& trial, const TrialRecipe& recipe) {
  sync_curve();
  StateWriter state;
  state.put_text("recipe", recipe_json(recipe));
  state.put("curve.bytes", curve_bytes_);
  const std::uint64_t digest[] = {curve_digest_.high, curve_digest_.low};
  state.put("curve.digest", std::span<const std::uint64_t>(digest));
  const double areas[] = {offline_area_, online_area_, last_round_, last_offline_, last_online_};
  state.put("curve.areas", std::span<const double>(areas));
  state.put("curve.points", points_);
  std::string names;
  std::vector<double> seconds;
  for (const auto& stage : trial.clock().stages()) {
    names += stage.name + "\n";
    seconds.push_back(stage.seconds);
  }
  state.put_text("clock.stages", names);
  state.put("clock.seconds", seconds);
  trial.save_last_lists(state);
  trial.save(state);
  state.write(path_ / kCheckpoint);
}

void TrialFolder::restore(Trial& trial, const TrialRecipe& recipe) {
  remove_leftovers();
  StateReader state = read_checkpoint(path_);
  check_checkpoint(state, recipe);
  curve_bytes_ = state.get_one<std::uint64_t>("curve.bytes");
  std::uint64_t digest[2];
  state.get_into("curve.digest", std::span<std::uint64_t>(digest));
  curve_digest_ = {digest[0], digest[1]};
  double areas[5];
  state.get_into("curve.areas", std::span<double>(areas));
  offline_area_ = areas[0];
  online_area_ = areas[1];
  last_round_ = areas[2];
  last_offline_ = areas[3];
  last_online_ = areas[4];
  points_ = state.get_one<std::int64_t>("curve.points");
  const std::string names = state.get_text("clock.stages");
  const std::vector<double> seconds = state.get<double>("clock.seconds");
  std::size_t begin = 0;
  for (const double of_stage : seconds) {
    const std::size_t end = names.find('\n', begin);
    if (end == std::string::npos) state.fail("The saved stage times have no names.");
    trial.clock().add(std::string_view(names).substr(begin, end - begin), of_stage);
    begin = end + 1;
  }
  trial.load_last_lists(state);
  trial.load(state);
  state.require_end();

  const fs::path curve = path_ / kCurve;
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(curve, failed);
  if (failed || size < curve_bytes_) {
    throw IoError(
        fmt::format("{}: The curve is shorter than at its checkpoint. Start the trial again with --force.",
                    curve.string()));
  }
  open_curve(false);
  if (::ftruncate(curve_, static_cast<off_t>(curve_bytes_)) != 0)
    throw IoError("truncate", curve.string(), errno);
}

void TrialFolder::finish(Trial& trial, const OnlineRanker& ranker, const ModelMetadata& metadata,
                         TrialSummary summary) {
  ModelMetadata about = metadata;
  const ModelMetadata origin = provenance(summary, trial.rounds_played());
  about.insert(about.end(), origin.begin(), origin.end());
  write_file_atomically(path_ / kModel, model_bytes(ranker.model(), about));

  write_file_atomically(path_ / kQueries, trial.queries_csv());

  StateWriter state;
  trial.save(state);
  const Fingerprint of_state = state.fingerprint();
  summary.result_fingerprint =
      chained(curve_digest_, std::string_view(reinterpret_cast<const char*>(&of_state), sizeof of_state))
          .hex();
  summary.last = trial.latest_point();
  summary.parameters = ranker.parameters();
  summary.offline_area = last_round_ > 0.0 ? offline_area_ / last_round_ : last_offline_;
  summary.online_area = last_round_ > 0.0 ? online_area_ / last_round_ : last_online_;
  summary.seconds = trial.clock().total();
  summary.rounds_per_second = summary.seconds > 0.0 ? last_round_ / summary.seconds : 0.0;
  write_file_atomically(path_ / kSummary, summary_json(summary, trial.clock()));
  write_checkpoint(trial, summary.recipe);
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
  remove_files(experiment, identity.path() / kCheckpoints, kFiles);
  remove_files(experiment, identity.path(), kFiles);
}

bool has_checkpoint(const fs::path& folder) {
  return fs::exists(checkpoint_in(folder));
}

std::int64_t load_ranker(const fs::path& folder, OnlineRanker& ranker) {
  StateReader state = read_checkpoint(folder);
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
