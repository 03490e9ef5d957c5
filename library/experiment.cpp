#include "olrank/experiment.h"

#include <fmt/format.h>

#include <mutex>
#include <optional>

#include "core/error.h"
#include "core/runtime/log_output.h"
#include "jobs/experiment_run.h"
#include "jobs/experiment_setup.h"
#include "jobs/settings/configuration.h"
#include "report/drawing.h"
#include "report/figure_files.h"

namespace olrank {
namespace {

Configuration configuration_of(const ExperimentOptions& options) {
  std::vector<SettingOverride> overrides;
  if (!options.out.empty()) overrides.push_back({"run", "", "out", options.out, "out"});
  Configuration configuration =
      resolve_configuration(parse_toml(options.configuration, options.origin), overrides);
  refuse_study("run", configuration);
  refuse_search("run", configuration);
  if (!configuration.sweep.empty())
    throw InvalidArgument(fmt::format("{} has a [sweep], which 'olrank tune' plays.", options.origin));
  return configuration;
}

Existing existing_of(EarlierResults earlier) {
  switch (earlier) {
    case EarlierResults::kRefuse:
      return Existing::kRefuse;
    case EarlierResults::kResume:
      return Existing::kResume;
    case EarlierResults::kReplace:
      return Existing::kReplace;
  }
  return Existing::kRefuse;
}

}  // namespace

PlayedExperiment play_experiment(const ExperimentOptions& options) {
  static std::mutex one_at_a_time;
  const std::unique_lock lock(one_at_a_time, std::try_to_lock);
  if (!lock.owns_lock())
    throw InvalidArgument("An experiment runs in this process already: wait for its end.");
  std::optional<EventCapture> capture;
  if (options.on_event) capture.emplace(options.on_event);
  const Configuration configuration = configuration_of(options);
  ExperimentRequest request;
  request.existing = existing_of(options.earlier);
  if (!options.shard.empty()) request.shard = parse_shard(options.shard);
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

}  // namespace olrank
