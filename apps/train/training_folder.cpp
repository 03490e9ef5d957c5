#include "apps/train/training_folder.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/io/json.h"
#include "core/io/state_archive.h"
#include "core/online/model_bytes.h"
#include "core/runtime/host.h"
#include "core/version.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::string_view kCurve = "curve.jsonl";
constexpr std::string_view kModel = "model.safetensors";
constexpr std::string_view kSummary = "summary.json";
constexpr std::string_view kCheckpoint = "checkpoint";
constexpr std::string_view kState = "state.safetensors";
constexpr double kSecondsBetweenCheckpoints = 1.0;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ordered_json point_json(const LabelTraining::Point& point, const MetricOptions& options) {
  ordered_json json = {{"epoch", point.epoch},
                       {"loss", point.loss ? number_or_null(*point.loss) : ordered_json(nullptr)}};
  if (!point.vali_loss) return json;
  json["vali"] = {{"loss", number_or_null(*point.vali_loss)}};
  json["vali"].update(metrics_json(point.vali, options));
  return json;
}

std::optional<double> real(const ordered_json& value) {
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

TrainingPoint point_of(const ordered_json& json) {
  TrainingPoint point;
  point.epoch = json.at("epoch").get<std::int64_t>();
  point.loss = real(json.value("loss", ordered_json(nullptr)));
  point.seconds = json.value("seconds", 0.0);
  if (!json.contains("vali")) return point;
  for (const auto& [name, value] : json["vali"].items()) {
    if (name == "loss") {
      point.vali_loss = real(value);
    } else if (const auto metric = real(value)) {
      point.vali.emplace_back(name, *metric);
    }
  }
  return point;
}

}  // namespace

ordered_json metrics_json(const MetricReport& report, const MetricOptions& options) {
  ordered_json json;
  for (std::size_t place = 0; place < options.cutoffs.size(); ++place)
    json[fmt::format("ndcg@{}", options.cutoffs[place])] = number_or_null(report.ndcg[place]);
  json["map"] = number_or_null(report.map);
  json["mrr"] = number_or_null(report.mrr);
  json[fmt::format("p@{}", options.precision_cutoff)] = number_or_null(report.precision);
  json[fmt::format("err@{}", options.err_cutoff)] = number_or_null(report.err);
  return json;
}

std::vector<TrainingPoint> read_training_curve(const fs::path& file) {
  std::vector<TrainingPoint> points;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    const auto json = try_parse_json(line);
    if (!json.is_object() || !json.contains("epoch")) break;
    points.push_back(point_of(json));
  }
  return points;
}

bool TrainingFolder::has_results() const {
  return fs::exists(path_ / kCurve) || finished() || fs::exists(path_ / kCheckpoint / kState);
}

bool TrainingFolder::finished() const {
  return fs::exists(path_ / kSummary);
}

TrialRecipe TrainingFolder::recipe_of_checkpoint() const {
  const fs::path file = path_ / kCheckpoint / kState;
  StateReader state = read_state_file(file, "start again with --force");
  return parse_recipe(state.get_text("recipe"), file.string());
}

void TrainingFolder::check(const TrialRecipe& recipe) const {
  TrialRecipe there;
  if (finished()) {
    const fs::path file = path_ / kSummary;
    const auto parsed = try_parse_json(read_file(file, kLargestJson));
    if (!parsed.is_object() || !parsed.contains("recipe"))
      throw IoError(
          fmt::format("{}: This is not a summary of a training: start again with --force.", file.string()));
    there = parse_recipe(parsed["recipe"].dump(), file.string());
  } else if (fs::exists(path_ / kCheckpoint / kState)) {
    there = recipe_of_checkpoint();
  } else {
    return;
  }
  const std::string difference = recipe_difference(there, recipe);
  if (difference.empty()) return;
  throw InvalidArgument(fmt::format(
      "{} contains a training that differs in {}. Choose another --out, or replace it with --force.",
      path_.string(), difference));
}

void TrainingFolder::remove() const {
  const std::array state = {kState};
  remove_files(path_, kCheckpoint, state);
  const std::array files = {kCurve, kModel, kSummary};
  remove_files(path_, ".", files);
}

double TrainingFolder::seconds() const {
  return earlier_seconds_ + now() - began_;
}

void TrainingFolder::begin(LabelTraining& training, const TrialRecipe& recipe, bool resume) {
  make_folder(path_ / kCheckpoint);
  began_ = now();
  const fs::path file = path_ / kCheckpoint / kState;
  if (!resume || !fs::exists(file)) {
    append(training.evaluate_first(), training.metric_options());
    return;
  }
  check(recipe);
  StateReader state = read_state_file(file, "start again with --force");
  state.get_text("recipe");
  curve_ = state.get_text("curve");
  digest_ = state.get_text("digest");
  earlier_seconds_ = state.get_one<double>("seconds");
  training.load(state);
  state.require_end();
  write_file_atomically(path_ / kCurve, curve_);
}

TrainingPoint TrainingFolder::append(const LabelTraining::Point& point, const MetricOptions& options) {
  ordered_json json = point_json(point, options);
  digest_ += dump_json(json) + "\n";
  json["seconds"] = seconds();
  curve_ += dump_json(json) + "\n";
  return point_of(json);
}

void TrainingFolder::checkpoint(const LabelTraining& training, const TrialRecipe& recipe, bool must) {
  const double moment = now();
  if (!must && written_ >= 0.0 && moment - written_ < kSecondsBetweenCheckpoints) return;
  written_ = moment;
  write_file_atomically(path_ / kCurve, curve_);
  StateWriter state;
  state.put_text("recipe", recipe_json(recipe));
  state.put_text("curve", curve_);
  state.put_text("digest", digest_);
  state.put("seconds", seconds());
  training.save(state);
  state.write(path_ / kCheckpoint / kState);
}

void TrainingFolder::finish(LabelTraining& training, const TrialRecipe& recipe, const ModelMetadata& about,
                            ordered_json summary) {
  checkpoint(training, recipe, true);
  write_file_atomically(path_ / kModel, model_bytes(training.model().tensors(training.theta()), about));
  Fingerprinter fingerprint;
  fingerprint.add(digest_);
  fingerprint.add(training.theta());
  summary["seconds"] = seconds();
  summary["result_fingerprint"] = fingerprint.value().hex();
  summary["finished"] = utc_now();
  summary["version"] = version();
  summary["commit"] = revision();
  for (const auto& [name, text] : recipe) summary["recipe"][name] = text;
  write_file_atomically(path_ / kSummary, dump_json(summary, 2) + "\n");
}

}  // namespace olrank
