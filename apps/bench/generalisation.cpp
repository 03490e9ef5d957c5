#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/commands.h"
#include "apps/experiment_flags.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/io/json.h"
#include "core/io/standard_output.h"
#include "core/ops/blas.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/log.h"
#include "core/runtime/log_output.h"
#include "core/runtime/progress.h"
#include "core/runtime/stopwatch.h"
#include "core/settings/value.h"
#include "core/text/counted.h"
#include "core/text/nearest.h"
#include "jobs/job_slots.h"
#include "jobs/output_folder.h"
#include "report/drawing.h"
#include "studies/generalisation/cell_store.h"
#include "studies/generalisation/generalisation_findings.h"
#include "studies/generalisation/generalisation_plan.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kExperimentNames = {"A", "B", "C", "D", "E", "F"};
const std::vector<std::string> kSizeNames = {"small", "full"};

/// Tells which cells are done and how long the rest will take: by their costs, whose scale the cells that
/// are done show.
class CellProgress {
 public:
  CellProgress(std::size_t cells, double cost) : cells_(cells), cost_(cost) {}

  /// Called under a lock.
  void finished(const GeneralisationCell& cell) {
    ++done_;
    done_cost_ += cell.cost;
    const double seconds = begun_.seconds();
    const double left = seconds * (cost_ - done_cost_) / done_cost_;
    if (output_.as_events()) {
      return log_event("cell", {{"cell", cell.name()},
                                {"done", done_},
                                {"of", cells_},
                                {"seconds", seconds},
                                {"seconds_left", left}});
    }
    const bool last = done_ == cells_;
    const std::string line = fmt::format("{} of {}, {}: {}, about {} left", done_, counted(cells_, "cell"),
                                         cell.name(), readable_duration(seconds), readable_duration(left));
    output_.show(line, seconds, last);
  }

 private:
  std::size_t cells_;
  double cost_;
  Stopwatch begun_;
  ProgressLine output_;
  std::size_t done_ = 0;
  double done_cost_ = 0.0;
};

/// Computes the cells, `jobs` at once, and stores each. Stops early at a signal; the first error ends it.
void run_cells(const std::vector<GeneralisationCell>& cells, const CellStore& store, int jobs) {
  double cost = 0.0;
  for (const GeneralisationCell& cell : cells) cost += cell.cost;
  CellProgress progress(cells.size(), cost);
  std::mutex lock;
  run_in_slots(
      cells.size(), jobs, [] { return InterruptGuard::requested() != 0; },
      [&](std::size_t place, std::int64_t) {
        store.write(cells[place], cells[place].compute());
        const std::lock_guard held(lock);
        progress.finished(cells[place]);
      });
}

class BenchGeneralisationCommand : public Command {
 public:
  std::string name() const override { return "generalisation"; }
  std::string summary() const override {
    return "study: the effect of list length, norms and noise on the generalisation of losses of lists";
  }
  void declare(CLI::App& app) override {
    app.add_option("--experiments", experiments_,
                   "which of A to F: list length, slopes, algorithms, norms, noise, rankings [default: "
                   "A,B,C,D,E, and F with --data]")
        ->delimiter(',')
        ->type_name("LIST");
    app.add_option("--seeds", seeds_, "such as 1-20 [default: 1-20, or 1-3 with --size small]")
        ->type_name("LIST");
    app.add_option("--size", size_, "small or full; the next flags change single sizes [default: full]");
    app.add_option("--lengths", lengths_, "documents of a query, m, in A and B")->type_name("LIST");
    app.add_option("--queries", queries_, "training queries, n, in A")->type_name("LIST");
    app.add_option("--online-queries", online_, "training queries, n, in C and E")->type_name("LIST");
    app.add_option("--widths", widths_, "features, d, in D")->type_name("LIST");
    app.add_option("--held-out", held_out_, "held-out queries of A at most")
        ->type_name("N")
        ->check(CLI::Range(100, 1000000));
    app.add_option("--data", data_, "folders of real lists, for A and F")->delimiter(',')->type_name("DIR");
    app.add_option("--out", out_, "output folder [default: runs/generalisation]")->type_name("DIR");
    app.add_option("--jobs", jobs_, "cells at once [default: 1]")
        ->type_name("N")
        ->check(CLI::Range(1, 4096));
    request_.declare(app);
  }

  int run(const OutputFlags& output) override {
    GeneralisationPlan plan = plan_without_data();
    const ExperimentRequest request = request_.request();
    OutputFolder::require_own(out_, FolderKind::kGeneralisation);  // before the data is read
    for (const std::string& folder : data_) plan.data.push_back(load_real_lists(folder, plan.sizes));
    const std::vector<GeneralisationCell> cells = plan_cells(plan);
    const OutputFolder folder(out_, FolderKind::kGeneralisation, request.shard);
    const CellStore store(out_);
    settle_existing(request, store, cells);
    folder.write_manifest({{"experiments", plan.experiments},
                           {"seeds", plan.seeds},
                           {"sizes", plan.sizes.text()},
                           {"data", data_},
                           {"blas", blas::library_name()}},
                          output.command_line);

    const InterruptGuard guard;
    run_cells(cells_to_run(cells, store, request.shard), store, jobs_);
    if (InterruptGuard::requested() != 0) {
      log_info("Stopped by a signal; run the same command with --resume to continue.");
      return InterruptGuard::exit_code(InterruptGuard::requested());
    }
    const auto missing = std::count_if(cells.begin(), cells.end(),
                                       [&](const GeneralisationCell& cell) { return !store.has(cell); });
    if (missing > 0) {
      log_info("Shard {} of {} is finished; {} of other shards are missing.", request.shard.index,
               request.shard.count, counted(missing, "cell"));
      return 0;
    }
    report(plan, cells, store, output);
    return 0;
  }

 private:
  static std::vector<std::int64_t> integers(const char* flag, const std::string& text,
                                            std::int64_t lowest) {
    std::vector<std::int64_t> numbers;
    try {
      numbers = std::get<std::vector<std::int64_t>>(parse_setting(SettingKind::kIntegers, text));
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("{}: {}", flag, error.what()));
    }
    if (numbers.empty()) throw InvalidArgument(fmt::format("{} must name at least one number.", flag));
    std::sort(numbers.begin(), numbers.end());
    if (std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end())
      throw InvalidArgument(fmt::format("{} names a number twice: '{}'.", flag, text));
    if (numbers.front() < lowest)
      throw InvalidArgument(fmt::format("{} must be at least {}, not {}.", flag, lowest, numbers.front()));
    return numbers;
  }

  GeneralisationPlan plan_without_data() const {
    GeneralisationPlan plan;
    if (std::find(kSizeNames.begin(), kSizeNames.end(), size_) == kSizeNames.end())
      throw InvalidArgument("--size " + must_be_one_of(size_, kSizeNames));
    const bool small = size_ == "small";
    if (small) plan.sizes = GeneralisationSizes::small();
    const auto take = [](const char* flag, const std::optional<std::string>& text, std::int64_t lowest,
                         std::vector<std::int64_t>& sizes) {
      if (text) sizes = integers(flag, *text, lowest);
    };
    take("--lengths", lengths_, 2, plan.sizes.lengths);
    take("--queries", queries_, 2, plan.sizes.queries);
    take("--online-queries", online_, 2, plan.sizes.online);
    take("--widths", widths_, 10, plan.sizes.widths);
    if (held_out_) plan.sizes.held_out = *held_out_;
    plan.seeds = integers("--seeds", seeds_.value_or(small ? "1-3" : "1-20"), 0);
    if (!data_.empty()) plan.experiments = "ABCDEF";
    if (!experiments_.empty()) {
      plan.experiments.clear();
      for (const std::string& name : experiments_) {
        if (std::find(kExperimentNames.begin(), kExperimentNames.end(), name) == kExperimentNames.end())
          throw InvalidArgument("--experiments " + must_be_one_of(name, kExperimentNames));
        if (plan.experiments.find(name) == std::string::npos) plan.experiments += name;
      }
      std::sort(plan.experiments.begin(), plan.experiments.end());
    }
    if (plan.experiments.find('F') != std::string::npos && data_.empty())
      throw InvalidArgument("Experiment F ranks real lists: name a folder of five folds with --data.");
    return plan;
  }

  void settle_existing(const ExperimentRequest& request, const CellStore& store,
                       const std::vector<GeneralisationCell>& cells) const {
    if (request.existing == Existing::kReplace) return store.clear();
    if (request.existing == Existing::kResume) {
      for (const GeneralisationCell& cell : cells) {
        if (store.has(cell)) store.read(cell);  // refuses other sizes
      }
      return;
    }
    // The shards of a run start into a folder that others have begun.
    if (request.shard.count > 1 || !store.has_any()) return;
    throw InvalidArgument(
        fmt::format("'{}' already contains cells: continue with --resume, replace them with --force, or "
                    "choose another --out.",
                    out_));
  }

  std::vector<GeneralisationCell> cells_to_run(const std::vector<GeneralisationCell>& cells,
                                               const CellStore& store, const Shard& shard) const {
    std::vector<GeneralisationCell> mine;
    for (std::size_t place = 0; place < cells.size(); ++place) {
      if (static_cast<std::int64_t>(place) % shard.count == shard.index && !store.has(cells[place]))
        mine.push_back(cells[place]);
    }
    log_info("{} to compute, of {} in all.", counted(mine.size(), "cell"), cells.size());
    return mine;
  }

  void report(const GeneralisationPlan& plan, const std::vector<GeneralisationCell>& cells,
              const CellStore& store, const OutputFlags& output) const {
    std::vector<StudiedRow> rows;
    for (const GeneralisationCell& cell : cells) {
      for (CellRow& row : store.read(cell)) rows.push_back({cell.experiment, cell.seed, std::move(row)});
    }
    const GeneralisationFindings findings = find_generalisation(rows);
    const std::string json = dump_json(findings_json(findings, plan), 1) + "\n";
    const fs::path out = out_;
    write_file_atomically(out / "generalisation.json", json);
    write_file_atomically(out / "report.html", findings_page(findings, plan, output.command_line));
    make_folder(out / "figures");
    for (const NamedFigure& figure : findings.figures) {
      write_file_atomically(out / "figures" / (figure.name + ".svg"),
                            standalone_svg(draw(figure.figure), Theme::kLight));
    }
    fmt::print("{}", output.json ? json : findings_text(findings, output.columns()));
    flush_output();
    log_info("Claims: {}, report: {}", (out / "generalisation.json").string(),
             (out / "report.html").string());
  }

  std::vector<std::string> experiments_;
  std::optional<std::string> seeds_;
  std::string size_ = "full";
  std::optional<std::string> lengths_;
  std::optional<std::string> queries_;
  std::optional<std::string> online_;
  std::optional<std::string> widths_;
  std::optional<std::int64_t> held_out_;
  std::vector<std::string> data_;
  std::string out_ = "runs/generalisation";
  int jobs_ = 1;
  ExperimentFlags request_;
};

}  // namespace

std::unique_ptr<Command> make_bench_generalisation_command() {
  return std::make_unique<BenchGeneralisationCommand>();
}

}  // namespace olrank
