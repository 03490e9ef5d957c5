#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/setting_flags.h"
#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
#include "core/text/message_text.h"
#include "core/text/text_table.h"
#include "core/throw_error.h"
#include "jobs/output_folder.h"
#include "jobs/recommending/recommender_file.h"
#include "jobs/recommending/recommender_run.h"
#include "jobs/settings/run_settings.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string shown_figure(const ordered_json& figures, const std::string& name) {
  if (!figures[name].is_number()) return "–";
  const ordered_json& width = figures["half_width"][name];
  const std::string mean = fmt::format("{:.4f}", figures[name].get<double>());
  return width.is_number() ? fmt::format("{} ± {:.4f}", mean, width.get<double>()) : mean;
}

std::vector<std::string> figure_names(const ordered_json& figures) {
  std::vector<std::string> names;
  for (const auto& [name, value] : figures.items()) {
    if (name.find('@') != std::string::npos) names.push_back(name);
  }
  return names;
}

/// Lines "metric  mean ± half width" of what figures_json() gives.
std::string figures_table(const ordered_json& figures, int columns) {
  TextTable table({{"figure", true}, {"mean over users"}});
  for (const std::string& name : figure_names(figures)) table.add({name, shown_figure(figures, name)});
  return table.fitted(columns).text;
}

/// A finished training on stdout, as a table or as JSON.
void print_recommender_summary(const ordered_json& summary, const OutputFlags& output) {
  if (output.json) return write_output(dump_json(summary, 2) + "\n");
  const ordered_json& test = summary["test"];
  std::string text = fmt::format("{}: test part, {} users", summary["kind"].get<std::string>(),
                                 test["users"].get<std::int64_t>());
  if (const auto left_out = test.value("left_out_users", std::int64_t{0}); left_out > 0)
    text += fmt::format(", {} left out for lack of a training review", left_out);
  text += "\n" + figures_table(test, output.columns());
  if (test.contains("few_reviews") && test["few_reviews"]["ndcg@50"].is_number()) {
    text += fmt::format("{} users with at most {} training reviews: ndcg@50 {}\n",
                        test["few_reviews"]["users"].get<std::int64_t>(), kFewReviews,
                        shown_figure(test["few_reviews"], "ndcg@50"));
  }
  if (test.contains("cold_start")) {
    text += "known reviews of new users\n";
    for (const ordered_json& known : test["cold_start"])
      text += fmt::format("{}: ndcg@50 {}\n", known["known_reviews"].get<std::int64_t>(),
                          shown_figure(known, "ndcg@50"));
  }
  write_output(text);
}

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
  void declare(CLI::App& app) override {
    add_option(app, "--config", file_, "FILE", "configuration file (TOML) with [recommend]; optional");
    app.add_flag("--print-config", print_, "print the resolved configuration and exit");
    add_option(app, "--out", out_, "DIR", "output folder [default: runs/recommend]");
    auto* resume = app.add_flag("--resume", resume_, "continue an earlier training in --out");
    app.add_flag("--force", force_, "replace the results of an earlier training in --out")
        ->excludes(resume);
    add_option(app, "--max-memory", max_memory_, "SIZE",
               "limit for the training, such as 8GB; auto is what this machine may use [default: auto]");
    add_threads(app, threads_);
    flags_.declare(app, recommend_tables());
  }

  int run(const OutputFlags& output) override {
    const RecommendSettings settings = resolve_recommend_settings(
        file_.empty() ? std::nullopt : std::optional(fs::path(file_)), flags_.overrides());
    if (print_) return printed(print_recommend_settings(settings));
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
      throw_error<InvalidArgument>("--max-memory must be a size such as 8GB, or auto, not '{}'.",
                                   max_memory_);
    return *bytes;
  }

  int train(const RecommendSettings& settings, const ReviewParts& parts, ExecutionContext& context,
            const OutputFolder& out, const OutputFlags& output) const {
    JobFolder folder(out_, {.noun = "recommender"});
    const Recipe recipe = recommender_recipe(settings, parts);
    if (!resume_ && !force_) folder.require_empty();
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
    if (!play_passes(run, folder, recipe, resume_, told)) return stopped_by_signal();
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

class RecommendEvalCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--model", models_, "DIR",
               "folder of 'recommend train'; if several are given, the others are compared with the first")
        ->required();
    add_option(app, "--data", data_, "FILE",
               "the reviews, if they are no longer where the training read them");
    add_option(app, "--part", part_, "PART", "test or validation [default: test]")
        ->check(CLI::IsMember({"test", "validation"}));
    add_option(app, "--threads", threads_, "N", "CPU threads [default: every core]")
        ->check(CLI::Range(1, 4096));
  }

  int run(const OutputFlags& output) override {
    ExecutionContext context(threads_);
    ordered_json all = ordered_json::array();
    std::vector<RankingFigures> figures;
    std::string fingerprint;
    for (const std::string& folder : models_) {
      const LoadedRecommender loaded = read_recommender(folder);
      RecommendSettings settings = loaded.settings;
      if (!data_.empty()) settings.data = data_;
      const std::unique_ptr<const ReviewParts> parts = load_review_parts(settings, context);
      if (parts->fingerprint.hex() != loaded.fingerprint) {
        throw_error<InvalidArgument>(
            "'{}' does not hold the reviews that {} was trained on: name them with --data.", settings.data,
            folder);
      }
      const JudgedPart judged = judged_part(context, *loaded.model, *parts, settings);
      const bool same = fingerprint.empty() || fingerprint == loaded.fingerprint;
      if (!same || (!figures.empty() && figures.front().users != judged.last().users)) {
        throw_error<InvalidArgument>(
            "{} and {} were trained on different data or splits, so their users cannot be paired.",
            models_.front(), folder);
      }
      fingerprint = loaded.fingerprint;
      ordered_json entry = {{"model", folder}, {"kind", name_of(settings.kind)}, {"part", part_}};
      entry.update(judged.json());
      all.push_back(entry);
      figures.push_back(judged.last());
    }
    const std::vector<ordered_json> comparisons = compared_with_first(figures);
    for (std::size_t other = 1; other < figures.size(); ++other)
      all[other]["against_first"] = comparisons[other - 1];
    if (output.json) return printed(dump_json(all.size() == 1 ? all.front() : all, 2) + "\n");
    for (const ordered_json& entry : all) write_output(text_of_entry(entry, output));
    return 0;
  }

 private:
  JudgedPart judged_part(ExecutionContext& context, const Recommender& model, const ReviewParts& parts,
                         const RecommendSettings& settings) const {
    if (part_ == "test") return judge_test_part(context, model, parts, settings);
    RankingOptions options;
    options.gain = settings.gain;
    JudgedPart judged;
    judged.figures.push_back(
        judge_recommender(context, model, parts.training, parts.split.validation, options));
    return judged;
  }

  static std::string text_of_entry(const ordered_json& entry, const OutputFlags& output) {
    std::string text = fmt::format("{} ({}): {} part, {} users\n", entry["model"].get<std::string>(),
                                   entry["kind"].get<std::string>(), entry["part"].get<std::string>(),
                                   entry["users"].get<std::int64_t>());
    text += figures_table(entry, output.columns());
    if (!entry.contains("against_first")) return text;
    text += "against the first model (Student's paired test over users)\n";
    TextTable table({{"figure", true}, {"difference"}, {"p"}, {"p after Holm's correction"}});
    for (const auto& [name, test] : entry["against_first"].items()) {
      table.add({name, shown(test["difference"], "{:+.4f}"), shown(test["p"], "{:.2g}"),
                 shown(test["p_holm"], "{:.2g}")});
    }
    return text + table.fitted(output.columns()).text;
  }

  static std::string shown(const ordered_json& number, const char* form) {
    return number.is_number() ? fmt::format(fmt::runtime(form), number.get<double>()) : "–";
  }

  std::vector<std::string> models_;
  std::string data_;
  std::string part_ = "test";
  int threads_ = available_threads();
};

}  // namespace

const CommandEntry kRecommendTrainCommand{"recommend train", "train a recommender from reviews",
                                          make_command<RecommendTrainCommand>};
const CommandEntry kRecommendEvalCommand{"recommend eval",
                                         "compare trained recommenders by NDCG and hit rate",
                                         make_command<RecommendEvalCommand>};

}  // namespace olrank
