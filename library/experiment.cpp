#include "olrank/experiment.h"
#include "core/throw_error.h"

#include <array>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/device/visible_gpus.h"
#include "core/io/state_archive.h"
#include "core/runtime/device.h"
#include "core/runtime/log.h"
#include "core/settings/enum_names.h"
#include "core/settings/value.h"
#include "jobs/experiment_run.h"
#include "jobs/job_folder.h"
#include "jobs/settings/configuration.h"
#include "jobs/settings/run_settings.h"
#include "jobs/settings/train_configuration.h"
#include "jobs/tuning/tuning.h"
#include "models/labels/label_settings.h"
#include "olrank/settings.h"
#include "report/drawing.h"
#include "report/outputs.h"

namespace olrank {
namespace {

Configuration configuration_of(const ExperimentOptions& options, bool tunes) {
  std::vector<SettingOverride> overrides;
  if (!options.out.empty()) overrides.push_back({"run", "", "out", options.out, "out"});
  Configuration configuration =
      resolve_configuration(parse_toml(options.configuration, options.origin), overrides);
  refuse_study(tunes ? "tune" : "run", configuration);
  if (!tunes) refuse_search("run", configuration);
  if (tunes && configuration.sweep.empty()) {
    throw_error<InvalidArgument>(
        "{} has no [sweep]; add one with the values to try, such as alpha = [0.1, 1].", options.origin);
  }
  if (!tunes && !configuration.sweep.empty())
    throw_error<InvalidArgument>("{} has a [sweep], which 'olrank tune' plays.", options.origin);
  return configuration;
}

Existing existing_of(EarlierResults earlier) {
  if (earlier == EarlierResults::kResume) return Existing::kResume;
  return earlier == EarlierResults::kReplace ? Existing::kReplace : Existing::kRefuse;
}

/// While it lives, no other experiment runs in this process, and its events go to the options' function.
class Turn {
 public:
  explicit Turn(const ExperimentOptions& options) : lock_(one_at_a_time(), std::try_to_lock) {
    if (!lock_.owns_lock())
      throw InvalidArgument("An experiment runs in this process already: wait for its end.");
    if (options.on_event) capture_.emplace(options.on_event);
  }

 private:
  static std::mutex& one_at_a_time() {
    static std::mutex mutex;
    return mutex;
  }

  std::unique_lock<std::mutex> lock_;
  std::optional<EventCapture> capture_;
};

using nlohmann::ordered_json;

std::string_view kind_name(SettingKind kind) {
  constexpr std::array<std::string_view, 10> kNames = {"switch",       "integer",      "real",  "text",
                                                       "integers",     "reals",        "texts", "switches",
                                                       "real-or-auto", "reals-or-auto"};
  return kNames[static_cast<std::size_t>(kind)];
}

ordered_json or_null(const std::optional<double>& bound) {
  return bound ? ordered_json(*bound) : ordered_json(nullptr);
}

ordered_json setting_description(const Setting& setting, const void* defaults) {
  return {{"key", setting.key},
          {"kind", kind_name(setting.kind)},
          {"help", setting.help},
          {"unit", setting.unit},
          {"choices", setting.choices},
          {"lowest", or_null(setting.bounds.lowest)},
          {"above_lowest", setting.bounds.above_lowest},
          {"highest", or_null(setting.bounds.highest)},
          {"below_highest", setting.bounds.below_highest},
          {"default", setting_json(setting.read(defaults))}};
}

ordered_json table_description(const SchemaWithDefaults& table) {
  ordered_json settings = ordered_json::array();
  for (const Setting& setting : table.schema->settings)
    settings.push_back(setting_description(setting, table.defaults));
  return {{"table", table.schema->table},
          {"help", table.schema->help},
          {"repeated", table.schema->repeated},
          {"settings", settings}};
}

}  // namespace

PlayedExperiment play_experiment(const ExperimentOptions& options) {
  const Turn turn(options);
  Configuration configuration = configuration_of(options, false);
  const CallersGpu kept(parse_device(configuration.run.device).kind != DeviceKind::kCpu);
  ExperimentRequest request;
  request.existing = existing_of(options.earlier);
  if (!options.shard.empty()) request.shard = parse_shard(options.shard);
  settle_device(configuration, request);
  const ExperimentPlan plan = make_plan(configuration, request);
  const auto folder = prepare_experiment(configuration, plan, options.command);
  PlayedExperiment played;
  played.out = plan.out;
  ExperimentPlan whole = plan;
  whole.shard = {};
  for (const TrialIdentity& trial : trials_of(whole)) played.trials.push_back(trial.path().string());
  if (!options.plays) return played;
  const ExperimentOutcome outcome = run_and_write(plan);
  write_report_page(plan.out);
  played.failures = outcome.failures;
  played.signal = outcome.signal;
  return played;
}

std::string external_ranker_state(const std::filesystem::path& trial) {
  if (!has_checkpoint(trial))
    throw_error<InvalidArgument>("There is no checkpoint in '{}': name the folder of a trial.",
                                 trial.string());
  StateReader state =
      read_checkpoint(trial, fmt::format("remove {} and play the trial again", trial.string()));
  try {
    state.skip_to("external.state");
  } catch (const Error&) {
    throw_error<InvalidArgument>("The ranker in '{}' is built in: load it with Ranker.load().",
                                 trial.string());
  }
  return state.get_text("external.state");
}

PlayedTuning play_tuning(const TuningOptions& options) {
  const Turn turn(options.experiment);
  const Configuration configuration = configuration_of(options.experiment, true);
  const CallersGpu kept(parse_device(configuration.run.device).kind != DeviceKind::kCpu);
  const auto by = parse_choice<SweepCriterion>("by", options.by);
  ExperimentRequest request;
  request.existing = existing_of(options.experiment.earlier);
  PlayedTuning played;
  played.out = configuration.run.out;
  OutputForm form;
  form.json = true;
  using Step = TuningOptions::Step;
  const TuningStep step = options.step == Step::kMakeGrid ? TuningStep::kMakeGrid
                          : options.step == Step::kChoose ? TuningStep::kChoose
                                                          : TuningStep::kWhole;
  const int code = run_tuning(
      configuration, by, request, options.experiment.command, form,
      [&played](std::string_view text) { played.winners += text; }, step);
  played.complete = code == 0;
  played.signal = code > 128 ? code - 128 : 0;
  return played;
}

std::string experiment_report(const std::vector<std::filesystem::path>& folders, const std::string& form,
                              const std::string& baseline,
                              const std::vector<std::vector<std::string>>& users) {
  std::vector<ExperimentResults> experiments;
  experiments.reserve(folders.size());
  for (const std::filesystem::path& folder : folders) experiments.push_back(read_experiment(folder));
  const Report report = compare_experiments(std::move(experiments), baseline);
  if (form == "latex") return report_latex(report, users);
  if (form == "csv") return report_csv(report);
  if (form == "json") return report_json(report);
  throw_error<InvalidArgument>("There is no report as '{}': choose latex, csv or json.", form);
}

std::vector<ExperimentFigure> experiment_figures(const std::filesystem::path& out, bool dark) {
  std::vector<ExperimentResults> experiments;
  experiments.push_back(read_experiment(out));
  const Report report = compare_experiments(std::move(experiments));
  std::vector<ExperimentFigure> figures;
  for (PlacedFigure& figure : placed_figures(report)) {
    figures.push_back({figure.name, figure.figure.caption,
                       standalone_svg(figure.figure.drawing, dark ? Theme::kDark : Theme::kLight)});
  }
  return figures;
}

std::string settings_json() {
  ordered_json tables = ordered_json::array();
  for (const SchemaWithDefaults& table : configuration_tables()) tables.push_back(table_description(table));
  for (const SchemaWithDefaults& table : train_tables()) {
    if (table.schema == &LabelSettings::schema()) tables.push_back(table_description(table));
  }
  return ordered_json{{"tables", tables}}.dump();
}

}  // namespace olrank
