#include "studies/generalisation/generalisation_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/io/json.h"
#include "core/ops/blas.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/log.h"
#include "core/text/counted.h"
#include "jobs/output_folder.h"
#include "report/drawing.h"
#include "studies/generalisation/generalisation_findings.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

/// Whether a file of this name may be a cell's: "A-query-m50-seed3.json".
bool is_cell_name(std::string_view name) {
  return name.size() > 2 && name[0] >= 'A' && name[0] <= 'F' && name[1] == '-';
}

/// Clears the folder, or checks what is in it.
void settle_existing(const std::string& out, const ExperimentRequest& request, const WorkCells& store,
                     const std::vector<WorkCell>& cells) {
  if (request.existing == Existing::kReplace) return store.clear();
  if (request.existing == Existing::kResume) {
    for (const WorkCell& cell : cells) {
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

std::vector<StudiedRow> studied_rows(const std::vector<WorkCell>& cells, const WorkCells& store) {
  std::vector<StudiedRow> rows;
  for (const WorkCell& cell : cells) {
    const nlohmann::ordered_json json = store.read(cell);
    for (CellRow& row : rows_of(json)) {
      rows.push_back({json.at("experiment").get<std::string>().at(0), json.at("seed").get<std::int64_t>(),
                      std::move(row)});
    }
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
  const std::vector<WorkCell> cells = plan_cells(plan);
  const OutputFolder folder(out, FolderKind::kGeneralisation, request.shard);
  const WorkCells store(out, {"olrank bench generalisation", "recipe", is_cell_name});
  settle_existing(out, request, store, cells);
  folder.write_manifest({{"experiments", plan.experiments},
                         {"seeds", plan.seeds},
                         {"sizes", plan.sizes.text()},
                         {"data", generalisation.data},
                         {"blas", blas::library_name()}},
                        command);

  const InterruptGuard guard;
  store.compute(cells, request.shard, generalisation.jobs);
  if (InterruptGuard::requested() != 0) {
    log_info("Stopped by a signal; run the same command with --resume to continue.");
    return InterruptGuard::exit_code(InterruptGuard::requested());
  }
  const auto missing =
      std::count_if(cells.begin(), cells.end(), [&](const WorkCell& cell) { return !store.has(cell); });
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
