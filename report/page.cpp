#include "report/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>

#include "core/version.h"
#include "report/figures.h"
#include "report/final_tables.h"
#include "report/markup.h"
#include "report/page_style.h"
#include "report/study.h"
#include "report/study_figures.h"
#include "report/ticks.h"

namespace olrank {
namespace {

/// Pairs of more rankers than this are listed only where they hold the best one.
constexpr std::size_t kMostListedPairs = 66;

std::string number(double value, int digits) {
  if (digits == 0) return std::isfinite(value) ? short_number(std::round(value)) : "–";
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : "–";
}

std::string p_text(double p) {
  if (std::isnan(p)) return "–";
  return p < 0.0001 ? "&lt; 0.0001" : fmt::format("{:.4f}", p);
}

/// "3 to 5, 8": numbers in ascending order, runs joined.
std::string runs_text(const std::vector<std::int64_t>& numbers) {
  std::vector<std::string> runs;
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    runs.push_back(end - begin > 1 ? fmt::format("{} to {}", numbers[begin], numbers[end - 1])
                                   : fmt::format("{}", numbers[begin]));
    begin = end;
  }
  return fmt::format("{}", fmt::join(runs, ", "));
}

class Page {
 public:
  explicit Page(const Report& report) : report_(report) {}

  std::string write() {
    const std::string title = escape_html(fmt::format("{}", fmt::join(report_.labels, " and ")));
    html_ =
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    html_ += fmt::format("<title>{} – olrank report</title>\n<style>{}</style></head>\n<body>\n", title,
                         page_style());
    html_ += fmt::format("<header><p class=\"soft\">olrank report</p><h1>{}</h1>\n", title);
    progress();
    html_ += "</header>\n<main>\n";
    warnings();
    for (const DataResults& data : report_.data) {
      for (const UserResults& user : data.users) user_section(data, user);
    }
    for (std::size_t i = 0; i < report_.experiments.size(); ++i) study(i);
    missing();
    what_was_run();
    how_to_read();
    html_ += fmt::format(
        "</main>\n<footer class=\"note\"><p>Written by olrank {} ({}).</p></footer>\n</body></html>\n",
        version(), revision());
    return std::move(html_);
  }

 private:
  void progress() {
    for (std::size_t i = 0; i < report_.experiments.size(); ++i) {
      const ExperimentResults& experiment = report_.experiments[i];
      const std::string whose = report_.experiments.size() > 1 ? report_.labels[i] + ": " : "";
      html_ += fmt::format("<p>{}{} of {} trials finished · {} · protocol {}.</p>\n", escape_html(whose),
                           experiment.finished, experiment.expected, escape_html(experiment.run.data),
                           escape_html(setting(experiment.run, "protocol.name")));
    }
  }

  static std::string setting(const RunDescription& run, const std::string& key) {
    for (const auto& [name, value] : run.settings) {
      if (name == key) return value;
    }
    return "unknown";
  }

  void warnings() {
    if (report_.warnings.empty()) return;
    html_ += "<section class=\"warn\" aria-label=\"Warnings\"><strong>Warnings</strong>";
    list(report_.warnings);
    html_ += "</section>\n";
  }

  void list(const std::vector<std::string>& sentences) {
    html_ += "<ul class=\"notes\">";
    for (const std::string& sentence : sentences) html_ += "<li>" + escape_html(sentence) + "</li>";
    html_ += "</ul>\n";
  }

  void user_section(const DataResults& data, const UserResults& user) {
    html_ += fmt::format("<section><h2>{} user <span class=\"soft\">on {}</span></h2>\n",
                         escape_html(user.user), escape_html(data.data));
    if (user.rankers.empty()) {
      html_ += "<p>No trial with this user has begun.</p></section>\n";
      return;
    }
    legend(user);
    const FinalTable table = final_table(user, data.cutoff);
    final_values(table, user);
    curves(data, user, table);
    html_ += "</section>\n";
  }

  void legend(const UserResults& user) {
    html_ += "<ul class=\"legend\">";
    for (const RankerTrials* trials : shown_rankers(user)) {
      const ReportedRanker& ranker = report_.rankers[trials->ranker];
      html_ += fmt::format("<li>{}{}", style_key(trials->ranker), escape_html(ranker.name));
      if (const std::string besides = ranker.besides_name(); !besides.empty())
        html_ += fmt::format(" <span class=\"soft\">{}</span>", escape_html(besides));
      html_ += "</li>";
    }
    html_ += "</ul>\n";
  }

  void begin_table(const std::string& label) {
    html_ += fmt::format(
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table><thead><tr>",
        escape_html(label));
  }

  void heading(const std::vector<std::string>& columns) {
    for (const std::string& column : columns)
      html_ += fmt::format("<th scope=\"col\">{}</th>", escape_html(column));
    html_ += "</tr></thead><tbody>\n";
  }

  static std::vector<std::string> figure_titles(const FinalTable& table, std::vector<std::string> before) {
    for (const FinalColumn& column : table.columns) before.push_back(column.figure.title);
    return before;
  }

  void final_values(const FinalTable& table, const UserResults& user) {
    html_ += "<h3>Final values</h3>\n";
    if (!table.columns.empty()) {
      begin_table("Final values, " + user.user + " user");
      heading(figure_titles(table, {"ranker", "trials"}));
      for (std::size_t row = 0; row < table.rows.size(); ++row) final_row(table, row);
      html_ += "</tbody></table></div>\n";
    }
    html_ += fmt::format("<p class=\"note\">{}</p>\n", escape_html(table_note(table, user)));
    if (table.tested) pairs(table, user);
    if (table.most_units > 1) bootstrap(table, user);
  }

  void final_row(const FinalTable& table, std::size_t row) {
    html_ += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td>", escape_html(name_of(table.rows[row])),
                         table.finished[row]);
    for (const FinalColumn& column : table.columns) {
      const FinalCell& cell = column.cells[row];
      const int digits = column.figure.digits;
      html_ +=
          fmt::format("<td{}>{}", cell.best ? " class=\"best\"" : "", number(cell.estimate.mean, digits));
      if (std::isfinite(cell.estimate.half_width))
        html_ += fmt::format(" <span class=\"half\">± {}</span>", number(cell.estimate.half_width, digits));
      html_ += fmt::format("<span class=\"near\">{}</span>", cell.not_worse ? "≈" : "");
      html_ += "</td>";
    }
    html_ += "</tr>\n";
  }

  const std::string& name_of(std::size_t ranker) const { return report_.rankers[ranker].name; }

  void pairs(const FinalTable& table, const UserResults& user) {
    html_ += "<details><summary>Every pair of rankers</summary>\n";
    begin_table("Pairs of rankers, " + user.user + " user");
    heading({"figure", "pair", "n", "difference", "t test p", "with Holm", "sign-flip p", "with Holm"});
    bool left_out = false;
    for (const FinalColumn& column : table.columns) {
      for (const RankerPair& pair : column.pairs) {
        const bool of_best = column.cells[pair.a].best || column.cells[pair.b].best;
        if (column.pairs.size() > kMostListedPairs && !of_best) {
          left_out = true;
          continue;
        }
        pair_row(table, column, pair);
      }
    }
    html_ += "</tbody></table></div>\n";
    if (left_out)
      html_ +=
          "<p class=\"note\">Pairs without a best ranker are not listed; the correction counts them.</p>\n";
    html_ += "</details>\n";
  }

  void pair_row(const FinalTable& table, const FinalColumn& column, const RankerPair& pair) {
    const int digits = column.figure.digits;
    const MeanInterval& difference = pair.test.difference;
    html_ += fmt::format("<tr><td>{}</td><td class=\"text\">{} − {}</td><td>{}</td><td>{}",
                         escape_html(column.figure.title), escape_html(name_of(table.rows[pair.a])),
                         escape_html(name_of(table.rows[pair.b])), difference.units,
                         number(difference.mean, digits));
    if (std::isfinite(difference.half_width))
      html_ += fmt::format(" <span class=\"half\">± {}</span>", number(difference.half_width, digits));
    html_ += fmt::format("</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", p_text(pair.test.t_p),
                         p_text(pair.t_holm), p_text(pair.test.flip_p), p_text(pair.flip_holm));
  }

  void bootstrap(const FinalTable& table, const UserResults& user) {
    html_ += "<details><summary>Spread by hierarchical bootstrap</summary>\n";
    begin_table("Bootstrap intervals, " + user.user + " user");
    heading(figure_titles(table, {"ranker"}));
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      html_ += fmt::format("<tr><th scope=\"row\">{}</th>", escape_html(name_of(table.rows[row])));
      for (const FinalColumn& column : table.columns) {
        const BootstrapInterval& interval = column.cells[row].bootstrap;
        html_ += std::isfinite(interval.low)
                     ? fmt::format("<td>{} to {}</td>", number(interval.low, column.figure.digits),
                                   number(interval.high, column.figure.digits))
                     : std::string("<td>–</td>");
      }
      html_ += "</tr>\n";
    }
    html_ +=
        "</tbody></table></div>\n<p class=\"note\">Percentiles 2.5 to 97.5 of 1,000 means with folds, "
        "then seeds redrawn. A description, not a test: in simulations with 5 seeds a fold this interval "
        "covers the truth in 84 % of cases with one fold, with 5 folds in 97 % where folds do not differ "
        "and in 89 % where they differ as much as seeds. ";
    html_ += redrawn_queries(table);
    html_ += "</p></details>\n";
  }

  static std::string redrawn_queries(const FinalTable& table) {
    for (const FinalColumn& column : table.columns) {
      if (column.over_queries)
        return escape_html(fmt::format("For {}, the judged queries of each trial are redrawn besides.",
                                       column.figure.title));
    }
    return "Trials have kept no values of queries, so queries are not redrawn.";
  }

  void curves(const DataResults& data, const UserResults& user, const FinalTable& table) {
    html_ += "<h3>Curves and costs</h3>\n";
    html_ += fmt::format("<p class=\"note\">{}</p>\n", band_note(user));
    if (user.rankers.size() > kMostRankers)
      html_ += fmt::format(
          "<p class=\"note\">The key and the figures show the best {} of {} rankers by the offline "
          "figure.</p>\n",
          kMostRankers, user.rankers.size());
    const std::vector<std::string> thinning = thinning_notes(report_, user);
    if (!thinning.empty()) list(thinning);
    figures(figures_of(report_, data, user, table));
  }

  void study(std::size_t experiment) {
    const ExperimentResults& results = report_.experiments[experiment];
    if (!results.study) return;
    html_ += fmt::format("<section><h2>Covariances compared <span class=\"soft\">in {}</span></h2>\n",
                         escape_html(report_.labels[experiment]));
    html_ +=
        "<p class=\"note\">Every structure against full, paired by seeds, stands in study.csv and "
        "study.json.</p>\n";
    figures(study_figures(analyse_study(results, *results.study)));
    html_ += "</section>\n";
  }

  void figures(const std::vector<ReportFigure>& drawn) {
    html_ += "<div class=\"figures\">\n";
    for (const ReportFigure& figure : drawn) {
      html_ += fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n",
                           inline_svg(figure.drawing, fmt::format("f{}", ++figures_)),
                           escape_html(figure.caption));
    }
    html_ += "</div>\n";
  }

  void missing() {
    for (std::size_t i = 0; i < report_.experiments.size(); ++i) {
      const ExperimentResults& experiment = report_.experiments[i];
      if (experiment.finished == experiment.expected) continue;
      html_ += fmt::format(
          "<section><h2>What is missing <span class=\"soft\">in {}</span></h2>\n<p>{} of {} trials have "
          "not finished.</p>\n",
          escape_html(report_.labels[i]), experiment.expected - experiment.finished, experiment.expected);
      list(missing_lines(experiment));
      html_ += "</section>\n";
    }
  }

  void what_was_run() {
    for (std::size_t i = 0; i < report_.experiments.size(); ++i) {
      const RunDescription& run = report_.experiments[i].run;
      html_ += fmt::format("<section><h2>What was run <span class=\"soft\">in {}</span></h2>\n<dl>",
                           escape_html(report_.labels[i]));
      for (const auto& [name, text] : run.facts) {
        const bool code = name == "Command";
        html_ += fmt::format("<dt>{}</dt><dd>{}{}{}</dd>\n", escape_html(name), code ? "<code>" : "",
                             escape_html(text), code ? "</code>" : "");
      }
      html_ += "<dt>Deviations</dt><dd>";
      if (run.deviations.empty()) {
        html_ += "None from the protocol.";
      } else {
        list(run.deviations);
      }
      html_ += "</dd></dl></section>\n";
    }
  }

  void how_to_read() {
    html_ += "<section><h2>How to read this</h2>\n";
    html_ +=
        "<ul class=\"notes\"><li>Intervals are t intervals at 95 %: over the seeds within one fold, and "
        "then they speak of this fold only; over fold means where there are several folds, because trials "
        "of one fold share their data.</li>\n"
        "<li>Rankers of one experiment met the same queries and the same coins, seed by seed. Tests are "
        "paired, and Holm's correction counts all pairs of rankers in a table's column.</li>\n"
        "<li>The area under a curve is its mean height by rounds: a curve is compared, not one lucky "
        "point.</li>\n"
        "<li>Bands that would widen a figure by more than three quarters are cut at its frame.</li>\n"
        "<li>Times are of the machine as it was, with whatever else ran on it; they are not tested.</li>"
        "</ul>";
    html_ += "</section>\n";
  }

  const Report& report_;
  std::string html_;
  int figures_ = 0;
};

}  // namespace

std::vector<std::string> missing_lines(const ExperimentResults& experiment) {
  std::map<std::string, std::vector<std::int64_t>> waiting;
  std::vector<std::string> lines;
  for (const MissingTrial& trial : experiment.missing) {
    const TrialIdentity& identity = trial.identity;
    const std::string place = fmt::format("{}, {}, fold {}", identity.ranker, identity.user, identity.fold);
    if (trial.round < 0) {
      waiting[place].push_back(identity.seed);
    } else {
      lines.push_back(fmt::format("{}: seed {} has come to round {}", place, identity.seed, trial.round));
    }
  }
  for (const auto& [place, seeds] : waiting)
    lines.push_back(
        fmt::format("{}: {} {} not begun", place, seeds.size() == 1 ? "seed" : "seeds", runs_text(seeds)));
  if (lines.empty() && experiment.finished < experiment.expected)
    lines.push_back("The manifest does not tell which ones.");
  return lines;
}

std::string report_page(const Report& report) {
  return Page(report).write();
}

}  // namespace olrank
