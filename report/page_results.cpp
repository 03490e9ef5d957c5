#include "report/page_results.h"

#include <fmt/format.h>

#include <cmath>

#include "report/distinct_labels.h"
#include "report/figure_notes.h"
#include "report/final_tables.h"
#include "report/findings.h"
#include "report/html_table.h"
#include "report/markup.h"
#include "report/number_text.h"

namespace olrank {
namespace {

/// With more pairs than this, only pairs with the best ranker are listed.
constexpr std::size_t kMostListedPairs = 66;

constexpr double kTableFont = 14.0;
constexpr double kWidestName = 200.0;

std::string p_text(double p) {
  if (std::isnan(p)) return "–";
  return p < 0.0001 ? "&lt; 0.0001" : fmt::format("{:.4f}", p);
}

std::string estimate_html(const MeanInterval& estimate, int digits) {
  std::string html = fixed_number(estimate.mean, digits);
  if (std::isfinite(estimate.half_width))
    html += fmt::format(" <span class=\"half\">± {}</span>", fixed_number(estimate.half_width, digits));
  return html;
}

class UserSection {
 public:
  UserSection(const Report& report, const DataResults& data, const UserResults& user)
      : report_(report), data_(data), user_(user), table_(final_table(user, data.cutoff)) {
    std::vector<std::string> names;
    for (std::size_t row = 0; row < table_.rows.size(); ++row) names.push_back(name_of(row));
    short_names_ = distinct_labels(names, kTableFont, kWidestName);
  }

  std::string write(const DrawFigures& draw) {
    const std::string data = short_name(report_, data_);
    html_ = fmt::format(
        "<section><h2>{} user <span class=\"soft\"{}>on {}</span></h2>\n", escape_html(user_.user),
        data == data_.data ? "" : fmt::format(" title=\"{}\"", escape_html(data_.data)), escape_html(data));
    if (user_.rankers.empty()) return html_ + "<p>No trial with this user has started.</p></section>\n";
    const UserFindings findings = findings_of(report_, data_, user_, table_);
    html_ += fmt::format("<p class=\"verdict\">{}</p>\n", escape_html(findings.headline));
    html_ += html_list(findings.sentences);
    final_values();
    curves(draw);
    return html_ + "</section>\n";
  }

 private:
  const std::string& name_of(std::size_t row) const { return report_.rankers[table_.rows[row]].name; }

  std::vector<std::string> column_titles(std::vector<std::string> leading) const {
    for (const FinalColumn& column : table_.columns) leading.push_back(column.measure.title);
    return leading;
  }

  void final_values() {
    html_ += "<h3>Final values</h3>\n";
    if (!table_.columns.empty()) {
      HtmlTable table(fmt::format("Final values, {} user", user_.user),
                      column_titles({"ranker", "trials"}));
      for (std::size_t row = 0; row < table_.rows.size(); ++row)
        table.row(short_names_[row], final_cells(row), name_of(row));
      html_ += table.html();
    }
    html_ += fmt::format("<p class=\"note\">{}</p>\n", escape_html(table_note(table_, user_)));
    if (table_.tested) pairs();
    if (table_.most_units > 1) bootstrap();
  }

  std::vector<std::string> final_cells(std::size_t row) const {
    std::vector<std::string> cells = {fmt::format("{}", table_.finished[row])};
    for (const FinalColumn& column : table_.columns) {
      const FinalCell& cell = column.cells[row];
      std::string text = estimate_html(cell.estimate, column.measure.digits);
      if (cell.best) text = fmt::format("<strong>{}</strong>", text);
      cells.push_back(fmt::format("{}<span class=\"near\">{}</span>", text, cell.not_worse ? "≈" : ""));
    }
    return cells;
  }

  void pairs() {
    HtmlTable table(fmt::format("Pairs of rankers, {} user", user_.user),
                    {"pair", "measure", "n", "difference", "p (t test)", "Holm-adjusted", "p (sign flip)",
                     "Holm-adjusted"});
    bool left_out = false;
    for (const FinalColumn& column : table_.columns) {
      for (const RankerPair& pair : column.pairs) {
        const bool of_best = column.cells[pair.a].best || column.cells[pair.b].best;
        if (column.pairs.size() > kMostListedPairs && !of_best) {
          left_out = true;
          continue;
        }
        const MeanInterval& difference = pair.test.difference;
        table.row(fmt::format("{} − {}", short_names_[pair.a], short_names_[pair.b]),
                  {escape_html(column.measure.title), fmt::format("{}", difference.units),
                   estimate_html(difference, column.measure.digits), p_text(pair.test.t_p),
                   p_text(pair.t_holm), p_text(pair.test.flip_p), p_text(pair.flip_holm)},
                  fmt::format("{} − {}", name_of(pair.a), name_of(pair.b)));
      }
    }
    html_ += "<details><summary>All pairs of rankers</summary>\n" + table.html();
    if (left_out)
      html_ +=
          "<p class=\"note\">Only pairs with the best ranker are listed; the correction counts all.</p>\n";
    html_ += "</details>\n";
  }

  void bootstrap() {
    HtmlTable table(fmt::format("Bootstrap intervals, {} user", user_.user), column_titles({"ranker"}));
    for (std::size_t row = 0; row < table_.rows.size(); ++row) {
      std::vector<std::string> cells;
      for (const FinalColumn& column : table_.columns) {
        const BootstrapInterval& interval = column.cells[row].bootstrap;
        const int digits = column.measure.digits;
        cells.push_back(std::isfinite(interval.low)
                            ? fmt::format("{} to {}", fixed_number(interval.low, digits),
                                          fixed_number(interval.high, digits))
                            : std::string("–"));
      }
      table.row(short_names_[row], cells, name_of(row));
    }
    html_ += "<details><summary>Hierarchical bootstrap intervals</summary>\n" + table.html();
    html_ +=
        "<p class=\"note\">2.5th to 97.5th percentile of 1,000 means of resampled folds and seeds. These "
        "intervals describe the spread and are not tests. In simulations with 5 seeds per fold, they "
        "covered "
        "the true mean in 84 % of cases with one fold, and with 5 folds in 97 % if folds did not differ "
        "and "
        "in 89 % if folds differed as much as seeds. ";
    html_ += resampled_queries() + "</p></details>\n";
  }

  std::string resampled_queries() const {
    for (const FinalColumn& column : table_.columns) {
      if (column.over_queries)
        return escape_html(fmt::format("For {}, the evaluated queries of each trial are resampled as well.",
                                       column.measure.title));
    }
    return "The trials kept no per-query values, so queries are not resampled.";
  }

  void legend() {
    html_ += "<ul class=\"legend\">";
    for (const RankerTrials* trials : shown_rankers(user_)) {
      const ReportedRanker& ranker = report_.rankers[trials->ranker];
      html_ += fmt::format("<li>{}{}", style_key(trials->ranker), escape_html(ranker.name));
      if (const std::string details = ranker.details(); !details.empty())
        html_ += fmt::format(" <span class=\"soft\">{}</span>", escape_html(details));
      html_ += "</li>";
    }
    html_ += "</ul>\n";
  }

  void curves(const DrawFigures& draw) {
    const std::vector<ReportFigure> figures = figures_of(report_, data_, user_, table_);
    html_ += "<h3>Curves and costs</h3>\n";
    if (figures.empty()) {
      html_ += "<p class=\"note\">No trial has reached its second evaluation yet.</p>\n";
      return;
    }
    legend();
    html_ += fmt::format("<p class=\"note\">{}</p>\n", escape_html(band_note(report_, user_, table_)));
    if (user_.rankers.size() > kMostRankers)
      html_ += fmt::format(
          "<p class=\"note\">The legend and the figures show the {} best of {} rankers by offline "
          "NDCG.</p>\n",
          kMostRankers, user_.rankers.size());
    html_ += html_list(thinning_notes(report_, user_));
    group(draw, figures, FigureGroup::kMain, "");
    group(draw, figures, FigureGroup::kQuality, "More measures of quality");
    group(draw, figures, FigureGroup::kCertainty, "Certain orders and blocks");
    group(draw, figures, FigureGroup::kTime, "Time and quality");
  }

  /// Folded away under a summary, if there is one.
  void group(const DrawFigures& draw, const std::vector<ReportFigure>& figures, FigureGroup group,
             const char* summary) {
    std::vector<ReportFigure> of_group;
    for (const ReportFigure& figure : figures) {
      if (figure.group == group) of_group.push_back(figure);
    }
    if (of_group.empty()) return;
    const bool folded = summary[0] != '\0';
    if (folded) html_ += fmt::format("<details><summary>{}</summary>\n", summary);
    html_ += draw(of_group, folded ? "figures" : "figures large");
    if (folded) html_ += "</details>\n";
  }

  const Report& report_;
  const DataResults& data_;
  const UserResults& user_;
  FinalTable table_;
  std::vector<std::string> short_names_;  // by row
  std::string html_;
};

}  // namespace

std::string headlines_section(const Report& report) {
  std::string items;
  std::size_t users = 0;
  for (const DataResults& data : report.data) {
    for (const UserResults& user : data.users) {
      if (user.rankers.empty()) continue;
      const UserFindings findings = findings_of(report, data, user, final_table(user, data.cutoff));
      const std::string on = findings.data.empty() ? "" : " on " + findings.data;
      items += fmt::format("<li><span class=\"soft\">{} user{}:</span> {}</li>\n", escape_html(user.user),
                           escape_html(on), escape_html(findings.headline));
      ++users;
    }
  }
  // A single user's own section follows and begins with it.
  if (users < 2) return "";
  return fmt::format("<section aria-label=\"Results\"><ul class=\"verdicts\">\n{}</ul></section>\n", items);
}

std::string user_section(const Report& report, const DataResults& data, const UserResults& user,
                         const DrawFigures& draw) {
  return UserSection(report, data, user).write(draw);
}

}  // namespace olrank
