#include "report/exports.h"

#include <fmt/format.h>

#include <cmath>

#include "core/io/json.h"
#include "core/text/csv.h"
#include "report/final_tables.h"
#include "report/findings.h"
#include "report/markup.h"
#include "report/page.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

std::string csv_estimate(const MeanInterval& estimate) {
  return fmt::format("{},{},{},{},{}", csv_number(estimate.mean),
                     csv_number(estimate.mean - estimate.half_width),
                     csv_number(estimate.mean + estimate.half_width), estimate.values, estimate.units);
}

ordered_json json_estimate(const MeanInterval& estimate) {
  return {{"mean", number_or_null(estimate.mean)},
          {"low", number_or_null(estimate.mean - estimate.half_width)},
          {"high", number_or_null(estimate.mean + estimate.half_width)},
          {"trials", estimate.values},
          {"units", estimate.units},
          {"over_folds", estimate.over_folds}};
}

ordered_json json_column(const Report& report, const FinalTable& table, const FinalColumn& column) {
  ordered_json json = {{"figure", column.measure.slug}, {"title", column.measure.title}};
  json["rankers"] = ordered_json::array();
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const FinalCell& cell = column.cells[row];
    ordered_json entry = {{"ranker", report.rankers[table.rows[row]].name}};
    entry.update(json_estimate(cell.estimate));
    entry["bootstrap"] = {number_or_null(cell.bootstrap.low), number_or_null(cell.bootstrap.high)};
    entry["best"] = cell.best;
    entry["not_significantly_worse"] = cell.not_worse;
    json["rankers"].push_back(std::move(entry));
  }
  json["pairs"] = ordered_json::array();
  for (const RankerPair& pair : column.pairs) {
    json["pairs"].push_back({{"a", report.rankers[table.rows[pair.a]].name},
                             {"b", report.rankers[table.rows[pair.b]].name},
                             {"difference", json_estimate(pair.test.difference)},
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
        at.update(json_estimate(point.estimate));
        entry["points"].push_back(std::move(at));
      }
      json.push_back(std::move(entry));
    }
  }
  return json;
}

}  // namespace

std::string report_csv(const Report& report) {
  std::string csv = "data,clicks,ranker,figure,round,mean,low,high,trials,units,best,not_worse\n";
  for (const DataResults& data : report.data) {
    for (const UserResults& user : data.users) {
      const std::string place = csv_field(clean_utf8(data.data)) + "," + csv_field(clean_utf8(user.user));
      const FinalTable table = final_table(user, data.cutoff);
      for (const FinalColumn& column : table.columns) {
        for (std::size_t row = 0; row < table.rows.size(); ++row) {
          const FinalCell& cell = column.cells[row];
          csv += fmt::format("{},{},{},,{},{:d},{:d}\n", place,
                             csv_field(clean_utf8(report.rankers[table.rows[row]].name)),
                             column.measure.slug, csv_estimate(cell.estimate), cell.best, cell.not_worse);
        }
      }
      for (const RankerTrials& ranker : user.rankers) {
        for (const auto& [measure, curve] : ranker.curves) {
          for (const RoundEstimate& point : curve) {
            csv += fmt::format("{},{},{},{},{},,\n", place,
                               csv_field(clean_utf8(report.rankers[ranker.ranker].name)), slug_of(measure),
                               point.round, csv_estimate(point.estimate));
          }
        }
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
  for (const DataResults& data : report.data) {
    for (const UserResults& user : data.users) {
      const FinalTable table = final_table(user, data.cutoff);
      ordered_json entry = {{"data", data.data}, {"clicks", user.user}, {"note", table_note(table, user)}};
      const UserFindings findings = findings_of(report, data, user, table);
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
  }
  // Names may contain invalid UTF-8.
  return dump_json(json, 2) + "\n";
}

}  // namespace olrank
