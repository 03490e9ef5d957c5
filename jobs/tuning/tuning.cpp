#include "jobs/tuning/tuning.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/io/atomic_file.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "jobs/settings/run_settings.h"
#include "models/ranker_factory.h"
#include "report/markup.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

/// The moments that files have.
struct Figure {
  const char* name;
  MeanInterval TrialMoments::*moments;
  bool at_cutoff;
};
constexpr Figure kFigures[] = {{"offline_area", &TrialMoments::offline_area, false},
                               {"online_area", &TrialMoments::online_area, false},
                               {"offline_ndcg", &TrialMoments::offline_ndcg, true},
                               {"cndcg", &TrialMoments::discounted_ndcg, true}};

/// Every key that some ranker sweeps, in order of first occurrence.
std::vector<std::string> swept_keys(const Configuration& configuration) {
  std::vector<std::string> keys;
  for (const RankerSettings& ranker : configuration.rankers) {
    for (const SweepAxis& axis : axes_of(configuration.sweep, ranker)) {
      if (std::find(keys.begin(), keys.end(), axis.key) == keys.end()) keys.push_back(axis.key);
    }
  }
  return keys;
}

std::string value_cells(const GridPoint& point, const std::vector<std::string>& keys) {
  std::string cells;
  for (const std::string& key : keys) {
    const auto value = std::ranges::find(point.values, key, &std::pair<std::string, SettingValue>::first);
    cells += "," + (value == point.values.end() ? "" : plain_text(value->second));
  }
  return cells;
}

std::string header(std::string_view first, const std::vector<std::string>& keys, std::int64_t cutoff) {
  std::string text(first);
  for (const std::string& key : keys) text += "," + key;
  text += ",trials";
  for (const Figure& figure : kFigures) {
    const std::string name =
        figure.at_cutoff ? fmt::format("{}@{}", figure.name, cutoff) : std::string(figure.name);
    text += fmt::format(",{0},{0}_sd", name);
  }
  return text;
}

std::string moment_cells(const TrialMoments& of_trials) {
  std::string cells = fmt::format(",{}", of_trials.trials);
  for (const Figure& figure : kFigures) {
    const MeanInterval& moments = of_trials.*figure.moments;
    cells += "," + csv_number(moments.mean) + "," + csv_number(moments.deviation);
  }
  return cells;
}

std::string choice_text(const GridPoint& point) {
  std::string text;
  for (const auto& [key, value] : point.values)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key, plain_text(value));
  return text.empty() ? "-" : text;
}

ordered_json moments_json(const TrialMoments& of_trials) {
  ordered_json json = {{"trials", of_trials.trials}};
  for (const Figure& figure : kFigures) {
    const MeanInterval& moments = of_trials.*figure.moments;
    json[figure.name] = {{"mean", moments.mean}, {"sd", moments.deviation}};  // NaN is written as null
  }
  return json;
}

}  // namespace

std::vector<Winner> winners_of(const Configuration& configuration, const std::vector<GridPoint>& grid,
                               const std::vector<TriedPoint>& tried) {
  std::vector<Winner> winners;
  for (const RankerSettings& ranker : configuration.rankers) {
    const std::vector<SweepAxis> axes = axes_of(configuration.sweep, ranker);
    if (axes.empty()) winners.push_back({{ranker.name, ranker, {}}, {}, 0.0, {}, {}});
    for (const TriedPoint& one : tried) {
      const GridPoint& point = grid[one.point];
      if (one.chosen && point.ranker == ranker.name)
        winners.push_back({point, one.moments, one.worst_gain, {}, edge_notes(point, axes)});
    }
  }
  return winners;
}

Configuration test_configuration(const Configuration& configuration, const std::vector<Winner>& winners,
                                 const std::filesystem::path& out) {
  Configuration test = configuration;
  test.sweep.clear();
  test.search = {};
  test.data.evaluate = EvaluationPart::kTest;
  test.run.out = out.string();
  test.rankers.clear();
  for (const Winner& winner : winners) {
    test.rankers.push_back(winner.point.settings);
    test.rankers.back().name = winner.point.ranker;
  }
  return test;
}

TrialMatrix matrix_of(const Configuration& configuration) {
  return {configuration.data.folds, configuration.clicks.models, configuration.protocol.seeds};
}

std::string tuning_csv(const Configuration& configuration, const std::vector<GridPoint>& grid,
                       const std::vector<TriedPoint>& tried) {
  const std::vector<std::string> keys = swept_keys(configuration);
  std::string text = header("ranker,point", keys, configuration.protocol.cutoff) + ",chosen,worst_gain\n";
  for (const TriedPoint& one : tried) {
    const GridPoint& point = grid[one.point];
    text += fmt::format("{},{}{}{},{},{}\n", point.ranker, point.settings.name, value_cells(point, keys),
                        moment_cells(one.moments), one.chosen ? 1 : 0, csv_number(one.worst_gain));
  }
  return text;
}

std::string winners_csv(const Configuration& configuration, const std::vector<Winner>& winners) {
  const std::vector<std::string> keys = swept_keys(configuration);
  std::string text = header("ranker", keys, configuration.protocol.cutoff) + "\n";
  for (const Winner& winner : winners) {
    text += fmt::format("{}{}{}\n", winner.point.ranker, value_cells(winner.point, keys),
                        moment_cells(winner.test));
  }
  return text;
}

std::string winners_text(const Configuration& configuration, const std::vector<Winner>& winners,
                         SweepCriterion by, std::int64_t columns) {
  const std::int64_t cutoff = configuration.protocol.cutoff;
  const bool by_worst = by == SweepCriterion::kWorst;
  TextTable table({{.header = "ranker", .is_name = true},
                   {.header = "chosen on vali", .is_name = true},
                   {.header = by_worst ? "worst gain on vali" : fmt::format("{} area on vali", name_of(by)),
                    .dropped = 2},
                   {.header = "trials", .dropped = 1},
                   {.header = fmt::format("test: offline ndcg@{}", cutoff)},
                   {.header = fmt::format("online cndcg@{}", cutoff), .dropped = 3}});
  std::string notes;
  for (const Winner& winner : winners) {
    const std::string value = by_worst ? fmt::format("{:.4f}", winner.worst_gain)
                                       : plain_estimate(winner.tuning.area(by), 4, false);
    table.add({winner.point.ranker, choice_text(winner.point), winner.tuning.trials > 0 ? value : "-",
               fmt::format("{}", winner.test.trials), plain_estimate(winner.test.offline_ndcg, 4, false),
               plain_estimate(winner.test.discounted_ndcg, 1, false)});
    for (const std::string& note : winner.notes) {
      notes +=
          fmt::format("Note: {}: {}; the optimum may lie outside the sweep.\n", winner.point.ranker, note);
    }
  }
  notes += fmt::format("Here {}.\n", meaning_of_intervals("the trials of a line"));
  const TextTable::Fitted fitted = table.fitted(columns);
  return fitted.text + hidden_columns_text(fitted.hidden, columns) + wrapped(notes, columns, 2);
}

std::string winners_json(const Configuration& configuration, const std::vector<Winner>& winners,
                         SweepCriterion by) {
  auto lines = ordered_json::array();
  for (const Winner& winner : winners) {
    auto chosen = ordered_json::object();
    for (const auto& [key, value] : winner.point.values) chosen[key] = setting_json(value);
    ordered_json line = {{"ranker", winner.point.ranker}};
    line["chosen"] = chosen;
    line["tuning"] = winner.tuning.trials > 0 ? moments_json(winner.tuning) : ordered_json(nullptr);
    if (by == SweepCriterion::kWorst && winner.tuning.trials > 0) line["worst_gain"] = winner.worst_gain;
    line["test"] = moments_json(winner.test);
    line["notes"] = winner.notes;
    lines.push_back(line);
  }
  const ordered_json json = {
      {"by", name_of(by)}, {"cutoff", configuration.protocol.cutoff}, {"winners", lines}};
  return json.dump(2) + "\n";
}

namespace {

namespace fs = std::filesystem;

/// Rankers without swept values, which take part in the test only.
std::vector<RankerSettings> unswept_rankers(const Configuration& configuration) {
  std::vector<RankerSettings> rankers;
  for (const RankerSettings& ranker : configuration.rankers) {
    if (axes_of(configuration.sweep, ranker).empty()) rankers.push_back(ranker);
  }
  return rankers;
}

void check_points(const std::vector<GridPoint>& grid, std::int64_t cutoff) {
  for (const GridPoint& point : grid) {
    try {
      check_ranker(point.settings, cutoff);
    } catch (const InvalidArgument& error) {
      if (std::string_view(error.what()).find(point.settings.name) != std::string_view::npos) throw;
      throw_error<InvalidArgument>("Grid point '{}': {}", point.settings.name, error.what());
    }
  }
}

/// One tuning: runs the grid on the validation set, chooses, and runs the winners on the test set.
class Tuning {
 public:
  Tuning(const Configuration& configuration, SweepCriterion by, const ExperimentRequest& request,
         std::string command, TuningStep step = TuningStep::kWhole)
      : configuration_(configuration),
        by_(by),
        request_(request),
        command_(std::move(command)),
        step_(step),
        out_(configuration.run.out),
        grid_(grid_of(configuration)),
        tuning_(tuning_configuration()) {
    check_points(grid_, configuration_.protocol.cutoff);
    for (const RankerSettings& ranker : unswept_rankers(configuration_))
      check_ranker(ranker, configuration_.protocol.cutoff);
    settle_device(tuning_, request_);
    plan_ = make_plan(tuning_, request_);
  }
  Tuning(const Tuning&) = delete;
  Tuning& operator=(const Tuning&) = delete;

  std::string dry_run(const OutputForm& form) const {
    const auto points = std::ssize(grid_);
    const auto winners = static_cast<std::int64_t>(trials_of(expected_test()).size());
    return dry_run_output(tuning_, plan_, form,
                          {{"grid_points", "grid points on the validation set.", points},
                           {"test_trials", "additional trials of the winners on the test set.", winners}});
  }

  int run(const OutputForm& form, const TextSink& print) {
    OutputFolder::require_own(out_, FolderKind::kTuning);  // before the data is read
    check_all_memory();                                    // before --force removes anything
    const OutputFolder whole(out_, FolderKind::kTuning, request_.shard);
    const OutputFolder tuning(plan_.out, FolderKind::kExperiment, request_.shard);
    const OutputFolder test(out_ / "test", FolderKind::kExperiment, request_.shard);
    refuse_existing(plan_, tuning);
    refuse_existing(expected_test(), test);
    check_existing(plan_);
    remove_existing(plan_, tuning);
    remove_existing(expected_test(), test);
    if (request_.existing == Existing::kReplace) remove_choice();
    whole.write_manifest(command_);
    const int tuned = tune(tuning);
    if (tuned > 1 || step_ == TuningStep::kMakeGrid) return tuned;
    if (plan_.shard.count > 1) {
      log_info(
          "Shard {} of {} has finished tuning. When the trials of all shards are in {}, run this command "
          "with --resume and without --shard to choose and test.",
          plan_.shard.index, plan_.shard.count, plan_.out.string());
      return tuned;
    }
    return choose_and_test(test, form, print);
  }

 private:
  int choose_and_test(const OutputFolder& test_folder, const OutputForm& form,
                      const TextSink& print) const {
    const std::vector<TrialResults> tuned = read_finished_trials(plan_.out);
    const std::vector<TriedPoint> tried =
        choose(grid_, finished_trials(tuned), matrix_of(configuration_), by_);
    std::vector<Winner> winners = winners_of(configuration_, grid_, tried);
    const Configuration chosen = test_configuration(configuration_, winners, out_ / "test");
    Configuration test = chosen;  // the plan refers to it
    test.run.device = tuning_.run.device;
    test.run.jobs = tuning_.run.jobs;
    ExperimentRequest whole = request_;
    whole.shard = {};
    whole.data = {};
    const ExperimentPlan test_plan = make_plan(test, whole);
    refuse_other_choice(test_plan);
    write_choice(tried, chosen);
    const int tested = run_test(test, test_plan, test_folder);
    if (tested > 1 || step_ == TuningStep::kChoose) return tested;
    const std::vector<TrialResults> of_test = read_finished_trials(test_plan.out);
    const TrialList trials = trials_within(finished_trials(of_test), matrix_of(configuration_));
    for (Winner& winner : winners) winner.test = trial_moments(trials, winner.point.ranker);
    write_file_atomically(out_ / "winners.csv", winners_csv(configuration_, winners));
    print(form.json ? winners_json(configuration_, winners, by_)
                    : winners_text(configuration_, winners, by_, static_cast<int>(form.columns)));
    return tested;
  }

  Configuration tuning_configuration() const {
    Configuration tuning = configuration_;
    tuning.sweep.clear();
    tuning.search = {};
    tuning.data.evaluate = EvaluationPart::kVali;
    tuning.rankers = settings_of(grid_);
    tuning.run.out = (out_ / "tuning").string();
    return tuning;
  }

  /// Winners run under the rankers' own names, so the folders of the test are known in advance.
  ExperimentPlan expected_test() const {
    ExperimentPlan plan = plan_;
    plan.out = out_ / "test";
    plan.shard = {};
    plan.rankers.clear();
    for (const RankerSettings& ranker : configuration_.rankers)
      plan.rankers.push_back({ranker.name, {}, {}});
    return plan;
  }

  /// The winners are grid points, so if the grid fits into memory, so does the test.
  void check_all_memory() const {
    Configuration all = tuning_;
    for (const RankerSettings& ranker : unswept_rankers(configuration_)) all.rankers.push_back(ranker);
    check_memory(all, plan_);
  }

  int tune(const OutputFolder& folder) const {
    const std::string shard =
        plan_.shard.count > 1 ? fmt::format(" (shard {} of {})", plan_.shard.index, plan_.shard.count) : "";
    log_info("Tuning {}: {} of {}{} in {}, evaluated on the validation set, protocol {}",
             counted(grid_.size(), "grid point"), counted(trials_of(plan_).size(), "trial"),
             counted(plan_.trial.rounds, "round"), shard, plan_.out.string(),
             name_of(configuration_.protocol.name));
    write_manifest(tuning_, plan_, folder, command_);
    write_configuration(tuning_, plan_.out / "config.toml");
    write_configuration(configuration_, out_ / "tune.toml");
    return step_ == TuningStep::kWhole ? run_and_summarise(plan_) : 0;
  }

  /// Throws if the folder contains the test of an earlier, different choice, before anything is
  /// overwritten.
  static void refuse_other_choice(const ExperimentPlan& plan) {
    try {
      check_existing(plan);
    } catch (const InvalidArgument& error) {
      throw_error<InvalidArgument>(
          "{} Remove {} and use --resume to test the new choice; the tuning results are kept.",
          error.what(), plan.out.string());
    }
  }

  void remove_choice() const {
    for (const char* file : {"tuning.csv", "winners.csv", "config.toml"}) {
      std::error_code failed;
      fs::remove(out_ / file, failed);
      if (failed) throw IoError("remove", (out_ / file).string(), failed.value());
    }
  }

  void write_choice(const std::vector<TriedPoint>& tried, const Configuration& chosen) const {
    const std::string table = tuning_csv(configuration_, grid_, tried);
    const fs::path file = out_ / "tuning.csv";
    if (fs::exists(file) && fs::file_size(file) == table.size() && read_file(file, table.size()) == table)
      return;  // the choice is unchanged
    remove_choice();
    write_configuration(chosen, out_ / "config.toml");
    write_file_atomically(file, table);  // last: its presence marks a complete choice
  }

  /// Runs the winners on the test set and returns the exit code.
  int run_test(const Configuration& test, const ExperimentPlan& plan, const OutputFolder& folder) const {
    log_info("Testing: {} of {} in {}", counted(trials_of(plan).size(), "trial"),
             counted(plan.trial.rounds, "round"), plan.out.string());
    for (const std::string& deviation : deviations(test)) log_info("  {}", deviation);
    write_manifest(test, plan, folder, command_);
    write_configuration(test, plan.out / "config.toml");
    return step_ == TuningStep::kWhole ? run_and_summarise(plan) : 0;
  }

  const Configuration& configuration_;
  SweepCriterion by_;
  ExperimentRequest request_;
  std::string command_;
  TuningStep step_;
  fs::path out_;
  std::vector<GridPoint> grid_;
  Configuration tuning_;  // the plan refers to it
  ExperimentPlan plan_;
};

}  // namespace

std::string tuning_dry_run(const Configuration& configuration, SweepCriterion by,
                           const ExperimentRequest& request, const OutputForm& form) {
  return Tuning(configuration, by, request, {}).dry_run(form);
}

int run_tuning(const Configuration& configuration, SweepCriterion by, const ExperimentRequest& request,
               const std::string& command, const OutputForm& form, const TextSink& print, TuningStep step) {
  return Tuning(configuration, by, request, command, step).run(form, print);
}

}  // namespace olrank
