#include "jobs/experiment_run.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "core/data/data_loader.h"
#include "core/io/atomic_file.h"
#include "core/runtime/device.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
#include "core/settings/enum_names.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "jobs/device_choice.h"
#include "jobs/study.h"
#include "models/neural/network_rankers.h"
#include "models/ranker_factory.h"
#include "models/ranker_memory.h"
#include "report/outputs.h"

namespace olrank {

namespace {

/// Returns what the folder holds once the run has finished; Existing::kResume adds what it held before.
Configuration whole_experiment(const Configuration& configuration, const ExperimentPlan& plan) {
  const bool recorded_feedback = !plan.users.front().make;
  if (plan.existing != Existing::kResume || recorded_feedback) return configuration;
  const auto recorded = recorded_configuration(configuration.run.out);
  if (!recorded) return configuration;
  Configuration whole = extended_experiment(*recorded, configuration);
  const std::int64_t before = recorded->protocol.rounds;
  if (before < configuration.protocol.rounds)
    log_info("Extending from {} to {} rounds.", before, configuration.protocol.rounds);
  return whole;
}

void announce(const Configuration& configuration, const ExperimentPlan& plan) {
  const std::string shard =
      plan.shard.count > 1 ? fmt::format(" (shard {} of {})", plan.shard.index, plan.shard.count) : "";
  log_info("Running {} of {}{} in {}, protocol {}", counted(trials_of(plan).size(), "trial"),
           counted(plan.trial.rounds, "round"), shard, plan.out.string(),
           name_of(configuration.protocol.name));
  for (const std::string& deviation : deviations(configuration)) log_info("  {}", deviation);
}

constexpr double kCalibrationSeconds = 2.0;  // of each ranker

std::int64_t fold_bytes(const FoldData& fold) {
  return fold.data.train.all_rows().bytes() + fold.data.eval_set.all_rows().bytes();
}

RankerLoad load_of(const ExperimentPlan& plan, const FoldData& fold, bool on_device) {
  RankerLoad load{fold.data.train.features(), fold.data.train.docs(), plan.trial.rounds, plan.trial.cutoff};
  if (!on_device) return load;
  load.home = PosteriorHome::kDevice;
  load.most_docs = ranker_data(fold.data).most_docs;
  return load;
}

/// The trials on a GPU share its copy of each fold that they play.
void check_device_memory(const RankerSettings& ranker, const RankerMemory& planned, std::int64_t data,
                         std::int64_t folds, const GpuSlots& slots) {
  const std::int64_t place = slots.tightest(data, folds);
  const std::int64_t left = slots.bytes_on(place, data, folds);
  if (planned.bytes <= left) return;
  const GpuDescription& gpu = slots.gpus()[place];
  const std::int64_t trials = slots.slots_on(place);
  throw_error<InvalidArgument>(
      "Ranker '{}' may need {} of GPU memory per trial with {} in parallel on cuda:{}, plus {} of data, "
      "but {} has {} free there: {}{}.",
      ranker.name, readable_bytes(static_cast<double>(planned.bytes)), counted(trials, "trial"), gpu.index,
      readable_bytes(static_cast<double>(std::min(trials, folds) * data)), gpu.name,
      readable_bytes(static_cast<double>(gpu.free_bytes)), advice_on_memory(planned, left),
      slots.other_gpus_for(planned.bytes, data));
}

/// Lets fewer trials play at once where the GPUs lack the memory for all. Returns a sentence that says so,
/// or an empty one; where not even one fits on each GPU, check_memory() refuses.
std::string fit_jobs(Configuration& configuration, const ExperimentPlan& plan) {
  const DeviceChoice device = choose_device(configuration);
  const GpuSlots asked = GpuSlots::of(configuration, device);
  if (!device.on_gpus() || asked.jobs() <= std::ssize(device.gpus)) return {};
  const FoldData& fold = *plan.data->get(plan.folds.front());
  const std::int64_t data = fold_bytes(fold);
  const auto folds = std::ssize(plan.folds);
  std::int64_t jobs = asked.jobs();
  std::string sentence;
  for (const RankerSettings& ranker : configuration.rankers) {
    if (!device.takes(ranker)) continue;
    const std::int64_t bytes = memory_of_ranker(ranker, load_of(plan, fold, true)).bytes;
    const std::int64_t fitting = asked.jobs_with(bytes, data, folds);
    if (fitting == 0) return {};
    if (fitting >= jobs) continue;
    const std::int64_t tightest = asked.tightest(data, folds);
    const GpuDescription& gpu = asked.gpus()[tightest];
    sentence = fmt::format(
        "{} at once and not {}: one of '{}' may need {} of GPU memory, and cuda:{} ({}) has {} free, of "
        "which documents take {}.",
        fitting == 1 ? "1 trial plays" : fmt::format("{} trials play", fitting), asked.jobs(), ranker.name,
        readable_bytes(static_cast<double>(bytes)), gpu.index, gpu.name,
        readable_bytes(static_cast<double>(gpu.free_bytes)),
        readable_bytes(static_cast<double>(std::min(asked.slots_on(tightest), folds) * data)));
    jobs = fitting;
  }
  if (!sentence.empty()) configuration.run.jobs = jobs;
  return sentence;
}

/// Plays the first rounds of every ranker, as many at once as the run plays trials: they slow each other
/// down.
std::map<std::string, TrialEstimate> estimate_rankers(const ExperimentPlan& plan, const FoldData& fold) {
  std::vector<TrialIdentity> firsts;
  for (const TrialIdentity& trial : trials_of(plan)) {
    if (std::ranges::find(firsts, trial.ranker, &TrialIdentity::ranker) != firsts.end()) continue;
    firsts.push_back(trial);
    firsts.back().fold = plan.folds.front();
  }
  const std::size_t jobs = std::clamp<std::size_t>(trials_of(plan).size(), 1, plan.jobs);
  // The last ones are played next to others, too, whose estimates are not needed.
  const std::size_t tasks = (firsts.size() + jobs - 1) / jobs * jobs;
  std::map<std::string, TrialEstimate> estimates;
  std::mutex mutex;
  run_in_slots(
      tasks, static_cast<int>(jobs), [] { return false; },
      [&](std::size_t task, std::int64_t slot) {
        const TrialIdentity& trial = firsts[task % firsts.size()];
        const TrialEstimate estimate = estimate_trial(plan, trial, fold, kCalibrationSeconds, slot);
        const std::lock_guard lock(mutex);
        estimates.emplace(trial.ranker, estimate);
      });
  return estimates;
}

/// The trials of networks that a GPU has been timed with.
std::vector<NetworkTrials> network_trials(const Configuration& configuration, const ExperimentPlan& plan) {
  std::vector<NetworkTrials> work;
  const std::vector<TrialIdentity> trials = trials_of(plan);
  for (const RankerSettings& ranker : configuration.rankers) {
    if (why_not_on_device(ranker) || ranker.network.network == NetworkForm::kModule) continue;
    NetworkTrials network;
    network.trials = std::ranges::count(trials, ranker.name, &TrialIdentity::ranker);
    network.rounds = plan.trial.rounds;
    if (row_of(ranker.kind).is_ensemble()) network.members = ranker.posterior.members;
    const FoldData& fold = *plan.data->get(plan.folds.front());
    network.parameters = memory_of_ranker(ranker, load_of(plan, fold, true)).parameters / network.members;
    network.by_growth = retraining_rule(ranker.trainer).retrain == Retrain::kGrowth;
    work.push_back(network);
  }
  return work;
}

/// Returns what `auto` means for a new experiment. The request then has the data.
DeviceAdvice advice_for(const Configuration& configuration, ExperimentRequest& request,
                        const GpuSurvey& survey) {
  if (request.shard.count > 1)
    return {"auto",
            "The CPU computes this, as machines of other shards may have no GPU: name one with --device."};
  if (configuration.run.same_bits_on == SameBitsOn::kAnyCpu)
    return {"auto", "The CPU computes this, as same_bits_on = \"any-cpu\" asks for it."};
  const ExperimentPlan plan = make_plan(configuration, request);
  request.data = plan.data;
  const std::vector<NetworkTrials> work = network_trials(configuration, plan);
  if (work.empty())
    return {"auto", "The CPU computes this, as no ranker is a network that was timed on a GPU."};
  DeviceAdvice advice = faster_device(times_of(work, plan.jobs), survey);
  if (advice.device == "auto") return advice;
  Configuration there = configuration;
  there.run.device = advice.device;
  try {
    const bool fewer = !fit_jobs(there, plan).empty();
    check_memory(there, plan);
    if (fewer) return faster_device(times_of(work, plan.jobs, there.run.jobs), survey);
  } catch (const Error& refusal) {
    return {"auto", fmt::format("The CPU computes this, as a GPU cannot: {}", refusal.what())};
  }
  return advice;
}

/// Returns the device that run.device names, where `auto` is the one that is faster.
std::string faster_device_of(const Configuration& configuration, ExperimentRequest& request) {
  const std::string& asked = configuration.run.device;
  if (parse_device(asked).kind != DeviceKind::kAuto) return asked;
  const GpuSurvey survey = visible_gpus();
  if (!survey.built_with_cuda) return asked;
  if (request.existing == Existing::kResume) {
    if (const auto before = recorded_device(configuration.run.out)) return device_of_resumed(*before);
  }
  const DeviceAdvice advice = advice_for(configuration, request, survey);
  log_info("{}", advice.why);
  return advice.device;
}

}  // namespace

void settle_device(Configuration& configuration, ExperimentRequest& request) {
  configuration.run.device = faster_device_of(configuration, request);
  if (!parse_device(configuration.run.device).on_gpus()) return;
  if (configuration.run.jobs > 1) {
    request.asked_jobs = configuration.run.jobs;
    const ExperimentPlan plan = make_plan(configuration, request);
    request.data = plan.data;
    if (const std::string fewer = fit_jobs(configuration, plan); !fewer.empty()) log_info("{}", fewer);
  }
  std::vector<std::string> on_cpu;
  for (const RankerSettings& ranker : configuration.rankers) {
    if (const auto reason = why_not_on_device(ranker))
      on_cpu.push_back(fmt::format("Ranker '{}' runs on the CPU: {}.", ranker.name, *reason));
  }
  if (on_cpu.size() == configuration.rankers.size()) return;  // choose_device() refuses that
  for (const std::string& sentence : on_cpu) log_info("{}", sentence);
}

std::unique_ptr<OutputFolder> prepare_experiment(const Configuration& configuration,
                                                 const ExperimentPlan& plan, const std::string& command,
                                                 const std::function<void()>& last_check) {
  OutputFolder::require_own(plan.out, FolderKind::kExperiment);  // before the data is read
  check_memory(configuration, plan);                             // before --force removes anything
  auto folder = std::make_unique<OutputFolder>(plan.out, FolderKind::kExperiment, plan.shard);
  refuse_existing(plan, *folder);
  Configuration whole = whole_experiment(configuration, plan);
  // A later start may have the memory for all of them.
  if (plan.asked_jobs > 0) whole.run.jobs = plan.asked_jobs;
  check_existing(plan);
  if (last_check) last_check();
  remove_existing(plan, *folder);
  announce(configuration, plan);
  write_manifest(whole, plan, *folder, command);
  write_configuration(whole, plan.out / "config.toml");
  return folder;
}

ExperimentOutcome run_and_write(const ExperimentPlan& plan) {
  ExperimentOutcome outcome = run_experiment(plan);
  if (plan.trace != nullptr) plan.trace->close();
  std::vector<std::string> damage;
  const std::vector<TrialResults> trials = read_finished_trials(plan.out, &damage);
  write_file_atomically(plan.out / "summary.csv", summary_csv(finished_trials(trials)));
  for (const std::string& sentence : damage) log_warning("{}", sentence);
  return outcome;
}

int run_and_summarise(const ExperimentPlan& plan) {
  const ExperimentOutcome outcome = run_and_write(plan);
  if (outcome.signal != 0) {
    log_info("Stopped by a signal; run the same command with --resume{} to continue.",
             plan.existing == Existing::kReplace ? " in place of --force" : "");
    return InterruptGuard::exit_code(outcome.signal);
  }
  if (outcome.finished_before > 0)
    log_info("Skipped {} that had already finished.", counted(outcome.finished_before, "trial"));
  for (const std::string& failure : outcome.failures) log_warning("Failed: {}", failure);
  return outcome.failures.empty() ? 0 : 1;
}

Report write_report_page(const std::filesystem::path& out) {
  std::vector<ExperimentResults> experiments;
  experiments.push_back(read_experiment(out));
  Report report = compare_experiments(std::move(experiments));
  write_file_atomically(out / "report.html", report_page(report));
  return report;
}

std::string summary_output(const Report& report, const OutputForm& form) {
  const ExperimentResults& experiment = report.experiments.front();
  const TrialList trials = finished_trials(experiment.trials);
  write_file_atomically(experiment.folder / "summary.csv", summary_csv(trials));
  const ResultConventions about = conventions_of(experiment.run);
  if (form.json) return summary_means_json(trials, about);
  return findings_text(report, form.columns) + "\n" + summary_text(trials, about, form.columns);
}

void check_memory(const Configuration& configuration, const ExperimentPlan& plan) {
  const std::shared_ptr<const FoldData> fold = plan.data->get(plan.folds.front());
  const std::int64_t data = fold_bytes(*fold);
  const std::int64_t memory = available_memory();
  // Features beyond the limit are in files.
  const std::int64_t in_memory = std::min(data, allowed_bytes(configuration.data));
  const std::int64_t left = std::max<std::int64_t>(0, memory - in_memory);
  const std::int64_t jobs = std::clamp<std::int64_t>(std::ssize(trials_of(plan)), 1, plan.jobs);
  const DeviceChoice device = choose_device(configuration);
  const GpuSlots slots = GpuSlots::of(configuration, device);
  for (const RankerSettings& ranker : configuration.rankers) {
    if (fold->data.train.is_sparse()) check_sparse(ranker);
    const RankerMemory planned = memory_of_ranker(ranker, load_of(plan, *fold, device.takes(ranker)));
    if (device.takes(ranker)) {
      check_device_memory(ranker, planned, data, std::ssize(plan.folds), slots);
      continue;
    }
    if (planned.bytes <= left / jobs) continue;
    std::string advice = advice_on_memory(planned, left / jobs);
    const std::int64_t fitting = left / planned.bytes;
    if (fitting > 0) advice += fmt::format(", as would --jobs {}", fitting);
    throw_error<InvalidArgument>(
        "Ranker '{}' may need {} of memory per trial with {} trials in parallel, plus {} of data, but this "
        "machine has {} available: {}.",
        ranker.name, readable_bytes(static_cast<double>(planned.bytes)), jobs,
        readable_bytes(static_cast<double>(in_memory)), readable_bytes(static_cast<double>(memory)),
        advice);
  }
}

std::string dry_run_output(const Configuration& configuration, const ExperimentPlan& plan,
                           const OutputForm& form, const std::vector<DryRunCount>& extra_counts) {
  const std::vector<TrialIdentity> trials = trials_of(plan);
  const std::shared_ptr<const FoldData> fold = plan.data->get(plan.folds.front());
  auto rankers = nlohmann::ordered_json::array();
  const std::map<std::string, TrialEstimate> estimates = estimate_rankers(plan, *fold);
  const DeviceChoice device = choose_device(configuration);
  TextTable table({{.header = "ranker", .is_name = true},
                   {.header = "trials", .dropped = 2},
                   {.header = "parameters", .dropped = 3},
                   {.header = "max memory"},
                   {.header = "memory now", .dropped = 1},
                   {.header = "time (s)"}});
  for (const RankerSettings& ranker : configuration.rankers) {
    const auto count = std::ranges::count(trials, ranker.name, &TrialIdentity::ranker);
    if (count == 0) continue;
    const TrialEstimate& estimate = estimates.at(ranker.name);
    const RankerMemory planned = memory_of_ranker(ranker, load_of(plan, *fold, device.takes(ranker)));
    const bool is_external = row_of(ranker.kind).is_external;
    table.add({ranker.name, fmt::format("{}", count), fmt::format("{}", estimate.parameters),
               is_external ? "unknown" : readable_bytes(static_cast<double>(planned.bytes)),
               readable_bytes(static_cast<double>(estimate.state_bytes)),
               fmt::format("{:.1f}", estimate.seconds)});
    rankers.push_back({{"ranker", ranker.name},
                       {"trials", count},
                       {"parameters", estimate.parameters},
                       {"bytes_at_most", is_external ? nlohmann::ordered_json(nullptr)
                                                     : nlohmann::ordered_json(planned.bytes)},
                       {"state_bytes_after_calibration", estimate.state_bytes},
                       {"seconds_a_trial", estimate.seconds},
                       {"calibration_rounds", estimate.rounds_tried}});
  }
  const double seconds = forecast_of(plan, estimates).seconds_left().value_or(0.0);
  if (form.json) {
    nlohmann::ordered_json json = {
        {"trials", trials.size()}, {"rounds", plan.trial.rounds}, {"data_bytes", fold_bytes(*fold)},
        {"jobs", plan.jobs},       {"seconds", seconds},          {"rankers", rankers}};
    for (const DryRunCount& count : extra_counts) json[count.key] = count.count;
    return json.dump(2) + "\n";
  }
  const TextTable::Fitted fitted = table.fitted(form.columns);
  std::string text = fitted.text + hidden_columns_text(fitted.hidden, form.columns);
  text += fmt::format(
      "{} of {}, {} of data per fold, {} in parallel: about {}, extrapolated from the first rounds.\n",
      counted(trials.size(), "trial"), counted(plan.trial.rounds, "round"),
      readable_bytes(static_cast<double>(fold_bytes(*fold))), plan.jobs, readable_duration(seconds));
  for (const DryRunCount& count : extra_counts) text += fmt::format("{} {}\n", count.count, count.text);
  return text;
}

}  // namespace olrank
