#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/recommend/commands.h"
#include "apps/recommend/recommender_tables.h"
#include "core/error.h"
#include "core/io/json.h"
#include "core/io/standard_output.h"
#include "core/text/text_table.h"
#include "jobs/recommending/recommender_comparison.h"
#include "jobs/recommending/recommender_file.h"
#include "jobs/recommending/recommender_run.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

class RecommendEvalCommand : public Command {
 public:
  std::string name() const override { return "eval"; }
  std::string summary() const override { return "compare trained recommenders by NDCG and hit rate"; }
  void declare(CLI::App& app) override {
    app.add_option(
           "--model", models_,
           "folder of 'recommend train'; if several are given, the others are compared with the first")
        ->type_name("DIR")
        ->required();
    app.add_option("--data", data_, "the reviews, if they are no longer where the training read them")
        ->type_name("FILE");
    app.add_option("--part", part_, "test or validation [default: test]")
        ->type_name("PART")
        ->check(CLI::IsMember({"test", "validation"}));
    app.add_option("--threads", threads_, "CPU threads [default: every core]")
        ->type_name("N")
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
        throw InvalidArgument(
            fmt::format("'{}' does not hold the reviews that {} was trained on: name them with --data.",
                        settings.data, folder));
      }
      const JudgedPart judged = judged_part(context, *loaded.model, *parts, settings);
      const bool same = fingerprint.empty() || fingerprint == loaded.fingerprint;
      if (!same || (!figures.empty() && figures.front().users != judged.last().users)) {
        throw InvalidArgument(fmt::format(
            "{} and {} were trained on different data or splits, so their users cannot be paired.",
            models_.front(), folder));
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
    if (output.json) {
      write_output(dump_json(all.size() == 1 ? all.front() : all, 2) + "\n");
      return 0;
    }
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

std::unique_ptr<Command> make_recommend_eval_command() {
  return std::make_unique<RecommendEvalCommand>();
}

}  // namespace olrank
