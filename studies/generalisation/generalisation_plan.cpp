#include "studies/generalisation/generalisation_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <utility>

#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/ops/blas.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "jobs/output_folder.h"
#include "report/markup.h"
#include "studies/generalisation/generalisation_findings.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// Changes whenever cells of equal settings get other numbers.
constexpr int kCellFormat = 3;

double sum_of_sizes(const std::vector<std::int64_t>& sizes) {
  return static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
}

class CellPlanner {
 public:
  explicit CellPlanner(const GeneralisationPlan& plan) : plan_(plan), sizes_(plan.sizes) {}

  std::vector<WorkCell> plan() {
    for (const char experiment : plan_.experiments) {
      switch (experiment) {
        case 'A':
          plan_lengths();
          break;
        case 'B':
          for (const std::int64_t docs : sizes_.lengths)
            add('B', fmt::format("m{}", docs), 0.02 * static_cast<double>(docs),
                [sizes = sizes_, docs](std::int64_t seed) { return slope_rows(sizes, docs, seed); });
          break;
        case 'C':
          for (const std::string loss : {"listnet", "ranknet-mean"})
            add('C', loss, 2e-4 * sum_of_sizes(sizes_.online),
                [sizes = sizes_, loss](std::int64_t seed) { return excess_risk_rows(sizes, loss, seed); });
          break;
        case 'D':
          for (const std::int64_t features : sizes_.widths)
            add('D', fmt::format("d{}", features), 2e-3 * static_cast<double>(features),
                [sizes = sizes_, features](std::int64_t seed) {
                  return sparse_rows(sizes, features, seed);
                });
          break;
        case 'E':
          for (const auto& [name, noise] : {std::pair{"quiet", 0.0}, {"noisy", 0.3}})
            add('E', name, 1e-4 * sum_of_sizes(sizes_.online),
                [sizes = sizes_, share = noise](std::int64_t seed) {
                  return optimistic_rows(sizes, share, seed);
                });
          break;
        default:
          plan_rankings();
          break;
      }
    }
    return std::move(cells_);
  }

 private:
  using Rows = std::function<std::vector<CellRow>(std::int64_t seed)>;

  void add(char experiment, const std::string& setting, double cost, const Rows& rows,
           const std::string& data = "none") {
    for (const std::int64_t seed : plan_.seeds) add_one(experiment, setting, seed, cost, rows, data);
  }
  void add_one(char experiment, const std::string& setting, std::int64_t seed, double cost,
               const Rows& rows, const std::string& data) {
    const std::string recipe = fmt::format("format {}; {}; data {}", kCellFormat, sizes_.text(), data);
    const auto compute = [=] { return cell_json(experiment, setting, seed, recipe, rows(seed)); };
    cells_.push_back({fmt::format("{}-{}-seed{}", experiment, setting, seed), recipe, cost, compute});
  }

  void plan_lengths() {
    for (const std::string noise : {"query", "document"}) {
      for (const std::int64_t docs : sizes_.lengths) {
        add('A', fmt::format("{}-m{}", noise, docs), 0.02 * static_cast<double>(docs) + 0.5,
            [sizes = sizes_, docs, noise](std::int64_t seed) {
              return list_length_rows(sizes, docs, noise, seed);
            });
      }
    }
    for (const RealLists& lists : plan_.data) {
      add(
          'A', "real-" + lists.name, 1.0,
          [sizes = sizes_, lists](std::int64_t seed) { return real_list_rows(sizes, lists, seed); },
          lists.fingerprint);
    }
  }

  /// Folds in place of seeds: nothing is drawn.
  void plan_rankings() {
    for (const RealLists& lists : plan_.data) {
      if (lists.folds < 2) continue;
      for (const std::string loss : {"listnet", "ranksvm-mean", "ranknet-mean"}) {
        for (std::int64_t fold = 1; fold <= lists.folds; ++fold) {
          add_one(
              'F', fmt::format("{}-{}-fold{}", lists.name, loss, fold), 0, 4.0,
              [lists, loss, fold](std::int64_t) { return ranking_rows(lists, loss, fold); },
              lists.fingerprint);
        }
      }
    }
  }

  const GeneralisationPlan& plan_;
  const GeneralisationSizes& sizes_;
  std::vector<WorkCell> cells_;
};

}  // namespace

GeneralisationSizes GeneralisationSizes::small() {
  GeneralisationSizes sizes;
  sizes.lengths = {5, 20, 50};
  sizes.queries = {50, 200};
  sizes.held_out_docs = 20000;
  sizes.slope_queries = 50;
  sizes.online = {50, 200, 800};
  sizes.population = 1000;
  sizes.widths = {46, 500};
  sizes.sparse_queries = 50;
  return sizes;
}

std::string GeneralisationSizes::text() const {
  return fmt::format(
      "m {}; n {}; held out {} queries, {} documents; n m² of pairs {}; d {}; slopes {}; online n {}; "
      "population {}; d of balls {}, n {}; real m {}",
      fmt::join(lengths, ","), fmt::join(queries, ","), held_out, held_out_docs, most_pair_work, features,
      slope_queries, fmt::join(online, ","), population, fmt::join(widths, ","), sparse_queries,
      fmt::join(real_lengths, ","));
}

ordered_json cell_json(char experiment, const std::string& setting, std::int64_t seed,
                       const std::string& recipe, const std::vector<CellRow>& rows) {
  ordered_json json = {{"experiment", std::string(1, experiment)},
                       {"setting", setting},
                       {"seed", seed},
                       {"recipe", recipe},
                       {"rows", ordered_json::array()}};
  for (const CellRow& row : rows) {
    ordered_json entry = ordered_json::object();
    for (const auto& [name, text] : row.labels) entry[name] = text;
    for (const auto& [name, value] : row.values) entry[name] = number_or_null(value);
    json["rows"].push_back(std::move(entry));
  }
  return json;
}

std::vector<CellRow> rows_of(const ordered_json& cell) {
  std::vector<CellRow> rows;
  for (const auto& entry : cell.at("rows")) {
    CellRow& row = rows.emplace_back();
    for (const auto& [name, value] : entry.items()) {
      if (value.is_string()) {
        row.labels[name] = value.get<std::string>();
      } else {
        row.values[name] = value.is_number() ? value.get<double>() : std::nan("");
      }
    }
  }
  return rows;
}

std::vector<WorkCell> plan_cells(const GeneralisationPlan& plan) {
  return CellPlanner(plan).plan();
}

namespace {

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
    const ordered_json json = store.read(cell);
    for (CellRow& row : rows_of(json)) {
      rows.push_back({json.at("experiment").get<std::string>().at(0), json.at("seed").get<std::int64_t>(),
                      std::move(row)});
    }
  }
  return rows;
}

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

/// Claims and the points of figures; nothing about time or machine.
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

}  // namespace olrank
