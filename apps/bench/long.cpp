#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/setting_flags.h"
#include "bench/long_trial.h"
#include "core/io/atomic_file.h"
#include "core/runtime/log.h"
#include "core/throw_error.h"
#include "jobs/covariance/study_rankers.h"
#include "jobs/experiment_setup.h"
#include "jobs/settings/configuration.h"
#include "models/ranker_kinds.h"

namespace olrank {
namespace {

/// Rounds that one ranker plays before the next one does, so that load on the machine affects all alike.
constexpr std::int64_t kTurn = 100;

/// The rankers, each once for every structure.
std::vector<RankerSettings> with_structures(const std::vector<RankerSettings>& rankers,
                                            const std::vector<std::string>& structures) {
  if (structures.empty()) return rankers;
  for (auto one = structures.begin(); one != structures.end(); ++one) {
    if (std::find(structures.begin(), one, *one) != one) {
      throw_error<InvalidArgument>("--structures contains '{}' twice: name each covariance once.", *one);
    }
  }
  std::vector<RankerSettings> made;
  for (const RankerSettings& ranker : rankers) {
    if (row_of(ranker.kind).evidence != OrderEvidence::kWidths) {
      throw_error<InvalidArgument>("--structures is for rankers with widths, and '{}' has none.",
                                   ranker.name);
    }
    for (const std::string& structure : structures) {
      RankerSettings one = ranker;
      set_covariance(one.posterior, structure, "--structures");
      one.name = rankers.size() == 1 ? structure : fmt::format("{}-{}", ranker.name, structure);
      made.push_back(std::move(one));
    }
  }
  return made;
}

class BenchLongCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "config", file_, "FILE", "configuration file (TOML); optional");
    app.add_option("--structures", structures_,
                   "play each ranker with each of these covariances; inducing-N has the budget N")
        ->delimiter(',');
    app.add_option("--span", span_, "rounds between two measurements [default: 1000]")
        ->check(CLI::PositiveNumber);
    json_option_ =
        add_output(app, "--json", json_, "FILE", "write the report to FILE as JSON; without FILE, print it")
            ->expected(0, 1);
    flags_.declare(app);
  }
  int run(const OutputFlags& output) override {
    const Configuration configuration = resolve();
    const ExperimentPlan plan = make_plan(configuration, {});
    LongReport report = started_report(plan, configuration, output);
    play(plan, report);
    tell(report, output);
    const bool alike = std::all_of(report.rankers.begin(), report.rankers.end(),
                                   [](const LongRanker& ranker) { return ranker.same_bits; });
    return alike ? 0 : 1;
  }

 private:
  Configuration resolve() const {
    const auto file = file_.empty() ? std::nullopt : std::optional<std::filesystem::path>(file_);
    Configuration configuration = resolve_configuration(file, flags_.overrides());
    refuse_study("bench long", configuration);
    refuse_search("bench long", configuration);
    if (!configuration.sweep.empty())
      throw_error<InvalidArgument>("'olrank bench long' does not support [sweep]; remove it from {}.",
                                   file_);
    if (configuration.run.device != "auto" && configuration.run.device != "cpu") {
      throw InvalidArgument(
          "'olrank bench long' measures processor time: use --device cpu, or 'olrank bench round' for a "
          "GPU.");
    }
    configuration.run.device = "cpu";
    if (configuration.run.threads == 0) configuration.run.threads = 1;
    configuration.run.jobs = 1;
    configuration.protocol.eval_every = span_;
    configuration.rankers = with_structures(configuration.rankers, structures_);
    return configuration;
  }

  static LongReport started_report(const ExperimentPlan& plan, const Configuration& configuration,
                                   const OutputFlags& output) {
    LongReport report;
    report.command = output.command_line;
    report.machine = this_machine();
    report.data = configuration.data.source;
    report.user = plan.users.front().name;
    report.fold = plan.folds.front();
    report.seed = plan.seeds.front();
    for (const ExperimentRanker& ranker : plan.rankers) report.rankers.push_back({ranker.name, {}, false});
    return report;
  }

  void play(const ExperimentPlan& plan, LongReport& report) const {
    std::vector<std::unique_ptr<LongTrial>> trials;
    for (const ExperimentRanker& ranker : plan.rankers)
      trials.push_back(std::make_unique<LongTrial>(plan, ranker));
    std::int64_t played = 0;
    while (played < plan.trial.rounds) {
      const std::int64_t last = std::min(plan.trial.rounds, played + span_);
      ProductUnit unit;
      while (played < last) {
        const std::int64_t turn = std::min(kTurn, last - played);
        for (const auto& trial : trials) trial->play(turn);
        unit.measure();
        played += turn;
      }
      for (std::size_t i = 0; i < trials.size(); ++i) {
        LongRanker& ranker = report.rankers[i];
        ranker.spans.push_back(last < plan.trial.rounds ? trials[i]->end_span(unit)
                                                        : trials[i]->end(unit, ranker.same_bits));
        const LongSpan& span = ranker.spans.back();
        log_info("{} of {} rounds, {}: {:.3f} ms a round, {:.3f} GEMM", played, plan.trial.rounds,
                 ranker.name, 1e3 * span.seconds, span.seconds / span.unit_seconds);
      }
    }
  }

  void tell(const LongReport& report, const OutputFlags& output) const {
    const std::string json = long_json(report);
    const bool prints_json = output.json || (json_option_->count() > 0 && json_.empty());
    fmt::print("{}", prints_json ? json : long_text(report, output.columns()));
    if (json_.empty()) return;
    write_file_atomically(json_, json);
    log_info("Wrote {}: the report as JSON", json_);
  }

  std::string file_;
  std::vector<std::string> structures_;
  std::int64_t span_ = 1000;
  std::string json_;
  const CLI::Option* json_option_ = nullptr;
  SettingFlags flags_;
};

}  // namespace

const CommandEntry kBenchLongCommand{
    "bench long",
    "benchmark whole trials span by span: time, memory and checkpoints by rounds, and a resumed "
    "trial",
    make_command<BenchLongCommand>};

}  // namespace olrank
