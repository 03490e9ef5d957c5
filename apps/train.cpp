#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/setting_flags.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/standard_output.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/log.h"
#include "core/runtime/log_output.h"
#include "core/runtime/progress.h"
#include "core/text/counted.h"
#include "jobs/output_folder.h"
#include "jobs/settings/train_configuration.h"
#include "jobs/training/train_data.h"
#include "jobs/training/train_results.h"
#include "jobs/training/training_job.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr JobFolder::Options kFolderOptions = {.noun = "training"};

/// Tells how far a training is, in the style that stderr has.
class TrainingProgress {
 public:
  TrainingProgress(std::string name, std::int64_t epochs, std::string metric)
      : name_(std::move(name)), epochs_(epochs), metric_(std::move(metric)) {}

  void passed(const TrainingPoint& point, double seconds, bool last) {
    if (output_.as_events()) {
      ordered_json event = {{"model", name_}, {"epoch", point.epoch}, {"epochs", epochs_}};
      if (point.loss) event["loss"] = *point.loss;
      for (const auto& [metric, value] : point.vali) event["vali"][metric] = value;
      return log_event("pass", event);
    }
    std::string line = fmt::format("{}: pass {} of {}", name_, point.epoch, epochs_);
    if (point.loss) line += fmt::format(", loss {:.5f}", *point.loss);
    for (const auto& [metric, value] : point.vali) {
      if (metric == metric_) line += fmt::format(", validation {} {:.4f}", metric_, value);
    }
    output_.show(line + ", " + readable_duration(seconds), seconds, last);
  }

 private:
  std::string name_;
  std::int64_t epochs_;
  std::string metric_;
  ProgressLine output_;
};

class TrainCommand : public Command {
 public:
  std::string name() const override { return "train"; }
  std::string summary() const override { return "fit a model to labels"; }
  void declare(CLI::App& app) override {
    app.add_option("config", file_, "configuration file (TOML) with [data] and [train]; optional")
        ->type_name("FILE");
    app.add_flag("--print-config", print_, "print the resolved configuration and exit");
    app.add_option("--out", out_, "output folder [default: runs/train]")->type_name("DIR");
    auto* resume = app.add_flag("--resume", resume_, "continue an earlier training in --out");
    app.add_flag("--force", force_, "replace the results of an earlier training in --out")
        ->excludes(resume);
    app.add_option("--threads", threads_, "CPU threads; 0 uses every core [default: 0]")
        ->type_name("N")
        ->check(CLI::Range(0, 4096));
    flags_.declare(app, train_tables());
  }

  int run(const OutputFlags& output) override {
    const TrainConfiguration configuration = resolve_train_configuration(
        file_.empty() ? std::nullopt : std::optional(fs::path(file_)), flags_.overrides());
    if (print_) {
      fmt::print("{}", print_train_configuration(configuration));
      return 0;
    }
    if (configuration.data.source.empty() && configuration.data.train.empty())
      throw InvalidArgument("No data given: name a folder or \"synth:NAME\" with --data.");
    OutputFolder::require_own(out_, FolderKind::kTraining);  // before the data is read
    const int threads = threads_ > 0 ? threads_ : available_threads();
    return train_all(configuration, threads, output);
  }

 private:
  /// A model is in the folder itself where it is the only one.
  fs::path folder_of(const TrainConfiguration& configuration, std::int64_t fold, std::int64_t seed) const {
    const bool only = configuration.data.folds.size() * configuration.train.seeds.size() == 1;
    if (only) return out_;
    return fs::path(out_) / fmt::format("fold{}", fold) / fmt::format("seed{}", seed);
  }

  int train_all(const TrainConfiguration& configuration, int threads, const OutputFlags& output) {
    std::optional<OutputFolder> folder;
    std::vector<TrainedModel> models;
    const InterruptGuard guard;
    for (const std::int64_t fold : configuration.data.folds) {
      ExecutionContext context(threads);
      const TrainFold data = load_train_fold(configuration, fold, context);
      if (!folder) {
        folder.emplace(out_, FolderKind::kTraining);
        refuse_existing(configuration);
        write_manifest(*folder, configuration, output.command_line);
      }
      for (const std::int64_t seed : configuration.train.seeds) {
        const std::optional<TrainedModel> model = train_one(configuration, data, fold, seed, threads);
        if (!model) return stopped();
        models.push_back(*model);
      }
    }
    write_training_results(out_, configuration, models);
    fmt::print("{}", training_results_output(configuration, models, output.form()));
    flush_output();
    log_info("Learning curves: {}", (fs::path(out_) / "report.html").string());
    return 0;
  }

  static int stopped() {
    log_info("Stopped by a signal; run the same command with --resume to continue.");
    return InterruptGuard::exit_code(InterruptGuard::requested());
  }

  void refuse_existing(const TrainConfiguration& configuration) const {
    for (const std::int64_t fold : configuration.data.folds) {
      for (const std::int64_t seed : configuration.train.seeds) {
        const JobFolder there(folder_of(configuration, fold, seed), kFolderOptions);
        if (resume_ || !there.has_results()) continue;
        if (!force_) {
          throw InvalidArgument(fmt::format(
              "'{}' already contains a training: continue it with --resume, replace it with --force, or "
              "choose another --out.",
              there.path().string()));
        }
        remove_job(there.path(), {});
      }
    }
  }

  void write_manifest(const OutputFolder& folder, const TrainConfiguration& configuration,
                      const std::string& command) const {
    ordered_json description = {{"config", train_configuration_json(configuration)},
                                {"seeds", configuration.train.seeds},
                                {"folds", configuration.data.folds},
                                {"conventions", describe_conventions(label_metrics(configuration.train))}};
    folder.write_manifest(description, command);
    write_file_atomically(fs::path(out_) / "config.toml", print_train_configuration(configuration));
  }

  /// Nothing if a signal stopped it.
  std::optional<TrainedModel> train_one(const TrainConfiguration& configuration, const TrainFold& data,
                                        std::int64_t fold, std::int64_t seed, int threads) const {
    JobFolder folder(folder_of(configuration, fold, seed), kFolderOptions);
    const Recipe recipe = training_recipe(configuration, data, fold, seed);
    if (resume_ && folder.finished()) {
      folder.check(recipe);
      log_info("{} was finished before.", folder.path().string());
      return read_trained_model(folder.path(), fold, seed);
    }
    LabelTraining training(configuration.train, data.parts(), training_keys(fold, seed), {}, threads);
    TrainingJob job(training);
    TrainingProgress progress(model_name(configuration, fold, seed), configuration.train.most_epochs(),
                              fmt::format("ndcg@{}", configuration.train.cutoff));
    const auto told = [&](const ordered_json& line, double seconds, bool last) {
      progress.passed(training_point(line), seconds, last);
    };
    if (!play_passes(job, folder, recipe, resume_, told)) return std::nullopt;
    job.finish(folder, recipe, model_metadata(configuration, data, training, fold, seed),
               training_summary(training, data, fold, seed));
    return read_trained_model(folder.path(), fold, seed);
  }

  std::string file_;
  bool print_ = false;
  std::string out_ = "runs/train";
  bool resume_ = false;
  bool force_ = false;
  int threads_ = 0;
  SettingFlags flags_;
};

}  // namespace

std::unique_ptr<Command> make_train_command() {
  return std::make_unique<TrainCommand>();
}

}  // namespace olrank
