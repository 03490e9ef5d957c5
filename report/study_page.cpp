#include "report/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "report/markup.h"
#include "report/page.h"

namespace olrank {
namespace {

PlotPoint width_point(double x, const StudyWidths& widths, std::size_t trials) {
  return {x, widths.median, widths.low, widths.high, trials};
}

class StudyFigures {
 public:
  explicit StudyFigures(const Study& study) : study_(study), names_(structure_names(study.plan)) {
    for (const StudyCell& cell : study.plan.cells) depths_.insert(cell.depth);
  }

  std::vector<ReportFigure> answers(const StudyUser& user) {
    difference(
        user, "offline-ndcg", "minus-full-offline-ndcg-" + user.user,
        fmt::format("Offline NDCG@{}, minus full", study_.cutoff),
        "Left of 0 is worse than full. Bars: 95 % t intervals of the paired differences. Full marks: "
        "significant after Holm's correction.");
    difference(user, "certain-share", "minus-full-certain-share-" + user.user, "Certain share, minus full",
               "Left of 0 questions more orders than full. Not tested.");
    time_ratio(user);
    cost_and_faithfulness(user);
    return std::move(figures_);
  }

 private:
  std::size_t style_of(const StudyCell& cell) const {
    return static_cast<std::size_t>(
        std::find(names_.begin(), names_.end(), structure_name(study_.plan, cell)) - names_.begin());
  }

  /// Rows of a structure next to each other.
  Plot differences(const StudyUser& user, const std::string& title,
                   const std::function<std::optional<PlotSeries>(const StudyRow&)>& make) const {
    Plot figure;
    figure.kind = PlotKind::kDifferences;
    figure.title = title;
    figure.subtitle = fmt::format("{} user, {}", user.user, study_.run.data);
    const bool sizes = size_count() > 1;
    for (const std::string& name : names_) {
      for (const StudyRow& row : user.rows) {
        const StudyCell& cell = study_.cell_of(row);
        if (structure_name(study_.plan, cell) != name) continue;
        std::optional<PlotSeries> made = make(row);
        if (!made) continue;
        made->name = name;
        made->style = style_of(cell);
        if (sizes) {
          made->variant = depths_.size() > 1 ? fmt::format("{} × {}", cell.depth, cell.width)
                                             : fmt::format("{}", cell.width);
        }
        figure.series.push_back(std::move(*made));
      }
    }
    if (sizes) figure.variant_name = depths_.size() > 1 ? "layers × m" : "m";
    return figure;
  }

  std::size_t size_count() const {
    std::set<std::pair<std::int64_t, std::int64_t>> sizes;
    for (const StudyCell& cell : study_.plan.cells) sizes.insert({cell.depth, cell.width});
    return sizes.size();
  }

  void add(const std::string& slug, const Plot& figure, std::string caption) {
    if (figure.kind == PlotKind::kLines ? spans_x(figure) : !figure.series.empty())
      figures_.push_back(figure_of(slug, figure, std::move(caption)));
  }

  void difference(const StudyUser& user, const std::string& slug, const std::string& name,
                  const std::string& title, const std::string& caption) {
    Plot figure = differences(user, title, [&](const StudyRow& row) -> std::optional<PlotSeries> {
      const StudyValue* value = study_.value(row, slug);
      if (value == nullptr || !value->minus_exact) return std::nullopt;
      const MeanInterval& estimate = value->minus_exact->test.difference;
      PlotSeries series{"", 0, {plot_point(0.0, estimate)}};
      series.significant = is_tested(slug) && is_significant(value);
      return series;
    });
    figure.x_name = "structure − full";
    add(name, figure, caption);
  }

  bool is_tested(const std::string& slug) const {
    return std::any_of(study_.measures.begin(), study_.measures.end(), [&](const FinalMeasure& measure) {
      return measure.slug == slug && measure.better != Better::kNeither;
    });
  }

  void time_ratio(const StudyUser& user) {
    Plot figure = differences(user, "Time per round, over full's",
                              [](const StudyRow& row) -> std::optional<PlotSeries> {
                                const MeanInterval& log = row.log_time;
                                if (!std::isfinite(log.mean)) return std::nullopt;
                                PlotPoint point = plot_point(0.0, log);
                                for (double* value : {&point.y, &point.low, &point.high})
                                  *value = std::exp(*value);
                                return PlotSeries{"", 0, {point}};
                              });
    figure.x_name = "structure / full";
    figure.no_difference = 1.0;
    add(fmt::format("over-full-milliseconds-{}", user.user), figure,
        "Left of 1 is faster than full. Ranking and learning, without evaluation and the comparison of "
        "widths.");
  }

  /// Full stands at 1 by definition; structures without widths have no place.
  void cost_and_faithfulness(const StudyUser& user) {
    Plot figure;
    figure.kind = PlotKind::kScatter;
    figure.title = "Cost against faithfulness of widths";
    figure.subtitle = fmt::format("{} user, {}, {} rounds", user.user, study_.run.data, study_.run.rounds);
    figure.x_name = "milliseconds per round";
    figure.y_name = "width / exact width";
    figure.whole_intervals = true;
    bool compared = false;
    for (const StudyRow& row : user.rows) {
      const StudyCell& cell = study_.cell_of(row);
      const StudyWidths* widths = final_widths(row, cell);
      const bool is_exact = cell.structure == kExactStructure;
      const double cost = study_.value(row, "milliseconds")->estimate.mean;
      if (!(cost > 0.0) || (widths == nullptr && !is_exact)) continue;
      compared = compared || widths != nullptr;
      std::string name = structure_name(study_.plan, cell);
      if (size_count() > 1) name += fmt::format(", {}", size_name(study_.plan, cell));
      const PlotPoint exact{.x = cost, .y = 1.0};
      figure.series.push_back(
          {name, style_of(cell), {is_exact ? exact : width_point(cost, *widths, row.trials)}});
    }
    if (!compared) return;
    add("cost-faithfulness-" + user.user, figure,
        "Median width over exact width of shown pairs at the last evaluation, with bars from the 10th to "
        "the 90th percentile: 1 is exact, above it too cautious. Further left is cheaper; time leaves out "
        "evaluation and the comparison of widths.");
  }

  const Study& study_;
  std::set<std::int64_t> depths_;
  std::vector<std::string> names_;  // of lines; the index is the style
  std::vector<ReportFigure> figures_;
};

struct Column {
  const char* slug;
  const char* title;
  int digits;
  bool tested;
};

constexpr Column kColumns[] = {{"offline-ndcg", "offline NDCG − full", 4, true},
                               {"online-cndcg", "online discounted NDCG − full", 1, true},
                               {"certain-share", "certain share − full", 3, false},
                               {"false-certain", "false certainty − full", 4, true}};

class StudyTable {
 public:
  StudyTable(const Study& study, const StudyUser& user) : study_(study), user_(user) {}

  std::string write() {
    std::vector<std::string> titles = {"structure", "size", "offline NDCG"};
    for (const Column& column : kColumns) {
      if (has(column)) titles.emplace_back(column.title);
    }
    if (has_widths()) titles.emplace_back("width / exact");
    if (has_decisions()) titles.emplace_back("decisions differ");
    titles.insert(titles.end(), {"ms per round", "time / full", "posterior MB", "posterior / full"});
    HtmlTable table(fmt::format("Paired differences from full, {} user", user_.user), titles);
    for (const StudyRow& row : user_.rows)
      table.row(structure_name(study_.plan, study_.cell_of(row)), cells(row));
    return table.html();
  }

 private:
  bool has(const Column& column) const {
    for (const StudyRow& row : user_.rows) {
      const StudyValue* value = study_.value(row, column.slug);
      if (value != nullptr && value->minus_exact) return true;
    }
    return false;
  }

  std::vector<std::string> cells(const StudyRow& row) const {
    std::vector<std::string> cells = {escape_html(size_name(study_.plan, study_.cell_of(row))),
                                      fixed_number(study_.value(row, "offline-ndcg")->estimate.mean, 4)};
    for (const Column& column : kColumns) {
      if (has(column)) cells.push_back(difference(study_.value(row, column.slug), column));
    }
    if (has_widths()) cells.push_back(width_ratios(row));
    if (has_decisions()) cells.push_back(plain(study_.value(row, "decisions-differ"), 1.0, 4));
    cells.push_back(plain(study_.value(row, "milliseconds"), 1.0, 2));
    cells.push_back(ratio(std::exp(row.log_time.mean)));
    cells.push_back(plain(study_.value(row, "posterior-bytes"), 1e-6, 2));
    cells.push_back(memory(row));
    return cells;
  }

  static std::string difference(const StudyValue* value, const Column& column) {
    if (value == nullptr || !value->minus_exact) return "–";
    const MeanInterval& estimate = value->minus_exact->test.difference;
    return estimate_html(estimate, column.digits, true) +
           fmt::format("<span class=\"near\">{}</span>", column.tested && is_significant(value) ? "*" : "");
  }

  bool has_widths() const {
    return std::any_of(user_.rows.begin(), user_.rows.end(), [&](const StudyRow& row) {
      return final_widths(row, study_.cell_of(row)) != nullptr;
    });
  }

  bool has_decisions() const {
    return std::any_of(user_.rows.begin(), user_.rows.end(), [&](const StudyRow& row) {
      return std::isfinite(study_.value(row, "decisions-differ")->estimate.mean);
    });
  }

  std::string width_ratios(const StudyRow& row) const {
    const StudyWidths* widths = final_widths(row, study_.cell_of(row));
    if (widths == nullptr) return "–";
    return fmt::format("{} <span class=\"half\">{}–{}</span>", fixed_number(widths->median, 2),
                       fixed_number(widths->low, 2), fixed_number(widths->high, 2));
  }

  static std::string plain(const StudyValue* value, double unit, int digits) {
    const bool known = value != nullptr && std::isfinite(value->estimate.mean);
    return known ? fixed_number(unit * value->estimate.mean, digits) : "–";
  }

  static std::string ratio(double value) {
    return std::isfinite(value) ? fmt::format("{:.2g}", value) : "–";
  }

  std::string memory(const StudyRow& row) const {
    const StudyCell* exact = study_.plan.exact_of(study_.cell_of(row));
    for (const StudyRow& other : user_.rows) {
      if (&study_.cell_of(other) != exact || &other == &row) continue;
      return ratio(study_.value(row, "posterior-bytes")->estimate.mean /
                   study_.value(other, "posterior-bytes")->estimate.mean);
    }
    return "–";
  }

  const Study& study_;
  const StudyUser& user_;
};

std::string interval_note(const StudyUser& user) {
  std::size_t trials = 0;
  bool over_folds = false;
  for (const StudyRow& row : user.rows) {
    for (const StudyValue& value : row.values) {
      if (!value.minus_exact) continue;
      trials = std::max(trials, value.minus_exact->test.difference.values);
      over_folds = value.minus_exact->test.difference.over_folds;
    }
  }
  if (trials < 2) return "A single seed gives no intervals and no tests.";
  return fmt::format(
      "Each row is a structure minus full of the same size, paired by fold and seed. ± is half the width "
      "of the 95 % t interval of the mean over {} {}; * differs from 0 at 5 % after Holm's correction over "
      "the column. Certain share and times are not tested. Width / exact is the median over shown pairs at "
      "the last evaluation, with the 10th and 90th percentiles. Time leaves out evaluation and the "
      "comparison of widths.",
      trials, over_folds ? "trials" : "seeds of one fold");
}

}  // namespace

std::vector<ReportFigure> study_answers(const Study& study, const StudyUser& user) {
  return StudyFigures(study).answers(user);
}

void add_study(Page& page, const Study& study, const std::string& label) {
  page.section("Comparison of covariances", "in " + label);
  if (study.users.empty()) page.add("<p>No trial has finished yet.</p>\n");
  for (const StudyUser& user : study.users) {
    const Findings findings = study_findings(study, user);
    page.add(fmt::format("<h3>{} user</h3>\n<p><strong>{}</strong></p>\n", escape_html(user.user),
                         escape_html(findings.headline)));
    page.list(findings.sentences);
    page.figures(study_answers(study, user), "figures answers");
    page.add(StudyTable(study, user).write());
    page.note(interval_note(user));
  }
  page.add(
      "<p class=\"note\">study.csv and study.json hold every measure of every structure, compared with "
      "full.</p>");
  page.end_section();
}

}  // namespace olrank
