#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/recommend/commands.h"
#include "apps/recommend/recommender_tables.h"
#include "apps/setting_flags.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/io/standard_output.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/log.h"
#include "core/runtime/log_output.h"
#include "core/runtime/progress.h"
#include "core/text/byte_size.h"
#include "jobs/output_folder.h"
#include "jobs/recommending/recommend_configuration.h"
#include "jobs/recommending/recommender_run.h"
#include "jobs/settings/setting_json.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// Tells how far a training is: the terms of the loss, the validation and the speed.
class RecommenderProgress {
 public:
  RecommenderProgress(const RecommendSettings& settings, std::int64_t passes)
      : settings_(settings), passes_(passes) {}

  void passed(const ordered_json& point, const RecommenderRun& run, double seconds, bool last) {
    if (output_.as_events()) {
      ordered_json event = {{"kind", name_of(settings_.kind)}, {"passes", passes_}};
      event.update(point);
      return log_event("pass", event);
    }
    output_.show(text(point, run, seconds), seconds, last);
  }

 private:
  std::string text(const ordered_json& point, const RecommenderRun& run, double seconds) const {
    std::string line = fmt::format("{}: pass {} of {}", name_of(settings_.kind),
                                   point["pass"].get<std::int64_t>(), passes_);
    for (const auto& [name, value] : point.items()) {
      if (name == "pass" || name == "seconds") continue;
      if (value.is_number()) line += fmt::format(", {} {:.4f}", name, value.get<double>());
      if (value.is_object()) {
        for (const auto& [metric, number] : value.items()) {
          if (number.is_number())
            line += fmt::format(", validation {} {:.4f}", metric, number.get<double>());
        }
      }
    }
    if (run.training_seconds() > 0.0) {
      const double each = 1e-6 / run.training_seconds();
      if (run.entries() > 0)
        line += fmt::format(", {:.2f} million entries/s", static_cast<double>(run.entries()) * each);
      if (run.pairs() > 0)
        line += fmt::format(", {:.2f} million pairs/s", static_cast<double>(run.pairs()) * each);
    }
    return line + ", " + readable_duration(seconds);
  }

  const RecommendSettings& settings_;
  std::int64_t passes_;
  ProgressLine output_;
};

class RecommendTrainCommand : public Command {
 public:
  std::string name() const override { return "train"; }
  std::string summary() const override { return "train a recommender from reviews"; }
  void declare(CLI::App& app) override {
    app.add_option("--config", file_, "configuration file (TOML) with [recommend]; optional")
        ->type_name("FILE");
    app.add_flag("--print-config", print_, "print the resolved configuration and exit");
    app.add_option("--out", out_, "output folder [default: runs/recommend]")->type_name("DIR");
    auto* resume = app.add_flag("--resume", resume_, "continue an earlier training in --out");
    app.add_flag("--force", force_, "replace the results of an earlier training in --out")
        ->excludes(resume);
    app.add_option("--max-memory", max_memory_,
                   "limit for the training, such as 8GB; auto is what this machine may use [default: auto]")
        ->type_name("SIZE");
    app.add_option("--threads", threads_, "CPU threads; 0 uses every core [default: 0]")
        ->type_name("N")
        ->check(CLI::Range(0, 4096));
    flags_.declare(app, recommend_tables());
  }

  int run(const OutputFlags& output) override {
    const RecommendSettings settings = resolve_recommend_settings(
        file_.empty() ? std::nullopt : std::optional(fs::path(file_)), flags_.overrides());
    if (print_) {
      write_output(print_recommend_settings(settings));
      return 0;
    }
    const std::int64_t allowed = allowed_memory();
    OutputFolder::require_own(out_, FolderKind::kRecommender);  // before the data is read
    const InterruptGuard guard;
    ExecutionContext context(threads_ > 0 ? threads_ : available_threads());
    const std::unique_ptr<const ReviewParts> parts = load_review_parts(settings, context);
    log_info("{}: {}.", settings.data, parts_text(*parts));
    log_info("{}", plan_recommender_memory(settings, *parts, context.threads(), allowed));
    const OutputFolder folder(out_, FolderKind::kRecommender);
    return train(settings, *parts, context, folder, output);
  }

 private:
  std::int64_t allowed_memory() const {
    if (max_memory_ == "auto") return available_memory();
    const auto bytes = parse_bytes(max_memory_);
    if (!bytes)
      throw InvalidArgument(
          fmt::format("--max-memory must be a size such as 8GB, or auto, not '{}'.", max_memory_));
    return *bytes;
  }

  int train(const RecommendSettings& settings, const ReviewParts& parts, ExecutionContext& context,
            const OutputFolder& out, const OutputFlags& output) const {
    JobFolder folder(out_, {.noun = "recommender"});
    const Recipe recipe = recommender_recipe(settings, parts);
    if (folder.has_results() && !resume_ && !force_) {
      throw InvalidArgument(fmt::format(
          "'{}' already contains a recommender: continue it with --resume, replace it with --force, or "
          "choose another --out.",
          out_));
    }
    if (resume_ && folder.finished()) {
      folder.check(recipe);
      log_info("{} was finished before.", out_);
      print_recommender_summary(folder.summary(), output);
      return 0;
    }
    if (resume_) folder.check(recipe);
    RecommenderRun run(settings, parts, context);
    if (!resume_) remove_job(out_, {});
    ordered_json config;
    for (const Setting& setting : RecommendSettings::schema().settings) {
      if (kind_reads(settings.kind, setting.key))
        config[setting.key] = setting_json(setting.read(&settings));
    }
    out.write_manifest(ordered_json{{"config", config}}, output.command_line);
    write_file_atomically(fs::path(out_) / "config.toml", print_recommend_settings(settings));
    RecommenderProgress progress(settings, run.training().passes());
    const auto told = [&](const ordered_json& point, double seconds, bool last) {
      progress.passed(point, run, seconds, last);
    };
    if (!play_passes(run, folder, recipe, resume_, told)) {
      log_info("Stopped by a signal; run the same command with --resume to continue.");
      return InterruptGuard::exit_code(InterruptGuard::requested());
    }
    run.finish(folder, recipe);
    print_recommender_summary(folder.summary(), output);
    return 0;
  }

  std::string file_;
  bool print_ = false;
  std::string out_ = "runs/recommend";
  bool resume_ = false;
  bool force_ = false;
  std::string max_memory_ = "auto";
  int threads_ = 0;
  SettingFlags flags_;
};

}  // namespace

std::unique_ptr<Command> make_recommend_train_command() {
  return std::make_unique<RecommendTrainCommand>();
}

}  // namespace olrank
