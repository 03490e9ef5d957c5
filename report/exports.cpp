#include "report/exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/io/json.h"
#include "core/text/csv.h"
#include "report/figures.h"
#include "report/final_tables.h"
#include "report/findings.h"
#include "report/markup.h"
#include "report/page.h"
#include "report/study.h"
#include "report/study_figures.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

std::string csv_estimate(const MeanInterval& estimate) {
  return fmt::format("{},{},{},{},{}", csv_number(estimate.mean),
                     csv_number(estimate.mean - estimate.half_width),
                     csv_number(estimate.mean + estimate.half_width), estimate.values, estimate.units);
}

ordered_json json_number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json json_estimate(const MeanInterval& estimate) {
  return {{"mean", json_number(estimate.mean)},
          {"low", json_number(estimate.mean - estimate.half_width)},
          {"high", json_number(estimate.mean + estimate.half_width)},
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
    entry["bootstrap"] = {json_number(cell.bootstrap.low), json_number(cell.bootstrap.high)};
    entry["best"] = cell.best;
    entry["not_significantly_worse"] = cell.not_worse;
    json["rankers"].push_back(std::move(entry));
  }
  json["pairs"] = ordered_json::array();
  for (const RankerPair& pair : column.pairs) {
    json["pairs"].push_back({{"a", report.rankers[table.rows[pair.a]].name},
                             {"b", report.rankers[table.rows[pair.b]].name},
                             {"difference", json_estimate(pair.test.difference)},
                             {"t_p", json_number(pair.test.t_p)},
                             {"t_p_holm", json_number(pair.t_holm)},
                             {"sign_flip_p", json_number(pair.test.flip_p)},
                             {"sign_flip_p_holm", json_number(pair.flip_holm)},
                             {"sign_flips", pair.test.flips_exact ? "all" : "drawn"}});
  }
  return json;
}

ordered_json json_curves(const Report& report, const UserResults& user) {
  ordered_json json = ordered_json::array();
  for (const RankerTrials& ranker : user.rankers) {
    for (std::size_t i = 0; i < kMeasures; ++i) {
      const auto measure = static_cast<Measure>(i);
      const MeanCurve& curve = ranker.curve(measure);
      if (curve.empty()) continue;
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

/// A file name of letters, digits and hyphens.
std::string file_slug(const std::string& text) {
  std::string word;
  for (const char c : text) {
    const bool kept =
        std::isalnum(static_cast<unsigned char>(c)) != 0 && static_cast<unsigned char>(c) < 0x80;
    if (kept) {
      word += c;
    } else if (!word.empty() && word.back() != '-') {
      word += '-';
    }
  }
  while (!word.empty() && word.back() == '-') word.pop_back();
  return word.empty() ? "x" : word.substr(0, 60);
}

void write_figure(const std::filesystem::path& folder, const std::string& place,
                  const ReportFigure& figure) {
  write_file_atomically(folder / fmt::format("{}-{}.svg", place, figure.slug),
                        standalone_svg(figure.drawing));
  write_file_atomically(folder / fmt::format("{}-{}.csv", place, figure.slug), figure.csv);
}

constexpr Measure kLatexMeasures[] = {Measure::kOfflineNdcg, Measure::kDiscountedNdcg};

std::string latex_cell(const FinalTable& table, std::size_t ranker, Measure measure) {
  const auto row = static_cast<std::size_t>(std::find(table.rows.begin(), table.rows.end(), ranker) -
                                            table.rows.begin());
  for (const FinalColumn& column : table.columns) {
    if (column.measure.slug != slug_of(measure) || row == table.rows.size()) continue;
    const FinalCell& cell = column.cells[row];
    if (std::isnan(cell.estimate.mean)) return "--";
    std::string text = fmt::format("{:.{}f}", cell.estimate.mean, column.measure.digits);
    if (cell.best) text = fmt::format("\\mathbf{{{}}}", text);
    if (cell.not_worse) text = fmt::format("\\underline{{{}}}", text);
    if (std::isfinite(cell.estimate.half_width))
      text += fmt::format(" \\pm {:.{}f}", cell.estimate.half_width, column.measure.digits);
    return "$" + text + "$";
  }
  return "--";
}

/// The distinct users of all data sets.
std::vector<std::string> users_of(const Report& report) {
  std::vector<std::string> users;
  for (const DataResults& data : report.data) {
    for (const UserResults& user : data.users) {
      if (std::find(users.begin(), users.end(), user.user) == users.end()) users.push_back(user.user);
    }
  }
  return users;
}

class LatexTable {
 public:
  explicit LatexTable(const Report& report) : report_(report), users_(users_of(report)) {}

  std::string write() {
    text_ = "% Needs \\usepackage{booktabs}.\n\\begin{table}\n\\centering\n";
    heading();
    for (const DataResults& data : report_.data) block(data);
    text_ += "\\bottomrule\n\\end{tabular}\n";
    text_ += fmt::format(
        "\\caption{{Mean offline and discounted online NDCG with half-widths of 95\\,\\% t intervals. The "
        "best value is bold; values not significantly worse are underlined (paired t test, Holm's "
        "correction over all pairs of rankers, level 5\\,\\%).{}{}}}\n\\end{{table}}\n",
        notes_, conventions());
    return std::move(text_);
  }

 private:
  void heading() {
    text_ += fmt::format("\\begin{{tabular}}{{l{}}}\n\\toprule\n", std::string(2 * users_.size(), 'r'));
    std::string rules;
    for (std::size_t i = 0; i < users_.size(); ++i) {
      text_ += fmt::format(" & \\multicolumn{{2}}{{c}}{{{}}}", escape_latex(users_[i]));
      rules += fmt::format("\\cmidrule(lr){{{}-{}}}", 2 + 2 * i, 3 + 2 * i);
    }
    text_ += " \\\\\n" + rules + "\nranker";
    for (std::size_t i = 0; i < users_.size(); ++i) text_ += " & offline & online";
    text_ += " \\\\\n";
  }

  std::string conventions() const {
    std::string text;
    for (std::size_t i = 0; i < report_.experiments.size(); ++i) {
      const std::string name = report_.experiments.size() > 1 ? report_.labels[i] : "Conventions";
      text += fmt::format(" {}: {}.", escape_latex(name),
                          escape_latex(conventions_text(conventions_of(report_.experiments[i].run))));
    }
    return text;
  }

  void block(const DataResults& data) {
    text_ += fmt::format("\\midrule\n\\multicolumn{{{}}}{{l}}{{\\emph{{{}}}, NDCG@{}}} \\\\\n",
                         1 + 2 * users_.size(), escape_latex(data.data), data.cutoff);
    std::vector<const UserResults*> users;
    std::vector<FinalTable> tables;
    std::set<std::size_t> rankers;
    for (const std::string& name : users_) {
      const auto found = std::find_if(data.users.begin(), data.users.end(),
                                      [&](const UserResults& user) { return user.user == name; });
      users.push_back(found == data.users.end() ? nullptr : &*found);
      tables.push_back(found == data.users.end() ? FinalTable{} : final_table(*found, data.cutoff));
      rankers.insert(tables.back().rows.begin(), tables.back().rows.end());
      if (users.back() != nullptr && notes_.empty() && !tables.back().columns.empty()) {
        notes_ = fmt::format(" Intervals are over {} {}.", tables.back().most_units,
                             tables.back().over_folds ? "fold means" : "seeds of one fold");
      }
    }
    for (const std::size_t ranker : rankers) {
      text_ += escape_latex(report_.rankers[ranker].name);
      for (const FinalTable& table : tables) {
        for (const Measure measure : kLatexMeasures) text_ += " & " + latex_cell(table, ranker, measure);
      }
      text_ += " \\\\\n";
    }
  }

  const Report& report_;
  std::vector<std::string> users_;
  std::string notes_;
  std::string text_;
};

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
        for (std::size_t i = 0; i < kMeasures; ++i) {
          const auto measure = static_cast<Measure>(i);
          for (const RoundEstimate& point : ranker.curve(measure)) {
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

std::string report_latex(const Report& report) {
  return LatexTable(report).write();
}

std::size_t write_figures(const Report& report, const std::filesystem::path& folder) {
  make_folder(folder);
  std::set<std::string> taken;
  std::size_t written = 0;
  for (const DataResults& data : report.data) {
    for (const UserResults& user : data.users) {
      const FinalTable table = final_table(user, data.cutoff);
      std::string place = file_slug(user.user);
      if (report.data.size() > 1) place = fmt::format("{}-{}", file_slug(data.data), place);
      for (std::size_t number = 2; !taken.insert(place).second; ++number)
        place = fmt::format("{}-{}", file_slug(user.user), number);
      for (const ReportFigure& figure : figures_of(report, data, user, table)) {
        write_figure(folder, place, figure);
        ++written;
      }
    }
  }
  for (std::size_t i = 0; i < report.experiments.size(); ++i) {
    const ExperimentResults& results = report.experiments[i];
    if (!results.study) continue;
    const std::string place =
        report.experiments.size() > 1 ? fmt::format("study-{}", file_slug(report.labels[i])) : "study";
    for (const ReportFigure& figure : study_figures(analyse_study(results, *results.study))) {
      write_figure(folder, place, figure);
      ++written;
    }
  }
  return written;
}

}  // namespace olrank
