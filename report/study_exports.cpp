#include "report/study_exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/io/json.h"
#include "core/text/columns.h"
#include "core/text/csv.h"
#include "core/text/text_table.h"
#include "core/version.h"
#include "report/markup.h"
#include "report/study_findings.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

ordered_json optional_number(const std::optional<double>& value) {
  return value ? number_or_null(*value) : ordered_json(nullptr);
}

ordered_json estimate_json(const MeanInterval& estimate) {
  return {{"mean", number_or_null(estimate.mean)},
          {"low", number_or_null(estimate.mean - estimate.half_width)},
          {"high", number_or_null(estimate.mean + estimate.half_width)},
          {"trials", estimate.values},
          {"units", estimate.units}};
}

ordered_json cell_json(const StudyCell& cell) {
  return {{"ranker", cell.ranker},
          {"structure", cell.structure},
          {"width", cell.width},
          {"depth", cell.depth},
          {"noise_variance", optional_number(cell.noise_variance)},
          {"alpha", optional_number(cell.alpha)},
          {"budget", cell.budget ? ordered_json(*cell.budget) : ordered_json(nullptr)}};
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
  ordered_json json = estimate_json(value.estimate);
  if (!value.compared) return json;
  const PairedTest& test = value.difference;
  ordered_json against = estimate_json(test.difference);
  against["t_p"] = number_or_null(test.t_p);
  against["t_p_holm"] = number_or_null(value.t_holm);
  against["sign_flip_p"] = number_or_null(test.flip_p);
  against["bootstrap"] = {number_or_null(value.bootstrap.low), number_or_null(value.bootstrap.high)};
  against["bootstrap_over"] = value.over_queries ? "folds, seeds, queries" : "folds, seeds";
  json["minus_full"] = std::move(against);
  return json;
}

ordered_json row_json(const Study& study, const StudyRow& row) {
  ordered_json json = {{"ranker", study.plan.cells[row.cell].ranker},
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

std::string csv_estimate(const MeanInterval& estimate) {
  return fmt::format("{},{},{},{}", csv_number(estimate.mean),
                     csv_number(estimate.mean - estimate.half_width),
                     csv_number(estimate.mean + estimate.half_width), estimate.units);
}

std::string mean_text(const StudyValue* value, int digits) {
  if (value == nullptr || !std::isfinite(value->estimate.mean)) return "–";
  return fmt::format("{:.{}f}", value->estimate.mean, digits);
}

/// "−0.0021 ± 0.0017", with a star if significant after Holm's correction.
std::string difference_text(const StudyValue* value, int digits) {
  if (value == nullptr || !value->compared) return "–";
  const MeanInterval& difference = value->difference.difference;
  std::string text = fmt::format("{:+.{}f}", difference.mean, digits);
  if (std::isfinite(difference.half_width))
    text += fmt::format(" ± {:.{}f}", difference.half_width, digits);
  return text + (value->t_holm < kSignificance ? "*" : "");
}

std::string scope_text(const Study& study, const StudyUser& user) {
  std::size_t units = 0;
  bool over_folds = false;
  for (const StudyRow& row : user.rows) {
    units = std::max(units, row.values.front().estimate.units);
    over_folds = over_folds || row.values.front().estimate.over_folds;
  }
  if (units < 2) return "no intervals, because there is only one seed";
  return over_folds
             ? fmt::format("95 % t intervals over {} fold means", units)
             : fmt::format("95 % t intervals over {} seeds of fold {}, which hold for this fold only",
                           units, study.run.folds.front());
}

/// The table's lines, and below them what they leave out.
std::string fitted_text(const TextTable& table, std::int64_t columns) {
  const TextTable::Fitted fitted = table.fitted(columns);
  return fitted.text + hidden_columns_text(fitted.hidden, columns);
}

std::string quality_table(const Study& study, const StudyUser& user, std::int64_t columns) {
  const std::string ndcg = fmt::format("ndcg@{}", study.cutoff);
  TextTable table({{.header = "ranker", .is_name = true},
                   {.header = "α", .dropped = 2},
                   {.header = "offline " + ndcg, .dropped = 6},
                   {.header = "offline − full"},
                   {.header = "online c" + ndcg, .dropped = 5},
                   {.header = "online − full"},
                   {.header = "regret − full", .dropped = 1},
                   {.header = "certain"},
                   {.header = "false", .dropped = 4},
                   {.header = "false − full", .dropped = 3}});
  for (const StudyRow& row : user.rows) {
    const StudyCell& cell = study.plan.cells[row.cell];
    const auto value = [&](const char* slug) { return study.value(row, slug); };
    table.add({cell.ranker, cell.alpha ? fmt::format("{:.4g}", *cell.alpha) : "–",
               mean_text(value("offline-ndcg"), 4), difference_text(value("offline-ndcg"), 4),
               mean_text(value("online-cndcg"), 1), difference_text(value("online-cndcg"), 1),
               difference_text(value("regret"), 0), mean_text(value("certain-share"), 3),
               mean_text(value("false-certain"), 4), difference_text(value("false-certain"), 4)});
  }
  return fitted_text(table, columns);
}

/// The evaluated rounds among 10, 100, 1,000, …, and the last one.
std::vector<StudyWidths> printed_widths(const std::vector<StudyWidths>& widths) {
  std::vector<StudyWidths> printed;
  std::int64_t power = 10;
  for (const StudyWidths& at : widths) {
    while (power < at.round) power *= 10;
    if (at.round == power || &at == &widths.back()) printed.push_back(at);
  }
  return printed;
}

std::string cost_table(const Study& study, const StudyUser& user, std::int64_t columns) {
  TextTable table({{.header = "ranker", .is_name = true},
                   {.header = "parameters", .dropped = 3},
                   {.header = "ms per round"},
                   {.header = "posterior MB"},
                   {.header = "decisions differ", .dropped = 2},
                   {.header = "width / exact width: p10, median, p90", .dropped = 1}});
  for (const StudyRow& row : user.rows) {
    std::string widths;
    for (const StudyWidths& at : printed_widths(row.widths)) {
      widths += fmt::format("{}t={}: {:.2f} {:.2f} {:.2f}", widths.empty() ? "" : "; ", at.round, at.low,
                            at.median, at.high);
    }
    const StudyValue* bytes = study.value(row, "posterior-bytes");
    const bool known = bytes != nullptr && std::isfinite(bytes->estimate.mean);
    table.add({study.plan.cells[row.cell].ranker, fmt::format("{}", row.parameters),
               mean_text(study.value(row, "milliseconds"), 3),
               known ? fmt::format("{:.2f}", bytes->estimate.mean / 1e6) : "–",
               mean_text(study.value(row, "decisions-differ"), 4), widths.empty() ? "–" : widths});
  }
  return fitted_text(table, columns);
}

}  // namespace

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
      "difference_low,difference_high,pairs,t_p,t_p_holm,sign_flip_p,bootstrap_low,bootstrap_high\n";
  for (const StudyUser& user : study.users) {
    for (const StudyRow& row : user.rows) {
      const StudyCell& cell = study.plan.cells[row.cell];
      const std::string place =
          fmt::format("{},{},{},{},{},{},{},{}", csv_field(clean_utf8(study.run.data)),
                      csv_field(clean_utf8(user.user)), cell.ranker, cell.structure, cell.width, cell.depth,
                      cell.noise_variance ? csv_number(*cell.noise_variance) : "",
                      cell.alpha ? csv_number(*cell.alpha) : "");
      for (std::size_t i = 0; i < study.measures.size(); ++i) {
        const StudyValue& value = row.values[i];
        if (!std::isfinite(value.estimate.mean)) continue;
        csv += fmt::format("{},{},{}", place, study.measures[i].slug, csv_estimate(value.estimate));
        if (value.compared) {
          csv += fmt::format(",{},{},{},{},{},{}\n", csv_estimate(value.difference.difference),
                             csv_number(value.difference.t_p), csv_number(value.t_holm),
                             csv_number(value.difference.flip_p), csv_number(value.bootstrap.low),
                             csv_number(value.bootstrap.high));
        } else {
          csv += ",,,,,,,,,\n";
        }
      }
    }
  }
  return csv;
}

std::string study_text(const Study& study, std::int64_t columns) {
  std::string text;
  const auto add = [&](const std::string& line, std::int64_t indent) {
    text += wrapped(std::string(indent, ' ') + line, columns, indent) + "\n";
  };
  for (const StudyUser& user : study.users) {
    if (!text.empty()) text += "\n";
    add(fmt::format("{} user, {} rounds on {}; {}", user.user, study.run.rounds, study.run.data,
                    scope_text(study, user)),
        0);
    const StudyFindings findings = study_findings(study, user);
    add(findings.headline, 0);
    for (const std::string& sentence : findings.sentences) add(sentence, 2);
    text += "\n" + quality_table(study, user, columns) + "\n" + cost_table(study, user, columns);
  }
  if (text.empty()) return "No trial has finished yet.\n";
  text += "\n";
  add("Differences are paired by fold and seed: this ranker minus full of the same width and depth.", 0);
  add("± is half the width of the 95 % t interval of the mean.", 0);
  add("* significant at the 5 % level after Holm's correction over the column.", 0);
  return text;
}

}  // namespace olrank
