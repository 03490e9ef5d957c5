#include "jobs/saved_trial.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "core/io/atomic_file.h"
#include "core/io/safetensors.h"
#include "core/runtime/execution_context.h"
#include "core/settings/setting_sources.h"
#include "core/settings/toml_document.h"
#include "core/throw_error.h"
#include "jobs/device_choice.h"
#include "jobs/trial_job.h"
#include "models/clickgp/click_belief.h"
#include "models/files/external_model.h"
#include "models/neural/ranker_network.h"
#include "models/ranker_factory.h"
#include "models/ranker_kinds.h"
#include "sim/trial_settings.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

/// A trial's description in the metadata of its model file.
class TrialMetadata {
 public:
  TrialMetadata(const fs::path& file, const ModelMetadata& metadata) : file_(file), metadata_(metadata) {}

  const std::string& text(std::string_view key) const {
    const auto found = std::ranges::find(metadata_, key, &ModelMetadata::value_type::first);
    if (found != metadata_.end()) return found->second;
    throw_error<InvalidArgument>(
        "{} lacks the '{}' of its trial, with which a ranker goes on: take the model in a trial's folder, "
        "as 'olrank run' writes it.",
        file_.string(), key);
  }
  std::uint64_t number(std::string_view key) const {
    const std::string& value_text = text(key);
    std::uint64_t value = 0;
    const auto [rest, error] =
        std::from_chars(value_text.data(), value_text.data() + value_text.size(), value);
    if (error == std::errc{} && rest == value_text.data() + value_text.size()) return value;
    throw_error<InvalidArgument>("The '{}' in {} must be a number, not '{}'.", key, file_.string(),
                                 value_text);
  }
  /// Assigns settings that are stored as `key = value` lines.
  void assign(const Schema& schema, void* object, std::string_view key) const {
    const std::string origin = fmt::format("{}, {}", file_.string(), key);
    const TomlDocument document = parse_toml("[settings]\n" + text(key), origin);
    SettingSources::apply_table(schema, object, document.tables.front());
  }

 private:
  const fs::path& file_;
  const ModelMetadata& metadata_;
};

bool has_parameters_of(const OnlineRanker& ranker, const LoadedModel& model) {
  const ModelTensors there = ranker.model();
  const auto here = tensors_of(model);
  return std::equal(there.tensors.begin(), there.tensors.end(), here.begin(), here.end(),
                    [](const auto& a, const auto& b) { return a.name == b.name && a.values == b.values; });
}

/// A folder without a model is usually the experiment in place of a trial, or a trial that still runs.
[[noreturn]] void explain_missing_model(const fs::path& folder) {
  constexpr std::size_t kNamed = 5;
  std::vector<std::string> finished;
  for (const TrialIdentity& identity : trials_in(folder)) {
    if (is_finished(folder, identity)) finished.push_back((folder / identity.path()).string());
  }
  if (!finished.empty()) {
    const std::size_t more = finished.size() - std::min(finished.size(), kNamed);
    finished.resize(finished.size() - more);
    throw_error<InvalidArgument>("'{}' is the folder of an experiment; name one of its trials: {}{}.",
                                 folder.string(), fmt::join(finished, ", "),
                                 more > 0 ? fmt::format(" and {} more", more) : "");
  }
  if (!trials_in(folder).empty()) {
    throw_error<InvalidArgument>(
        "'{}' is the folder of an experiment, and none of its trials has finished yet.", folder.string());
  }
  if (fs::exists(folder / "curve.jsonl")) {
    throw_error<InvalidArgument>("The trial in '{}' has not finished, so it has no model yet.",
                                 folder.string());
  }
  throw_error<IoError>(
      "'{}' has no model.safetensors; name a model file or the folder of a finished trial.",
      folder.string());
}

}  // namespace

fs::path model_file_of(const std::string& named) {
  if (!fs::is_directory(named)) return named;
  fs::path file = fs::path(named) / "model.safetensors";
  if (!fs::exists(file)) explain_missing_model(named);
  return file;
}

SavedTrial load_saved_trial(const fs::path& model_file, const LoadedModel& model, ModelCode code) {
  const fs::path folder = model_file.parent_path();
  if (!has_checkpoint(folder)) {
    throw_error<InvalidArgument>(
        "A ranker goes on from its trial's checkpoint, which is not next to {}: name the folder of a "
        "finished trial.",
        model_file.string());
  }
  const TrialMetadata origin(model_file, model.metadata);
  ProtocolSettings protocol;
  origin.assign(ProtocolSettings::schema(), &protocol, "protocol");
  RankerSettings settings;
  settings.name = origin.text("ranker");
  origin.assign(RankerSettings::schema(), &settings, "ranker_settings");
  settings.network.module_file = model.settings.module_file;
  settings.trust_code = code == ModelCode::kTrust;  // of a model that the ranker started from
  if (has_module_file(settings.network) && !settings.network.module_file) {
    throw DataError(model_file.string(), 0, 0,
                    fmt::format("The ranker's module '{}' is a file that this model file does not hold.",
                                settings.network.module));
  }
  if (row_of(settings.kind).needs_labels) {
    throw_error<InvalidArgument>("Ranker '{}' learns from grades and cannot go on from clicks.",
                                 settings.name);
  }
  if (origin.text("ranker_settings").ends_with(kComputedOnGpu)) {
    throw_error<InvalidArgument>("Ranker '{}' ran on a GPU, and its checkpoint can be loaded only there.",
                                 settings.name);
  }
  SavedTrial trial;
  trial.cutoff = protocol.cutoff;
  trial.keys = TrialKeys::of(origin.number("seed"), origin.number("fold"), origin.text("clicks"));
  trial.ranker = make_ranker(settings, model.normaliser.columns(), trial.keys, protocol.cutoff,
                             {nullptr, available_memory()});
  trial.settings = std::move(settings);
  trial.rounds = load_ranker(folder, *trial.ranker);
  if (!has_parameters_of(*trial.ranker, model)) {
    throw_error<InvalidArgument>("The checkpoint next to {} belongs to another model.",
                                 model_file.string());
  }
  return trial;
}

void take_network(const LoadedModel& model, const std::string& origin, RankerSettings& ranker) {
  if (ranker.kind == RankerKind::kClickGp) return;
  if (model.is_additive() || model.external) {
    throw_error<InvalidArgument>(
        "{} holds {}, from which only clickgp starts: choose kind = \"clickgp\", a linear model or a "
        "network.",
        origin, model.external ? model.external->what : "an additive model");
  }
  ranker.network.network = model.settings.network;
  if (model.is_linear()) return;
  if (model.module) {
    ranker.network.module = model.settings.module;
    ranker.network.activation = model.settings.activation;
    ranker.network.module_file = model.settings.module_file;
  }
  ranker.network.width = model.settings.width;
  ranker.network.depth = model.settings.depth;
  ranker.network.parameterisation = model.settings.parameterisation;
  ranker.network.initialisation = FirstDraw::kUsual;  // nothing is drawn, so that the width may be odd
  if (model.members.size() > 1) ranker.posterior.members = std::ssize(model.members);
}

std::vector<std::vector<float>> take_start_thetas(LoadedModel& model) {
  std::vector<std::vector<float>> thetas = std::move(model.members);
  // Rankers have the scale of their parameterisation, so that the last layer takes another one.
  const double usual = model.is_linear() ? 1.0 : output_scale_of(model.settings);
  const auto factor = static_cast<float>(model.shape.output_scale / usual);
  for (std::vector<float>& theta : thetas) {
    if (factor != 1.0F)
      std::for_each(theta.begin() + model.shape.layer(model.shape.depth - 1).weight, theta.end(),
                    [factor](float& value) { value *= factor; });
    for (const InputPair pair : model.normaliser.products) theta.push_back(static_cast<float>(pair.first));
    for (const InputPair pair : model.normaliser.products) theta.push_back(static_cast<float>(pair.second));
  }
  return thetas;
}

StartModel read_start_model(const RankerSettings& ranker, const std::string& bytes,
                            const std::string& origin, ModelCode code) {
  LoadedModel model = parse_model(bytes, origin, code);
  StartModel start;
  start.normalisation = text_of(model.metadata, "normalisation");
  start.fingerprint = model_fingerprint(bytes).hex();
  const bool has_weights =
      !model.start &&
      (model.is_additive() || (model.is_linear() && model.normaliser.kind == Normalisation::kQueryMinmax));
  if (ranker.kind == RankerKind::kClickGp && !has_weights) {
    start.of_clicks = ClickStart::of_file(bytes, origin, code);
    return start;
  }
  start.module_file = model.settings.module_file;
  start.thetas = take_start_thetas(model);
  return start;
}

std::shared_ptr<const StartModel> start_model_of(const RankerSettings& ranker) {
  if (ranker.start_from.empty()) return nullptr;
  const std::filesystem::path file = model_file_of(ranker.start_from);
  auto start = std::make_shared<StartModel>(
      read_start_model(ranker, read_file(file), file.string(), code_if(ranker.trust_code)));
  if (row_of(ranker.kind).is_ensemble() && start->thetas.size() == 1)
    start->thetas.assign(static_cast<std::size_t>(ranker.posterior.members), start->thetas.front());
  return start;
}

void check_start_inputs(const RankerSettings& ranker, const StartModel& start,
                        const FittedNormaliser& normaliser) {
  if (start.normalisation.empty()) return;
  const FittedNormaliser there = parse_normaliser(start.normalisation, ranker.start_from).without_terms();
  if (normaliser_text(there) == normaliser_text(normaliser)) return;
  const bool fitted_elsewhere = there.kind == normaliser.kind && there.features == normaliser.features;
  throw_error<InvalidArgument>(
      "Ranker '{}' starts from {}, which expects other inputs: {} features normalised by {}, where this "
      "data has {} by {}{}. Choose the model's data.normalise and features, or another model.",
      ranker.name, ranker.start_from, there.features, name_of(there.kind), normaliser.features,
      name_of(normaliser.kind), fitted_elsewhere ? " with other fitted numbers" : "");
}

}  // namespace olrank
