#include "studies/generalisation/generalisation_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/io/json.h"
#include "core/ops/blas.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/log.h"
#include "core/runtime/log_output.h"
#include "core/runtime/progress.h"
#include "core/runtime/stopwatch.h"
#include "core/text/counted.h"
#include "jobs/job_slots.h"
#include "jobs/output_folder.h"
#include "report/drawing.h"
#include "studies/generalisation/cell_store.h"
#include "studies/generalisation/generalisation_findings.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

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

/// Clears the folder, or checks what is in it.
void settle_existing(const std::string& out, const ExperimentRequest& request, const CellStore& store,
                     const std::vector<GeneralisationCell>& cells) {
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
                  out));
}

std::vector<GeneralisationCell> cells_to_run(const std::vector<GeneralisationCell>& cells,
                                             const CellStore& store, const Shard& shard) {
  std::vector<GeneralisationCell> mine;
  for (std::size_t place = 0; place < cells.size(); ++place) {
    if (static_cast<std::int64_t>(place) % shard.count == shard.index && !store.has(cells[place]))
      mine.push_back(cells[place]);
  }
  log_info("{} to compute, of {} in all.", counted(mine.size(), "cell"), cells.size());
  return mine;
}

std::vector<StudiedRow> studied_rows(const std::vector<GeneralisationCell>& cells, const CellStore& store) {
  std::vector<StudiedRow> rows;
  for (const GeneralisationCell& cell : cells) {
    for (CellRow& row : store.read(cell)) rows.push_back({cell.experiment, cell.seed, std::move(row)});
  }
  return rows;
}

void write_findings(const GeneralisationFindings& findings, const GeneralisationPlan& plan,
                    const fs::path& out, const std::string& command, const std::string& json) {
  write_file_atomically(out / "generalisation.json", json);
  write_file_atomically(out / "report.html", findings_page(findings, plan, command));
  make_folder(out / "figures");
  for (const NamedFigure& figure : findings.figures) {
    write_file_atomically(out / "figures" / (figure.name + ".svg"),
                          standalone_svg(draw(figure.figure), Theme::kLight));
  }
}

}  // namespace

int run_generalisation(GeneralisationPlan plan, const GeneralisationRequest& generalisation,
                       const ExperimentRequest& request, const std::string& command, const OutputForm& form,
                       const TextSink& print) {
  const std::string& out = generalisation.out;
  OutputFolder::require_own(out, FolderKind::kGeneralisation);  // before the data is read
  for (const std::string& folder : generalisation.data)
    plan.data.push_back(load_real_lists(folder, plan.sizes));
  const std::vector<GeneralisationCell> cells = plan_cells(plan);
  const OutputFolder folder(out, FolderKind::kGeneralisation, request.shard);
  const CellStore store(out);
  settle_existing(out, request, store, cells);
  folder.write_manifest({{"experiments", plan.experiments},
                         {"seeds", plan.seeds},
                         {"sizes", plan.sizes.text()},
                         {"data", generalisation.data},
                         {"blas", blas::library_name()}},
                        command);

  const InterruptGuard guard;
  run_cells(cells_to_run(cells, store, request.shard), store, generalisation.jobs);
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
  const GeneralisationFindings findings = find_generalisation(studied_rows(cells, store));
  const std::string json = dump_json(findings_json(findings, plan), 1) + "\n";
  write_findings(findings, plan, out, command, json);
  print(form.json ? json : findings_text(findings, static_cast<int>(form.columns)));
  log_info("Claims: {}, report: {}", (fs::path(out) / "generalisation.json").string(),
           (fs::path(out) / "report.html").string());
  return 0;
}

}  // namespace olrank
