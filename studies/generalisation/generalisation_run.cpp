#include "studies/generalisation/generalisation_findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/ops/blas.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
#include "core/text/message_text.h"
#include "core/text/text_table.h"
#include "core/throw_error.h"
#include "jobs/output_folder.h"
#include "report/markup.h"

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
  throw_error<InvalidArgument>(
      "'{}' already contains cells: continue with --resume, replace them with --force, or choose another "
      "--out.",
      out);
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
  write_file_atomically(fs::path(out) / "generalisation.json", json);
  print(form.json ? json : findings_text(findings, static_cast<int>(form.columns)));
  log_info("The claims and the points of the figures are in {}.",
           (fs::path(out) / "generalisation.json").string());
  return 0;
}

namespace {

using nlohmann::ordered_json;

std::string bound_text(const TheoryClaim& claim) {
  return claim.at_most ? fmt::format("≤ {}", fixed_number(*claim.at_most, 3)) : std::string("–");
}

ordered_json points_json(const PlotSeries& line) {
  ordered_json points = ordered_json::array();
  for (const PlotPoint& point : line.points)
    points.push_back(
        {point.x, number_or_null(point.y), number_or_null(point.low), number_or_null(point.high)});
  return {{"line", line.name}, {"points", points}};
}

}  // namespace

ordered_json findings_json(const GeneralisationFindings& findings, const GeneralisationPlan& plan) {
  ordered_json json = {{"experiments", plan.experiments}, {"seeds", plan.seeds},
                       {"sizes", plan.sizes.text()},      {"data", ordered_json::array()},
                       {"claims", ordered_json::array()}, {"figures", ordered_json::array()}};
  for (const RealLists& lists : plan.data) {
    json["data"].push_back({{"name", lists.name},
                            {"queries", lists.queries->queries()},
                            {"of", lists.all_queries},
                            {"longest", lists.longest}});
  }
  for (const TheoryClaim& claim : findings.claims) {
    ordered_json entry = {{"experiment", std::string(1, claim.experiment)},
                          {"subject", claim.subject},
                          {"quantity", claim.quantity},
                          {"mean", claim.estimate.mean},
                          {"half_width_95", number_or_null(claim.estimate.half_width)},
                          {"units", claim.estimate.units}};
    if (claim.at_most) entry["at_most"] = *claim.at_most;
    entry["verdict"] = claim.verdict();
    json["claims"].push_back(std::move(entry));
  }
  for (const NamedFigure& figure : findings.figures) {
    ordered_json entry = {{"name", figure.name},          {"experiment", std::string(1, figure.experiment)},
                          {"title", figure.figure.title}, {"subtitle", figure.figure.subtitle},
                          {"x", figure.figure.x_name},    {"lines", ordered_json::array()}};
    for (const PlotSeries& line : figure.figure.series) entry["lines"].push_back(points_json(line));
    if (!figure.figure.baseline.points.empty())
      entry["lines"].push_back(points_json(figure.figure.baseline));
    json["figures"].push_back(std::move(entry));
  }
  return json;
}

std::string findings_text(const GeneralisationFindings& findings, int columns) {
  TextTable table({{"", false}, {"what", true}, {"figure", true}, {"measured"}, {"theory"}, {"verdict"}});
  for (const TheoryClaim& claim : findings.claims)
    table.add({std::string(1, claim.experiment), claim.subject, claim.quantity,
               estimate_text(claim.estimate, 3), bound_text(claim), claim.verdict()});
  const TextTable::Fitted fitted = table.fitted(columns);
  return fitted.text + hidden_columns_text(fitted.hidden, columns);
}

}  // namespace olrank
