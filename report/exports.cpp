#include "report/outputs.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/io/json.h"
#include "core/text/text_table.h"
#include "core/version.h"
#include "report/drawing.h"
#include "report/final_tables.h"
#include "report/markup.h"
#include "report/study.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

std::string csv_interval(const MeanInterval& estimate) {
  return fmt::format("{},{},{}", csv_number(estimate.mean), csv_number(estimate.mean - estimate.half_width),
                     csv_number(estimate.mean + estimate.half_width));
}

/// A line of report.csv from `round` on, without what follows the units.
std::string csv_values(const std::string& place, const ReportedRanker& ranker, const std::string& figure,
                       const std::string& round, const MeanInterval& estimate) {
  return fmt::format("{},{},{},{},{},{},{}", place, csv_text(ranker.name), figure, round,
                     csv_interval(estimate), estimate.values, estimate.units);
}

ordered_json json_estimate(const MeanInterval& estimate, bool with_scope = false) {
  ordered_json json = {{"mean", number_or_null(estimate.mean)},
                       {"low", number_or_null(estimate.mean - estimate.half_width)},
                       {"high", number_or_null(estimate.mean + estimate.half_width)},
                       {"trials", estimate.values},
                       {"units", estimate.units}};
  if (with_scope) json["over_folds"] = estimate.over_folds;
  return json;
}

ordered_json json_column(const Report& report, const FinalTable& table, const FinalColumn& column) {
  ordered_json json = {{"figure", column.measure.slug}, {"title", column.measure.title}};
  json["rankers"] = ordered_json::array();
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const FinalCell& cell = column.cells[row];
    ordered_json entry = {{"ranker", report.rankers[table.rows[row]].name}};
    entry.update(json_estimate(cell.estimate, true));
    entry["best"] = cell.best;
    entry["not_significantly_worse"] = cell.not_worse;
    json["rankers"].push_back(std::move(entry));
  }
  json["pairs"] = ordered_json::array();
  for (const PairedComparison& pair : column.pairs) {
    json["pairs"].push_back({{"a", report.rankers[table.rows[pair.a]].name},
                             {"b", report.rankers[table.rows[pair.b]].name},
                             {"difference", json_estimate(pair.test.difference, true)},
                             {"t_p", number_or_null(pair.test.t_p)},
                             {"t_p_holm", number_or_null(pair.t_holm)},
                             {"sign_flip_p", number_or_null(pair.test.flip_p)},
                             {"sign_flip_p_holm", number_or_null(pair.flip_holm)},
                             {"sign_flips", pair.test.flips_exact ? "all" : "drawn"}});
  }
  return json;
}

ordered_json json_curves(const Report& report, const UserResults& user) {
  ordered_json json = ordered_json::array();
  for (const RankerTrials& ranker : user.rankers) {
    for (const auto& [measure, curve] : ranker.curves) {
      ordered_json entry = {{"ranker", report.rankers[ranker.ranker].name}, {"figure", slug_of(measure)}};
      entry["points"] = ordered_json::array();
      for (const RoundEstimate& point : curve) {
        ordered_json at = {{"round", point.round}};
        at.update(json_estimate(point.estimate, true));
        entry["points"].push_back(std::move(at));
      }
      json.push_back(std::move(entry));
    }
  }
  return json;
}

template <class Number>
ordered_json value_or_null(const std::optional<Number>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json cell_json(const StudyCell& cell) {
  return {{"ranker", cell.ranker},
          {"structure", cell.structure},
          {"width", cell.width},
          {"depth", cell.depth},
          {"noise_variance", value_or_null(cell.noise_variance)},
          {"alpha", value_or_null(cell.alpha)},
          {"budget", value_or_null(cell.budget)}};
}

ordered_json calibration_json(const StudyPlan& plan) {
  if (!plan.matched_alpha) return nullptr;
  ordered_json json = {{"rounds", plan.calibration_rounds},
                       {"queries", "of the validation part"},
                       {"rankers", ordered_json::array()}};
  for (const Calibration& calibration : plan.calibrations) {
    ordered_json one = {{"ranker", calibration.ranker},
                        {"target", number_or_null(calibration.target)},
                        {"alpha", calibration.alpha},
                        {"bracketed", calibration.bracketed},
                        {"points", ordered_json::array()}};
    for (const CalibrationPoint& point : calibration.points) {
      one["points"].push_back({{"alpha", point.alpha},
                               {"false_certain", number_or_null(point.false_certain)},
                               {"certain_orders", point.certain_orders}});
    }
    json["rankers"].push_back(std::move(one));
  }
  return json;
}

ordered_json value_json(const StudyValue& value) {
  ordered_json json = json_estimate(value.estimate);
  if (!value.minus_exact) return json;
  const PairedTest& test = value.minus_exact->test;
  ordered_json against = json_estimate(test.difference);
  against["t_p"] = number_or_null(test.t_p);
  against["t_p_holm"] = number_or_null(value.minus_exact->t_holm);
  against["sign_flip_p"] = number_or_null(test.flip_p);
  json["minus_full"] = std::move(against);
  return json;
}

ordered_json row_json(const Study& study, const StudyRow& row) {
  ordered_json json = {{"ranker", study.cell_of(row).ranker},
                       {"trials", row.trials},
                       {"parameters", row.parameters},
                       {"figures", ordered_json::object()}};
  for (std::size_t i = 0; i < study.measures.size(); ++i) {
    if (std::isfinite(row.values[i].estimate.mean))
      json["figures"][study.measures[i].slug] = value_json(row.values[i]);
  }
  json["width_ratios"] = ordered_json::array();
  for (const StudyWidths& widths : row.widths) {
    json["width_ratios"].push_back({{"round", widths.round},
                                    {"median", number_or_null(widths.median)},
                                    {"p10", number_or_null(widths.low)},
                                    {"p90", number_or_null(widths.high)}});
  }
  json["milliseconds_by_stage"] = ordered_json::object();
  for (const auto& [stage, spent] : row.stages) json["milliseconds_by_stage"][stage] = spent;
  return json;
}

}  // namespace

std::string report_csv(const Report& report) {
  std::string csv = "data,clicks,ranker,figure,round,mean,low,high,trials,units,best,not_worse\n";
  for (const auto& [_, data, user, table] : views_of(report)) {
    const std::string place = csv_text(data.data) + "," + csv_text(user.user);
    for (const FinalColumn& column : table.columns) {
      for (std::size_t row = 0; row < table.rows.size(); ++row) {
        const FinalCell& cell = column.cells[row];
        csv += fmt::format(
            "{},{:d},{:d}\n",
            csv_values(place, report.rankers[table.rows[row]], column.measure.slug, "", cell.estimate),
            cell.best, cell.not_worse);
      }
    }
    for (const RankerTrials& ranker : user.rankers) {
      for (const auto& [measure, curve] : ranker.curves) {
        for (const RoundEstimate& point : curve)
          csv += csv_values(place, report.rankers[ranker.ranker], slug_of(measure),
                            std::to_string(point.round), point.estimate) +
                 ",,\n";
      }
    }
  }
  return csv;
}

std::string report_json(const Report& report) {
  ordered_json json = {
      {"confidence", kConfidence}, {"experiments", ordered_json::array()}, {"warnings", report.warnings}};
  for (std::size_t i = 0; i < report.experiments.size(); ++i) {
    const ExperimentResults& experiment = report.experiments[i];
    const ResultConventions about = conventions_of(experiment.run);
    json["experiments"].push_back({{"name", report.labels[i]},
                                   {"finished", experiment.finished},
                                   {"expected", experiment.expected},
                                   {"missing", missing_lines(experiment)},
                                   {"protocol", about.protocol},
                                   {"empty_queries", about.empty_queries},
                                   {"seeds", about.seeds},
                                   {"deviations", about.deviations}});
  }
  json["results"] = ordered_json::array();
  for (const UserView& view : views_of(report)) {
    const auto& [_, data, user, table] = view;
    ordered_json entry = {{"data", data.data}, {"clicks", user.user}, {"note", table_note(table, user)}};
    const Findings findings = findings_of(view);
    entry["headline"] = findings.headline;
    entry["findings"] = findings.sentences;
    const auto baseline = baseline_row(report, table);
    entry["baseline"] =
        baseline ? ordered_json(report.rankers[table.rows[*baseline]].name) : ordered_json();
    entry["final"] = ordered_json::array();
    for (const FinalColumn& column : table.columns)
      entry["final"].push_back(json_column(report, table, column));
    entry["curves"] = json_curves(report, user);
    json["results"].push_back(std::move(entry));
  }
  // Names may contain invalid UTF-8.
  return dump_json(json, 2) + "\n";
}

std::string study_json(const Study& study) {
  ordered_json json = {{"version", version()},
                       {"commit", revision()},
                       {"data", study.run.data},
                       {"folds", study.run.folds},
                       {"seeds", study.run.seeds},
                       {"rounds", study.run.rounds},
                       {"cutoff", study.cutoff},
                       {"confidence", kConfidence},
                       {"trials", {{"finished", study.finished}, {"expected", study.expected}}},
                       {"alpha", study.plan.matched_alpha ? "matched" : "given"},
                       {"calibration", calibration_json(study.plan)},
                       {"rankers", ordered_json::array()},
                       {"users", ordered_json::array()}};
  for (const StudyCell& cell : study.plan.cells) json["rankers"].push_back(cell_json(cell));
  for (const StudyUser& user : study.users) {
    ordered_json of_user = {{"clicks", user.user}, {"results", ordered_json::array()}};
    for (const StudyRow& row : user.rows) of_user["results"].push_back(row_json(study, row));
    json["users"].push_back(std::move(of_user));
  }
  return dump_json(json, 2) + "\n";
}

std::string study_csv(const Study& study) {
  std::string csv =
      "data,clicks,ranker,structure,width,depth,noise_variance,alpha,figure,mean,low,high,units,difference,"
      "difference_low,difference_high,pairs,t_p,t_p_holm,sign_flip_p\n";
  for (const StudyUser& user : study.users) {
    for (const StudyRow& row : user.rows) {
      const StudyCell& cell = study.cell_of(row);
      const std::string place = fmt::format(
          "{},{},{},{},{},{},{},{}", csv_text(study.run.data), csv_text(user.user), cell.ranker,
          cell.structure, cell.width, cell.depth, csv_number(cell.noise_variance), csv_number(cell.alpha));
      for (std::size_t i = 0; i < study.measures.size(); ++i) {
        const StudyValue& value = row.values[i];
        if (!std::isfinite(value.estimate.mean)) continue;
        csv += fmt::format("{},{},{},{}", place, study.measures[i].slug, csv_interval(value.estimate),
                           value.estimate.units);
        if (value.minus_exact) {
          const PairedTest& test = value.minus_exact->test;
          csv += fmt::format(",{},{},{},{},{}\n", csv_interval(test.difference), test.difference.units,
                             csv_number(test.t_p), csv_number(value.minus_exact->t_holm),
                             csv_number(test.flip_p));
        } else {
          csv += ",,,,,,,\n";
        }
      }
    }
  }
  return csv;
}

std::vector<PlacedFigure> placed_figures(const Report& report) {
  std::vector<PlacedFigure> figures;
  const auto add = [&](const std::string& place, ReportFigure figure) {
    std::string name = fmt::format("{}-{}", place, figure.slug);
    figures.push_back({std::move(name), std::move(figure)});
  };
  std::set<std::string> taken;
  for (const UserView& view : views_of(report)) {
    const std::string user = name_slug(view.user.user);
    std::string place = report.data.size() > 1 ? name_slug(view.data.data) + "-" + user : user;
    for (std::size_t number = 2; !taken.insert(place).second; ++number)
      place = fmt::format("{}-{}", user, number);
    for (ReportFigure& figure : figures_of(view)) add(place, std::move(figure));
  }
  for (std::size_t i = 0; i < report.experiments.size(); ++i) {
    const ExperimentResults& results = report.experiments[i];
    if (!results.study) continue;
    const std::string place =
        report.experiments.size() > 1 ? fmt::format("study-{}", name_slug(report.labels[i])) : "study";
    const Study study = analyse_study(results, *results.study);
    for (const StudyUser& user : study.users) {
      for (ReportFigure& figure : study_answers(study, user)) add(place, std::move(figure));
    }
  }
  return figures;
}

std::size_t write_figures(const Report& report, const std::filesystem::path& folder) {
  make_folder(folder);
  const std::vector<PlacedFigure> figures = placed_figures(report);
  for (const auto& [name, figure] : figures) {
    write_file_atomically(folder / (name + ".svg"), standalone_svg(figure.drawing, Theme::kLight));
    write_file_atomically(folder / (name + "-dark.svg"), standalone_svg(figure.drawing, Theme::kDark));
    write_file_atomically(folder / (name + ".csv"), figure.csv);
  }
  return figures.size();
}

}  // namespace olrank
