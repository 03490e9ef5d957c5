#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/command.h"
#include "apps/setting_flags.h"
#include "core/data/normaliser.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/state_archive.h"
#include "core/runtime/device.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
#include "core/settings/enum_names.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "jobs/device_choice.h"
#include "jobs/output_folder.h"
#include "jobs/saved_trial.h"
#include "jobs/settings/train_configuration.h"
#include "jobs/study.h"
#include "jobs/training/train_data.h"
#include "jobs/training/training_job.h"
#include "logs/log_training.h"
#include "models/export/export_format.h"
#include "models/files/model_file.h"
#include "serve/service_setup.h"
#include "serve/snapshot.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr JobFolder::Options kFolderOptions = {.noun = "training"};

/// Tells how far trainings are, in the style that stderr has.
class TrainingProgress {
 public:
  TrainingProgress(std::int64_t epochs, std::string metric) : epochs_(epochs), metric_(std::move(metric)) {}

  /// Any thread may call it; `seconds` are this model's.
  void passed(const std::string& model, const TrainingPoint& point, double seconds, bool last) {
    const std::lock_guard lock(mutex_);
    if (output_.as_events()) {
      ordered_json event = {{"model", model}, {"epoch", point.epoch}, {"epochs", epochs_}};
      if (point.loss) event["loss"] = *point.loss;
      for (const auto& [metric, value] : point.vali) event["vali"][metric] = value;
      return log_event("pass", event);
    }
    std::string line = fmt::format("{}: pass {} of {}", model, point.epoch, epochs_);
    if (point.loss) line += fmt::format(", loss {:.5f}", *point.loss);
    for (const auto& [metric, value] : point.vali) {
      if (metric == metric_) line += fmt::format(", validation {} {:.4f}", metric_, value);
    }
    output_.show(line + ", " + readable_duration(seconds), since_start_.seconds(), last);
  }

 private:
  std::int64_t epochs_;
  std::string metric_;
  std::mutex mutex_;
  Stopwatch since_start_;
  ProgressLine output_;
};

class TrainCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "config", file_, "FILE", "configuration file (TOML) with [data] and [train]; optional");
    app.add_flag("--print-config", print_, "print the resolved configuration and exit");
    add_option(app, "--out", out_, "DIR", "output folder [default: runs/train]");
    auto* resume = app.add_flag("--resume", resume_, "continue an earlier training in --out");
    app.add_flag("--force", force_, "replace the results of an earlier training in --out")
        ->excludes(resume);
    add_option(app, "--jobs", jobs_, "N", "models to train at once, where there are several [default: 1]")
        ->check(CLI::Range(1, 1024));
    add_option(app, "--threads", threads_, "N", "CPU threads of all jobs; 0 uses every core [default: 0]")
        ->check(CLI::Range(0, 4096));
    add_option(app, "--device", device_, "DEVICE",
               "auto, cpu, cuda, or GPUs such as cuda:0-3 for several jobs; auto is the faster one "
               "[default: auto]");
    log_ =
        add_option(app, "--log", request_.log, "FILE",
                   "learn from the clicks of this log in place of grades: feedback.jsonl of a service or "
                   "its state folder, or a trace or recorded feedback with --data, whose documents it has");
    add_option(app, "--estimator", estimator_, "naive|ips|dr|two-tower|regression-em",
               "how clicks become what the model learns [default: ips]")
        ->needs(log_);
    add_option(app, "--click-model", click_model_, "NAME",
               "click model of ips and dr, which is fitted to the log: pbm, cascade, dcm, dbn, ubm, "
               "two-tower or trust [default: pbm]")
        ->needs(log_);
    add_option(
        app, "--clip", request_.clip, "W",
        "largest weight of a click or of a shown document; a larger weight counts as W [default: 10]")
        ->needs(log_);
    flags_.declare(app, train_tables());
  }

  int run(const OutputFlags& output) override {
    const TrainConfiguration configuration = resolve_train_configuration(
        file_.empty() ? std::nullopt : std::optional(fs::path(file_)), flags_.overrides());
    if (print_) return printed(print_train_configuration(configuration));
    if (!has_data(configuration) && !from_log())
      throw InvalidArgument("No data given: name a folder or \"synth:NAME\" with --data.");
    OutputFolder::require_own(out_, FolderKind::kTraining);      // before the data is read
    const std::vector<GpuDescription> gpus = gpus_for(device_);  // refuses before the data is read
    if (from_log()) {
      request_.choose(estimator_, click_model_);
      request_.check(configuration.train, !gpus.empty());
      if (configuration.data.folds.size() > 1)
        throw InvalidArgument("A log is of one fold: name the one whose documents it shows with --fold.");
    }
    return train_all(configuration, gpus, output);
  }

 private:
  static bool has_data(const TrainConfiguration& configuration) {
    return !configuration.data.source.empty() || !configuration.data.train.empty();
  }
  bool from_log() const { return log_->count() > 0; }

  /// Reads the lists of the log, too, where the model learns from one.
  TrainFold load(const TrainConfiguration& configuration, std::int64_t fold) {
    ExecutionContext context(threads_ > 0 ? threads_ : available_threads());
    if (!from_log()) return load_train_fold(configuration, fold, context);
    const bool with_inputs = !has_data(configuration);
    if (with_inputs && configuration.train.patience > 0)
      throw InvalidArgument(
          "patience needs a validation part, which a log does not have: set patience = 0.");
    LogFold loaded = with_inputs ? fold_of_log(request_.log, context)
                                 : LogFold{load_train_fold(configuration, fold, context, false), ""};
    lists_ = read_log_lists(request_, loaded.fold.train, with_inputs);
    feature_names_ = loaded.feature_names;
    return std::move(loaded.fold);
  }

  /// A model is in the folder itself where it is the only one.
  fs::path folder_of(const TrainConfiguration& configuration, std::int64_t fold, std::int64_t seed) const {
    const bool only = configuration.data.folds.size() * configuration.train.seeds.size() == 1;
    if (only) return out_;
    return fs::path(out_) / fmt::format("fold{}", fold) / fmt::format("seed{}", seed);
  }

  struct Model {
    std::int64_t fold = 1;
    std::int64_t seed = 1;
  };

  static std::vector<Model> models_of(const TrainConfiguration& configuration) {
    std::vector<Model> models;
    for (const std::int64_t fold : configuration.data.folds) {
      for (const std::int64_t seed : configuration.train.seeds) models.push_back({fold, seed});
    }
    return models;
  }

  int train_all(const TrainConfiguration& configuration, std::vector<GpuDescription> gpus,
                const OutputFlags& output) {
    const std::vector<Model> models = models_of(configuration);
    const int threads = threads_ > 0 ? threads_ : available_threads();
    FoldCacheOf<TrainFold> folds(
        [&](std::int64_t fold) { return std::make_shared<const TrainFold>(load(configuration, fold)); });
    const InterruptGuard guard;
    const auto first = folds.get(models.front().fold);  // data that cannot be read leave no folder
    if (parse_device(device_).kind == DeviceKind::kAuto && !from_log())
      gpus = gpus_for(faster_training_device(configuration, first->train, threads, out_, resume_));
    const auto jobs = static_cast<int>(std::min(std::max(jobs_, gpus.size()), models.size()));
    if (jobs >= threads) {
      for (const GpuDescription& gpu : gpus) sleep_while_waiting(gpu);
    }
    const GpuSlots slots(gpus, jobs);
    const OutputFolder folder(out_, FolderKind::kTraining);
    if (!resume_) make_way(configuration);
    write_manifest(folder, configuration, {gpus}, output.command_line);
    TrainingProgress progress(configuration.train.most_epochs(),
                              fmt::format("ndcg@{}", configuration.train.cutoff));
    std::vector<std::optional<TrainedModel>> trained(models.size());
    run_in_slots(
        models.size(), jobs, [] { return InterruptGuard::requested() != 0; },
        [&](std::size_t number, std::int64_t slot) {
          const auto [fold, seed] = models[number];
          const auto data = folds.get(fold);
          trained[number] = train_one(configuration, *data, models[number], std::max(1, threads / jobs),
                                      device_of(slots, slot), progress);
        });
    std::vector<TrainedModel> finished;
    for (std::optional<TrainedModel>& model : trained) {
      if (!model) return stopped_by_signal();
      finished.push_back(std::move(*model));
    }
    write_training_results(out_, configuration, finished);
    fmt::print("{}", training_results_output(configuration, finished, output.form()));
    flush_output();
    log_info("Learning curves: {}", (fs::path(out_) / "report.html").string());
    return 0;
  }

  static std::optional<LabelDevice> device_of(const GpuSlots& slots, std::int64_t slot) {
    if (slots.gpus().empty()) return std::nullopt;
    return label_device(slots.gpu_of(slot), slots.bytes_on(slot % std::ssize(slots.gpus()), 0, 1));
  }

  void make_way(const TrainConfiguration& configuration) const {
    for (const auto [fold, seed] : models_of(configuration)) {
      const JobFolder there(folder_of(configuration, fold, seed), kFolderOptions);
      if (force_) {
        if (there.has_results()) remove_job(there.path(), {});
      } else {
        there.require_empty();
      }
    }
  }

  void write_manifest(const OutputFolder& folder, const TrainConfiguration& configuration,
                      const DeviceChoice& device, const std::string& command) const {
    ordered_json description = {{"config", train_configuration_json(configuration)},
                                {"seeds", configuration.train.seeds},
                                {"folds", configuration.data.folds},
                                {"conventions", describe_conventions(label_metrics(configuration.train))}};
    if (device.on_gpus()) description["device"] = device.name();
    if (from_log()) description["log"] = {{"file", request_.log}, {"estimator", request_.text()}};
    folder.write_manifest(description, command);
    write_file_atomically(fs::path(out_) / "config.toml", print_train_configuration(configuration));
  }

  /// Nothing if a signal stopped it.
  std::optional<TrainedModel> train_one(const TrainConfiguration& configuration, const TrainFold& data,
                                        const Model& model, int threads,
                                        const std::optional<LabelDevice>& device,
                                        TrainingProgress& progress) const {
    const auto [fold, seed] = model;
    JobFolder folder(folder_of(configuration, fold, seed), kFolderOptions);
    Recipe recipe = training_recipe(configuration, data, fold, seed, device.has_value());
    if (lists_) recipe.emplace_back("log", request_.text() + ", lists " + lists_->fingerprint);
    if (resume_ && folder.finished()) {
      folder.check(recipe);
      log_info("{} was finished before.", folder.path().string());
      return read_trained_model(folder.path(), fold, seed);
    }
    const TrialKeys keys = training_keys(fold, seed);
    std::optional<ClickTargets> clicks;
    if (lists_) clicks = click_targets(request_, *lists_, data.train, configuration.train, keys, threads);
    LabelTraining training(configuration.train, data.parts(clicks ? &*clicks : nullptr), keys, {}, threads,
                           device);
    TrainingJob job(training);
    const std::string name = model_name(configuration, fold, seed);
    const auto told = [&](const ordered_json& line, double seconds, bool last) {
      progress.passed(name, training_point(line), seconds, last);
    };
    if (!play_passes(job, folder, recipe, resume_, told)) return std::nullopt;
    ModelMetadata about = model_metadata(configuration, data, training, fold, seed);
    if (lists_) describe_log(request_, feature_names_, about);
    job.finish(folder, recipe, about, training_summary(training, data, fold, seed));
    return read_trained_model(folder.path(), fold, seed);
  }

  std::string file_;
  bool print_ = false;
  std::string out_ = "runs/train";
  bool resume_ = false;
  bool force_ = false;
  std::size_t jobs_ = 1;
  int threads_ = 0;
  std::string device_ = "auto";
  CLI::Option* log_ = nullptr;
  LogTrainingRequest request_;
  std::string estimator_ = "ips";
  std::string click_model_ = "pbm";
  std::optional<LogLists> lists_;  // of a training from clicks
  std::string feature_names_;      // in such a log
  SettingFlags flags_;
};

/// A C identifier made from a file's name.
std::string identifier_of(const std::filesystem::path& file) {
  std::string name = file.stem().string();
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  const bool begins_well = !name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) != 0;
  return begins_well ? name : "model_" + name;
}

class ExportCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "model", model_, "MODEL",
               "a model file, a snapshot, or the folder of a finished trial");
    add_option(app, "--state", state_, "DIR",
               "export the model of a stopped service instead: the folder of 'olrank serve'");
    add_trust_code(app, trust_code_);
    add_option(app, "--to", format_, "FORMAT",
               "output format: safetensors, pt, torchscript, onnx, json, c, ltr (OpenSearch, "
               "Elasticsearch), solr, or "
               "snapshot (with the memory of documents)");
    add_output(
        app, "--out", out_, "FILE",
        "output file; with --to c, its name is the prefix of the function names, and with --to ltr and "
        "solr the model's name");
    add_option(app, "--feature-names", names_, "A,B,…",
               "names of the features in their order, such as those of the engine's feature set [default: "
               "the model's]")
        ->delimiter(',')
        ->allow_extra_args(false);
    add_option(
        app, "--memory-limit", memory_limit_, "MB",
        "with --to snapshot: memory for documents, of the queries that were learned last [default: all]")
        ->check(CLI::NonNegativeNumber);
  }

  int run(const OutputFlags&) override {
    if (model_.empty() && state_.empty())
      throw InvalidArgument("No model given: name a model file, a trial's folder, or a service's --state.");
    if (!model_.empty() && !state_.empty())
      throw InvalidArgument("A model and --state exclude each other: name one of them.");
    if (format_.empty())
      throw InvalidArgument(
          "--to is required: choose safetensors, pt, torchscript, onnx, json, c, ltr, solr or snapshot.");
    if (out_.empty()) throw InvalidArgument("--out is required: name the file to write.");
    const auto format = parse_choice<ExportFormat>("--to", format_);
    if (format == ExportFormat::kSnapshot) return export_snapshot();
    if (memory_limit_ > 0.0)
      throw InvalidArgument("--memory-limit: Only --to snapshot has a memory: remove the flag.");
    LoadedModel model = state_.empty()
                            ? load_model(model_file_of(model_), code_if(trust_code_))
                            : parse_model(stopped_service_file(state_, false), state_, ModelCode::kTrust);
    if (!names_.empty()) name_features(model);
    write_file_atomically(out_, format == ExportFormat::kTorchScript
                                    ? torch_script_of(model)
                                    : exported(model, format, identifier_of(out_)));
    log_info("Wrote {}: the model in the format {}", out_, name_of(format));
    return 0;
  }

 private:
  int export_snapshot() const {
    const std::string origin = state_.empty() ? model_file_of(model_).string() : state_;
    std::string bytes = state_.empty() ? read_file(origin) : stopped_service_file(state_, true);
    if (!StateReader::is_state(bytes) || !names_.empty()) {
      throw InvalidArgument(
          "--to snapshot takes the --state of a service, or another snapshot, with the names that it has: "
          "a model "
          "file has no memory of documents.");
    }
    write_file_atomically(out_, limited_snapshot(std::move(bytes), origin, memory_limit_));
    log_info("Wrote {}: the model with its memory of documents", out_);
    return 0;
  }
  void name_features(LoadedModel& model) const {
    require_feature_names(names_, model.normaliser.features, "--feature-names");
    model.feature_names = names_;
    std::erase_if(model.metadata, [](const auto& entry) { return entry.first == "feature_names"; });
    model.metadata.emplace_back("feature_names", feature_names_text(names_));
  }

  std::string model_;
  bool trust_code_ = false;
  std::string state_;
  std::string format_;
  std::string out_;
  std::vector<std::string> names_;
  double memory_limit_ = 0.0;
};

}  // namespace

const CommandEntry kTrainCommand{"train", "fit a model to labels, or to the clicks of a log",
                                 make_command<TrainCommand>};

const CommandEntry kExportCommand{"export", "export a saved model to another tool's format",
                                  make_command<ExportCommand>};

}  // namespace olrank
