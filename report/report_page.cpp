#include "report/outputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/text/message_text.h"
#include "report/final_tables.h"
#include "report/markup.h"
#include "report/page.h"
#include "report/study.h"

namespace olrank {
namespace {

constexpr const char* kHowToRead =
    "<ul class=\"notes\"><li>± is half the width of the 95 % t interval of the mean over trials. Trials of "
    "one fold share their data, so with several folds it is rather too narrow for others; tests take the "
    "means over folds. With one fold it holds for that fold only.</li>\n"
    "<li>For each seed, all rankers of an experiment saw the same queries and the same random draws. "
    "Differences and tests are therefore paired by fold and seed. Holm's correction covers all pairs of "
    "rankers in a table column.</li>\n"
    "<li>The number of seeds that would show a difference is the one at which the corrected test finds it "
    "with a probability of 80 %, if the true difference is the one seen and the spread stays as it "
    "is.</li>\n"
    "<li>Rankers trained on true grades are shown for scale and are never called best.</li>\n"
    "<li>The area under a curve is its mean over the rounds. It compares whole curves, not single lucky "
    "points.</li>\n"
    "<li>Wide bands are cut off at the frame, so that the lines stay readable.</li>\n"
    "<li>Times depend on the machine and on everything else that ran on it. They are not tested.</li></ul>";

/// With more pairs than this, only pairs with the best ranker are listed.
constexpr std::size_t kMostListedPairs = 66;

constexpr double kTableFont = 14.0;
constexpr double kWidestName = 200.0;

std::string p_text(double p) {
  if (std::isnan(p)) return "–";
  return p < 0.0001 ? "&lt; 0.0001" : fmt::format("{:.4f}", p);
}

/// Says what lines and bands show, or why there are no bands.
std::string band_note(const UserView& view) {
  std::size_t trials = 0;
  bool over_folds = false;
  for (const RankerTrials& ranker : view.user.rankers) {
    const MeanCurve& curve = ranker.curve(Measure::kOfflineNdcg);
    trials = std::max(trials, most_trials(curve));
    for (const RoundEstimate& point : curve) over_folds = over_folds || point.estimate.over_folds;
  }
  if (trials < 2)
    return "The lines have no bands, because a single seed does not show the spread between seeds.";
  const std::string unit = over_folds ? "trial" : "seed";
  if (trials < kFewUnits) {
    return fmt::format(
        "Thick lines are means, thin lines the {0} {1}s. There are no bands: over {0} {1}s they would be "
        "too wide to say anything.",
        trials, unit);
  }
  const RankerTrials* baseline = baseline_of(view);
  std::string note = fmt::format("Lines are means over {} {}s. Bands are 95 % t intervals", trials, unit);
  if (baseline != nullptr) {
    note += fmt::format(": of paired differences where a title says 'minus {}', else of means",
                        view.report.rankers[baseline->ranker].name);
  } else {
    note += " of means";
  }
  return note + (over_folds ? "." : "; they hold for this fold only.");
}

/// A sentence for each round after which a mean curve covers fewer trials because unfinished or damaged
/// ones end there.
std::vector<std::string> thinning_notes(const Report& report, const UserResults& user) {
  std::vector<std::string> notes;
  for (const RankerTrials& ranker : user.rankers) {
    std::size_t before = 0;
    for (const RoundEstimate& point : ranker.curve(Measure::kOfflineNdcg)) {
      const std::size_t trials = point.estimate.values;
      if (trials < before) {
        notes.push_back(fmt::format("{}: from round {} on, the mean covers {} instead of {}.",
                                    report.rankers[ranker.ranker].name, point.round,
                                    counted(trials, "trial"), before));
      }
      before = trials;
    }
  }
  return notes;
}

class UserSection {
 public:
  UserSection(Page& page, const UserView& view) : page_(page), view_(view) {
    std::vector<std::string> names;
    for (std::size_t row = 0; row < view_.table.rows.size(); ++row) names.push_back(name_of(row));
    short_names_ = distinct_labels(names, kTableFont, kWidestName);
  }

  void write() {
    const std::string data = short_name(view_.report, view_.data);
    page_.section(view_.user.user + " user", "on " + data, data == view_.data.data ? "" : view_.data.data);
    if (view_.user.rankers.empty()) {
      page_.add("<p>No trial with this user has started.</p>");
    } else {
      const Findings findings = findings_of(view_);
      page_.add(fmt::format("<p class=\"verdict\">{}</p>\n", escape_html(findings.headline)));
      page_.list(findings.sentences);
      final_values();
      curves();
    }
    page_.end_section();
  }

 private:
  const std::string& name_of(std::size_t row) const {
    return view_.report.rankers[view_.table.rows[row]].name;
  }

  std::vector<std::string> column_titles(std::vector<std::string> leading) const {
    for (const FinalColumn& column : view_.table.columns) leading.push_back(column.measure.title);
    return leading;
  }

  void final_values() {
    page_.add("<h3>Final values</h3>\n");
    if (!view_.table.columns.empty()) {
      HtmlTable table(fmt::format("Final values, {} user", view_.user.user),
                      column_titles({"ranker", "trials"}));
      for (std::size_t row = 0; row < view_.table.rows.size(); ++row)
        table.row(short_names_[row], final_cells(row), name_of(row));
      page_.add(table.html());
    }
    page_.note(table_note(view_.table, view_.user));
    if (view_.table.tested) pairs();
  }

  std::vector<std::string> final_cells(std::size_t row) const {
    std::vector<std::string> cells = {fmt::format("{}", view_.table.finished[row])};
    for (const FinalColumn& column : view_.table.columns) {
      const FinalCell& cell = column.cells[row];
      std::string text = estimate_html(cell.estimate, column.measure.digits);
      if (cell.best) text = fmt::format("<strong>{}</strong>", text);
      cells.push_back(fmt::format("{}<span class=\"near\">{}</span>", text, cell.not_worse ? "≈" : ""));
    }
    return cells;
  }

  void pairs() {
    HtmlTable table(fmt::format("Pairs of rankers, {} user", view_.user.user),
                    {"pair", "measure", "n", "difference", "p (t test)", "Holm-adjusted", "p (sign flip)",
                     "Holm-adjusted"});
    bool left_out = false;
    for (const FinalColumn& column : view_.table.columns) {
      for (const PairedComparison& pair : column.pairs) {
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
    page_.fold("All pairs of rankers");
    page_.add(table.html());
    if (left_out) page_.note("Only pairs with the best ranker are listed; the correction counts all.");
    page_.end_fold();
  }

  void legend() {
    std::string items;
    for (const RankerTrials* trials : shown_rankers(view_.user)) {
      const ReportedRanker& ranker = view_.report.rankers[trials->ranker];
      items += fmt::format("<li>{}{}", style_key(trials->ranker), escape_html(ranker.name));
      if (const std::string details = ranker.details(); !details.empty())
        items += fmt::format(" <span class=\"soft\">{}</span>", escape_html(details));
      items += "</li>";
    }
    page_.add(fmt::format("<ul class=\"legend\">{}</ul>\n", items));
  }

  void curves() {
    const std::vector<ReportFigure> figures = figures_of(view_);
    page_.add("<h3>Curves and costs</h3>\n");
    if (figures.empty()) return page_.note("No trial has reached its second evaluation yet.");
    legend();
    page_.note(band_note(view_));
    if (view_.user.rankers.size() > kMostRankers)
      page_.note(fmt::format("The legend and the figures show the {} best of {} rankers by offline NDCG.",
                             kMostRankers, view_.user.rankers.size()));
    page_.list(thinning_notes(view_.report, view_.user));
    group(figures, FigureGroup::kMain, "");
    group(figures, FigureGroup::kQuality, "More measures of quality");
    group(figures, FigureGroup::kCertainty, "Certain orders and blocks");
    group(figures, FigureGroup::kTime, "Time and quality");
  }

  /// Folded away under a summary, if there is one.
  void group(const std::vector<ReportFigure>& figures, FigureGroup group, std::string_view summary) {
    std::vector<ReportFigure> of_group;
    for (const ReportFigure& figure : figures) {
      if (figure.group == group) of_group.push_back(figure);
    }
    if (of_group.empty()) return;
    if (summary.empty()) return page_.figures(of_group, "figures large");
    page_.fold(summary);
    page_.figures(of_group);
    page_.end_fold();
  }

  Page& page_;
  const UserView& view_;
  std::vector<std::string> short_names_;  // by row
};

/// Adds what the report says about each user in a sentence or two, the top of a page. Nothing for a single
/// user, whose own section begins with it.
void add_headlines(Page& page, const std::vector<UserView>& views) {
  std::string items;
  std::size_t users = 0;
  for (const UserView& view : views) {
    if (view.user.rankers.empty()) continue;
    items += fmt::format("<li><span class=\"soft\">{}:</span> {}</li>\n", escape_html(whose_findings(view)),
                         escape_html(findings_of(view).headline));
    ++users;
  }
  if (users < 2) return;
  page.add(fmt::format("<section aria-label=\"Results\"><ul class=\"verdicts\">\n{}</ul>", items));
  page.end_section();
}

class ReportPage {
 public:
  explicit ReportPage(const Report& report) : report_(report), page_(head_of(report)) {}

  std::string write() {
    if (!report_.warnings.empty()) {
      page_.add("<section class=\"warn\" aria-label=\"Warnings\"><strong>Warnings</strong>");
      page_.list(report_.warnings);
      page_.end_section();
    }
    for (std::size_t i = 0; i < report_.experiments.size(); ++i) {
      const ExperimentResults& results = report_.experiments[i];
      if (results.study) add_study(page_, analyse_study(results, *results.study), report_.labels[i]);
    }
    const std::vector<UserView> views = views_of(report_);
    const bool only_studies = are_studies(report_);
    if (only_studies) {
      page_.fold("Final values and curves of every ranker");
    } else {
      add_headlines(page_, views);
    }
    for (const UserView& view : views) UserSection(page_, view).write();
    if (only_studies) page_.end_fold();
    missing();
    setup();
    page_.section("How to read this report");
    page_.add(kHowToRead);
    page_.end_section();
    return page_.finish();
  }

 private:
  static PageHead head_of(const Report& report) {
    std::vector<std::string> folders;
    PageHead head{"olrank report", fmt::format("{}", fmt::join(report.labels, " and ")), {}};
    for (std::size_t i = 0; i < report.experiments.size(); ++i) {
      const ExperimentResults& experiment = report.experiments[i];
      folders.push_back(std::filesystem::absolute(experiment.folder).lexically_normal().string());
      const std::string whose = report.experiments.size() > 1 ? report.labels[i] + ": " : "";
      head.paragraphs.push_back(fmt::format("{}{} of {} trials finished · {} · protocol {} · {} rounds.",
                                            escape_html(whose), experiment.finished, experiment.expected,
                                            data_of(report, i),
                                            escape_html(conventions_of(experiment.run).protocol),
                                            fixed_number(static_cast<double>(experiment.run.rounds), 0)));
    }
    head.hint = fmt::format("{}", fmt::join(folders, " and "));
    return head;
  }

  /// The short name of the experiment's data, the whole one as its title.
  static std::string data_of(const Report& report, std::size_t experiment) {
    const std::string& whole = report.experiments[experiment].run.data;
    for (const DataResults& data : report.data) {
      if (data.data != whole || short_name(report, data) == whole) continue;
      return fmt::format("<span title=\"{}\">{}</span>", escape_html(whole),
                         escape_html(short_name(report, data)));
    }
    return escape_html(whole);
  }

  void missing() {
    for (std::size_t i = 0; i < report_.experiments.size(); ++i) {
      const ExperimentResults& experiment = report_.experiments[i];
      if (experiment.finished == experiment.expected) continue;
      page_.section("Missing trials", "in " + report_.labels[i]);
      page_.add(fmt::format("<p>Not finished: {} of {} trials.</p>\n",
                            experiment.expected - experiment.finished, experiment.expected));
      page_.list(missing_lines(experiment));
      page_.end_section();
    }
  }

  void setup() {
    for (std::size_t i = 0; i < report_.experiments.size(); ++i) {
      const RunDescription& run = report_.experiments[i].run;
      page_.section("Setup", "in " + report_.labels[i]);
      page_.add("<dl>");
      for (const auto& [name, text] : run.facts) {
        const bool code = name == "Command";
        page_.add(fmt::format("<dt>{}</dt><dd>{}{}{}</dd>\n", escape_html(name), code ? "<code>" : "",
                              escape_html(text), code ? "</code>" : ""));
      }
      if (const std::string duration = report_.experiments[i].duration(); !duration.empty())
        page_.add(fmt::format("<dt>Duration</dt><dd>{}</dd>\n", escape_html(duration)));
      page_.add("<dt>Deviations from the protocol</dt><dd>");
      page_.add(run.deviations.empty() ? "None." : "");
      page_.list(run.deviations);
      page_.add("</dd></dl>");
      page_.end_section();
    }
  }

  const Report& report_;
  Page page_;
};

}  // namespace

std::string report_page(const Report& report) {
  return ReportPage(report).write();
}

}  // namespace olrank
