#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/text/text_table.h"
#include "jobs/experiment.h"
#include "jobs/output_folder.h"
#include "jobs/settings/configuration.h"
#include "report/report.h"

namespace olrank {

struct ExperimentRequest {
  std::string replay;  // a file of recorded feedback; empty: simulated users
  Shard shard;
  Existing existing = Existing::kRefuse;
  bool ask_validation = false;           // take queries from the validation set instead of the training set
  std::shared_ptr<FoldCache> data = {};  // of an earlier plan for the same data; empty: they are read
  std::int64_t asked_jobs = 0;           // of a configuration that settle_device() has changed; 0: its own
};

/// The settings of the rankers that a grid or a study has.
template <class Place>
std::vector<RankerSettings> settings_of(const std::vector<Place>& places) {
  std::vector<RankerSettings> rankers;
  rankers.reserve(places.size());
  for (const Place& place : places) rankers.push_back(place.settings);
  return rankers;
}

/// Builds an executable plan from the configuration. The configuration must outlive the plan. Throws
/// InvalidArgument for settings that contradict each other.
ExperimentPlan make_plan(const Configuration& configuration, const ExperimentRequest& request);

/// Every setting that differs from the default of its protocol and kind: "ranker full: alpha = 0.2 (paper:
/// 0.1)".
std::vector<std::string> deviations(const Configuration& configuration);

/// The configuration as one JSON object, for the first line of a trace.
std::string configuration_json(const Configuration& configuration);

/// Writes the manifest of the plan's folder: versions, command, data, conventions, trials. Reads every
/// fold.
void write_manifest(const Configuration& configuration, const ExperimentPlan& plan,
                    const OutputFolder& folder, const std::string& command);

/// Writes the configuration; `olrank run FILE` repeats the experiment.
void write_configuration(const Configuration& configuration, const std::filesystem::path& file);

/// Replaces `auto` of run.device by the device that is faster for these rankers and this data, where a
/// resumed experiment keeps that of its manifest, and run.jobs by how many trials GPUs have memory for. It
/// says both at a level of information. The request then has the data if they were read.
void settle_device(Configuration& configuration, ExperimentRequest& request);

/// Makes the plan's folder ready for a run and locks it: earlier results, manifest and configuration.
/// `last_check` is called before anything is removed or written. With Existing::kResume the folder's
/// configuration is extended. Throws what the run would be refused for.
std::unique_ptr<OutputFolder> prepare_experiment(const Configuration& configuration,
                                                 const ExperimentPlan& plan, const std::string& command,
                                                 const std::function<void()>& last_check = {});

ExperimentOutcome run_and_write(const ExperimentPlan& plan);
/// Runs the plan like run_and_write(), and says how it ended. Returns the exit code: 0 done, 1 if trials
/// failed, 130 or 143 if a signal stopped the run.
int run_and_summarise(const ExperimentPlan& plan);

/// Writes OUT/report.html from the trials so far, finished or not. Returns what the page shows.
Report write_report_page(const std::filesystem::path& out);

/// Rewrites summary.csv of a single experiment from every finished trial. Returns the findings and the
/// means.
std::string summary_output(const Report& report, const OutputForm& form);

/// Throws InvalidArgument, with the sizes and what would fit, if the trials that run in parallel do not fit
/// into memory.
void check_memory(const Configuration& configuration, const ExperimentPlan& plan);

/// An additional count in the output of a dry run.
struct DryRunCount {
  std::string key;   // in JSON
  std::string text;  // after the number
  std::int64_t count = 0;
};

/// The trials, parameters and memory of a run, and a time estimate from a short calibration.
std::string dry_run_output(const Configuration& configuration, const ExperimentPlan& plan,
                           const OutputForm& form, const std::vector<DryRunCount>& extra_counts = {});

/// The configuration that a folder of results records; none without a config.toml.
std::optional<Configuration> recorded_configuration(const std::filesystem::path& out);

/// How this configuration's data differs from that of the results in its folder: "data.source is 'b', and
/// was 'a'".
std::string data_difference(const Configuration& configuration);

/// The recorded experiment and what a run adds to it: rounds, seeds, folds, users, rankers. Throws
/// InvalidArgument if the two differ in anything else, and if trials of different lengths would stand side
/// by side: a run with more rounds has to have all recorded trials.
Configuration extended_experiment(const Configuration& recorded, const Configuration& run);

/// Returns what `olrank run --resume` continues if the command line names no file, data or rankers: the
/// configuration in its folder, overridden. With rankers, these are added to the folder's.
Configuration continued_configuration(std::span<const SettingOverride> overrides);

/// Whether the overrides leave everything but the folder to continued_configuration().
bool names_only_folder(std::span<const SettingOverride> overrides);

}  // namespace olrank
