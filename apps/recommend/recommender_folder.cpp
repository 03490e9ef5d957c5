#include "apps/recommend/recommender_folder.h"

#include <fmt/format.h>

#include <array>
#include <chrono>

#include "apps/recommend/recommend_configuration.h"
#include "apps/recommend/recommender_file.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/io/json.h"
#include "core/io/state_archive.h"
#include "core/runtime/host.h"
#include "core/version.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::string_view kRecommenderCurve = "curve.jsonl";
constexpr std::string_view kRecommenderModel = "model.safetensors";
constexpr std::string_view kRecommenderSummary = "summary.json";
constexpr std::string_view kRecommenderCheckpoint = "checkpoint";
constexpr std::string_view kRecommenderState = "state.safetensors";
constexpr std::string_view kStartAgain = "start again with --force";
constexpr double kCheckpointSeconds = 1.0;

double folder_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

TrialRecipe recommender_recipe(const RecommendSettings& settings, const ReviewParts& parts) {
  return {{"settings", print_recommend_settings(resolved(settings))}, {"data", parts.fingerprint.hex()}};
}

bool RecommenderFolder::has_results() const {
  return fs::exists(path_ / kRecommenderCurve) || finished() ||
         fs::exists(path_ / kRecommenderCheckpoint / kRecommenderState);
}

bool RecommenderFolder::finished() const {
  return fs::exists(path_ / kRecommenderSummary);
}

ordered_json RecommenderFolder::summary() const {
  const fs::path file = path_ / kRecommenderSummary;
  ordered_json json = try_parse_json(read_file(file, kLargestJson));
  if (!json.is_object() || !json.contains("recipe"))
    throw IoError(
        fmt::format("{}: This is not a summary of a recommender: {}.", file.string(), kStartAgain));
  return json;
}

void RecommenderFolder::remove() const {
  const std::array state = {kRecommenderState};
  remove_files(path_, kRecommenderCheckpoint, state);
  const std::array files = {kRecommenderCurve, kRecommenderModel, kRecommenderSummary};
  remove_files(path_, {}, files);
}

double RecommenderFolder::seconds() const {
  return earlier_seconds_ + folder_clock() - began_;
}

void RecommenderFolder::require_recipe(const TrialRecipe& there, const TrialRecipe& here) const {
  const std::string difference = recipe_difference(there, here);
  if (difference.empty()) return;
  throw InvalidArgument(fmt::format(
      "{} contains a training that differs in {}. Choose another --out, or replace it with --force.",
      path_.string(), difference));
}

void RecommenderFolder::check_finished(const TrialRecipe& recipe) const {
  require_recipe(parse_recipe(summary()["recipe"].dump(), (path_ / kRecommenderSummary).string()), recipe);
}

void RecommenderFolder::begin(RecommenderRun& run, const TrialRecipe& recipe, bool resume) {
  make_folder(path_ / kRecommenderCheckpoint);
  began_ = folder_clock();
  const fs::path file = path_ / kRecommenderCheckpoint / kRecommenderState;
  if (!resume || !fs::exists(file)) return;
  StateReader state = read_state_file(file, kStartAgain);
  require_recipe(parse_recipe(state.get_text("recipe"), file.string()), recipe);
  curve_ = state.get_text("curve");
  digest_ = state.get_text("digest");
  earlier_seconds_ = state.get_one<double>("seconds");
  run.load(state);
  state.require_end();
  write_file_atomically(path_ / kRecommenderCurve, curve_);
}

void RecommenderFolder::append(const ordered_json& point) {
  ordered_json timed = point;
  timed.erase("seconds");
  digest_ += dump_json(timed) + "\n";
  timed["seconds"] = seconds();
  curve_ += dump_json(timed) + "\n";
}

void RecommenderFolder::checkpoint(const RecommenderRun& run, const TrialRecipe& recipe, bool must) {
  const double moment = folder_clock();
  if (!must && written_ >= 0.0 && moment - written_ < kCheckpointSeconds) return;
  written_ = moment;
  write_file_atomically(path_ / kRecommenderCurve, curve_);
  StateWriter state;
  state.put_text("recipe", recipe_json(recipe));
  state.put_text("curve", curve_);
  state.put_text("digest", digest_);
  state.put("seconds", seconds());
  run.save(state);
  state.write(path_ / kRecommenderCheckpoint / kRecommenderState);
}

void RecommenderFolder::finish(const RecommenderRun& run, const RecommendSettings& settings,
                               const ReviewParts& parts, const TrialRecipe& recipe, ordered_json summary) {
  checkpoint(run, recipe, true);
  write_recommender(path_ / kRecommenderModel, settings, parts, run.kept_model());
  Fingerprinter fingerprint;
  fingerprint.add(digest_);
  fingerprint.add(run.kept_model());
  summary["seconds"] = seconds();
  summary["result_fingerprint"] = fingerprint.value().hex();
  summary["finished"] = utc_now();
  summary["version"] = version();
  summary["commit"] = revision();
  for (const auto& [name, text] : recipe) summary["recipe"][name] = text;
  write_file_atomically(path_ / kRecommenderSummary, dump_json(summary, 2) + "\n");
}

}  // namespace olrank
