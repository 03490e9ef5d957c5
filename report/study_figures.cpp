#include "report/study_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "report/difference_figure.h"
#include "report/line_figure.h"
#include "report/scatter_figure.h"
#include "report/study_findings.h"

namespace olrank {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

class StudyFigures {
 public:
  explicit StudyFigures(const Study& study) : study_(study), names_(structure_names(study.plan)) {
    for (const StudyCell& cell : study.plan.cells) depths_.insert(cell.depth);
  }

  std::vector<ReportFigure> all() {
    for (const StudyUser& user : study_.users) {
      for (const std::int64_t depth : depths_) {
        widths_by_round(user, depth);
        widths_by_width(user, depth);
      }
    }
    calibration();
    for (const StudyUser& user : study_.users) {
      false_certainty(user);
      for (const std::int64_t depth : depths_) {
        cost(user, depth, "milliseconds", 1.0, "Milliseconds per round against width",
             "Time to rank and learn, without evaluation and the comparison of widths.");
        cost(user, depth, "posterior-bytes", 1e-6, "Posterior size in MB against width",
             "Memory in addition to parameters and history.");
      }
    }
    return std::move(figures_);
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
  const StudyCell& cell_of(const StudyRow& row) const { return study_.plan.cells[row.cell]; }

  std::size_t style_of(const StudyCell& cell) const {
    return static_cast<std::size_t>(
        std::find(names_.begin(), names_.end(), structure_name(study_.plan, cell)) - names_.begin());
  }

  std::string place(const StudyUser& user, std::int64_t depth) const {
    return fmt::format("{} user, {} layers, {}", user.user, depth, study_.run.data);
  }

  /// Rows of a structure next to each other.
  DifferenceFigure differences(
      const StudyUser& user, const std::string& title,
      const std::function<std::optional<DifferenceRow>(const StudyRow&)>& make) const {
    DifferenceFigure figure;
    figure.title = title;
    figure.subtitle = fmt::format("{} user, {}", user.user, study_.run.data);
    const bool sizes = size_count() > 1;
    for (const std::string& name : names_) {
      for (const StudyRow& row : user.rows) {
        const StudyCell& cell = cell_of(row);
        if (structure_name(study_.plan, cell) != name) continue;
        std::optional<DifferenceRow> made = make(row);
        if (!made) continue;
        made->name = name;
        made->style = style_of(cell);
        if (sizes) {
          made->variant = depths_.size() > 1 ? fmt::format("{} × {}", cell.depth, cell.width)
                                             : fmt::format("{}", cell.width);
        }
        figure.rows.push_back(std::move(*made));
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

  void add(const std::string& slug, const DifferenceFigure& figure, std::string caption) {
    if (figure.rows.empty()) return;
    figures_.push_back({slug, draw_differences(figure), std::move(caption), differences_csv(figure)});
  }

  void difference(const StudyUser& user, const std::string& slug, const std::string& name,
                  const std::string& title, const std::string& caption) {
    DifferenceFigure figure =
        differences(user, title, [&](const StudyRow& row) -> std::optional<DifferenceRow> {
          const StudyValue* value = study_.value(row, slug);
          if (value == nullptr || !value->compared) return std::nullopt;
          const MeanInterval& estimate = value->difference.difference;
          return DifferenceRow{"",
                               "",
                               0,
                               estimate.mean,
                               estimate.mean - estimate.half_width,
                               estimate.mean + estimate.half_width,
                               is_tested(slug) && is_significant(value)};
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
    DifferenceFigure figure = differences(user, "Time per round, over full's",
                                          [](const StudyRow& row) -> std::optional<DifferenceRow> {
                                            const MeanInterval& log = row.log_time;
                                            if (!std::isfinite(log.mean)) return std::nullopt;
                                            return DifferenceRow{"",
                                                                 "",
                                                                 0,
                                                                 std::exp(log.mean),
                                                                 std::exp(log.mean - log.half_width),
                                                                 std::exp(log.mean + log.half_width),
                                                                 false};
                                          });
    figure.x_name = "structure / full";
    figure.none = 1.0;
    figure.logarithmic = true;
    add(fmt::format("over-full-milliseconds-{}", user.user), figure,
        "Left of 1 is faster than full. Ranking and learning, without evaluation and the comparison of "
        "widths.");
  }

  /// Full stands at 1 by definition; structures without widths have no place.
  void cost_and_faithfulness(const StudyUser& user) {
    ScatterFigure figure;
    figure.title = "Cost against faithfulness of widths";
    figure.subtitle = fmt::format("{} user, {}, {} rounds", user.user, study_.run.data, study_.run.rounds);
    figure.x_name = "milliseconds per round";
    figure.y_name = "width / exact width";
    figure.whole_bars = true;
    bool compared = false;
    for (const StudyRow& row : user.rows) {
      const StudyCell& cell = cell_of(row);
      const StudyWidths* widths = final_widths(row, cell);
      const bool is_exact = cell.structure == kExactStructure;
      const double cost = study_.value(row, "milliseconds")->estimate.mean;
      if (!(cost > 0.0) || (widths == nullptr && !is_exact)) continue;
      compared = compared || widths != nullptr;
      std::string name = structure_name(study_.plan, cell);
      if (size_count() > 1) name += fmt::format(", {}", size_name(study_.plan, cell));
      figure.points.push_back({name, style_of(cell), cost, is_exact ? 1.0 : widths->median,
                               is_exact ? kNone : widths->low, is_exact ? kNone : widths->high});
    }
    if (!compared) return;
    figures_.push_back(
        {"cost-faithfulness-" + user.user, draw_scatter(figure),
         "Median width over exact width of shown pairs at the last evaluation, with bars from the 10th to "
         "the 90th percentile: 1 is exact, above it too cautious. Further left is cheaper; time leaves out "
         "evaluation and the comparison of widths.",
         scatter_csv(figure)});
  }

  void add(const std::string& slug, const LineFigure& figure, std::string caption) {
    std::set<double> places;
    for (const FigureLine& line : figure.lines) {
      for (const LinePoint& at : line.points) places.insert(at.x);
    }
    if (places.size() < 2) return;  // a line needs two
    figures_.push_back({slug, draw_lines(figure), std::move(caption), lines_csv(figure)});
  }

  void widths_by_round(const StudyUser& user, std::int64_t depth) {
    std::int64_t widest = 0;
    for (const StudyRow& row : user.rows) {
      if (cell_of(row).depth == depth && !row.widths.empty()) widest = std::max(widest, cell_of(row).width);
    }
    LineFigure figure;
    figure.title = fmt::format("Width relative to exact width, m = {}", widest);
    figure.subtitle = place(user, depth);
    figure.lowest = 0.0;
    figure.whole_bands = true;
    for (const StudyRow& row : user.rows) {
      const StudyCell& cell = cell_of(row);
      if (cell.depth != depth || cell.width != widest || row.widths.empty()) continue;
      FigureLine line{structure_name(study_.plan, cell), style_of(cell), {}};
      for (const StudyWidths& at : row.widths)
        line.points.push_back({static_cast<double>(at.round), at.median, at.low, at.high, row.trials});
      figure.lines.push_back(std::move(line));
    }
    add(fmt::format("width-ratio-{}-layers{}", user.user, depth), figure,
        "Median over shown pairs, with bands from the 10th to the 90th percentile. Above 1 is too "
        "cautious, "
        "below 1 too confident.");
  }

  /// One line per structure, over the widths studied.
  template <class Point>
  void against_width(LineFigure& figure, const StudyUser& user, std::int64_t depth, Point&& point) const {
    figure.x_name = "width m";
    figure.logarithmic_x = true;
    for (const StudyRow& row : user.rows) {
      const StudyCell& cell = cell_of(row);
      if (cell.depth != depth) continue;
      const std::optional<LinePoint> at = point(row, static_cast<double>(cell.width));
      if (!at) continue;
      const std::string name = structure_name(study_.plan, cell);
      auto line = std::find_if(figure.lines.begin(), figure.lines.end(),
                               [&](const FigureLine& other) { return other.name == name; });
      if (line == figure.lines.end())
        line = figure.lines.insert(figure.lines.end(), {name, style_of(cell), {}});
      line->points.push_back(*at);
    }
    for (FigureLine& line : figure.lines) {
      std::sort(line.points.begin(), line.points.end(),
                [](const LinePoint& a, const LinePoint& b) { return a.x < b.x; });
    }
    std::set<double> widths;
    for (const FigureLine& line : figure.lines) {
      for (const LinePoint& at : line.points) widths.insert(at.x);
    }
    figure.x_ticks.assign(widths.begin(), widths.end());
  }

  void widths_by_width(const StudyUser& user, std::int64_t depth) {
    LineFigure figure;
    figure.title = "Final width relative to exact width";
    figure.subtitle = place(user, depth);
    figure.lowest = 0.0;
    figure.whole_bands = true;
    against_width(figure, user, depth, [](const StudyRow& row, double width) -> std::optional<LinePoint> {
      if (row.widths.empty()) return std::nullopt;
      const StudyWidths& last = row.widths.back();
      return LinePoint{width, last.median, last.low, last.high, row.trials};
    });
    add(fmt::format("width-ratio-by-width-{}-layers{}", user.user, depth), figure,
        "Median at the last evaluation, with the 10th and 90th percentiles.");
  }

  void cost(const StudyUser& user, std::int64_t depth, const std::string& slug, double unit,
            const std::string& title, const std::string& caption) {
    LineFigure figure;
    figure.title = title;
    figure.subtitle = place(user, depth);
    figure.logarithmic_y = true;
    against_width(figure, user, depth, [&](const StudyRow& row, double width) -> std::optional<LinePoint> {
      const StudyValue* value = study_.value(row, slug);
      if (!(value->estimate.mean > 0.0)) return std::nullopt;
      return LinePoint{width, unit * value->estimate.mean, kNone, kNone, row.trials};
    });
    add(fmt::format("{}-{}-layers{}", slug, user.user, depth), figure, caption);
  }

  void calibration() {
    LineFigure figure;
    figure.title = "False certainty against α";
    figure.subtitle = fmt::format("{} rounds on the validation part", study_.plan.calibration_rounds);
    figure.x_name = "α";
    figure.logarithmic_x = true;
    figure.lowest = 0.0;
    figure.highest = 1.0;
    std::size_t style = 0;
    for (const Calibration& calibration : study_.plan.calibrations) {
      FigureLine line{calibration.ranker, style++, {}};
      for (const CalibrationPoint& point : calibration.points) {
        if (point.certain_orders > 0.0 && point.alpha > 0.0)
          line.points.push_back({point.alpha, point.false_certain, kNone, kNone, 1});
      }
      if (!line.points.empty()) figure.lines.push_back(std::move(line));
      if (figure.lines.size() == kMostRankers) break;
    }
    add("false-certain-calibration", figure,
        "Share of certain orders that contradict the grades. The study uses each structure at the α where "
        "its line reaches the share of full.");
  }

  void false_certainty(const StudyUser& user) {
    ScatterFigure figure;
    figure.title = "False certainty against α in the study";
    figure.subtitle = fmt::format("{} user, {}", user.user, study_.run.data);
    figure.x_name = "α";
    figure.y_name = "false certainty";
    for (const StudyRow& row : user.rows) {
      const StudyCell& cell = cell_of(row);
      const MeanInterval& share = study_.value(row, "false-certain")->estimate;
      if (!cell.alpha || !(*cell.alpha > 0.0) || !std::isfinite(share.mean)) continue;
      figure.points.push_back({cell.ranker, style_of(cell), *cell.alpha, share.mean,
                               share.mean - share.half_width, share.mean + share.half_width});
    }
    const std::string name = "false-certain-" + user.user;
    const auto other_alpha = [&](const ScatterPoint& point) { return point.x != figure.points.front().x; };
    if (std::none_of(figure.points.begin(), figure.points.end(), other_alpha)) {
      difference(user, "false-certain", name, "False certainty, minus full",
                 "Share of certain orders of shown documents that contradict their grades: left of 0, "
                 "fewer do than "
                 "with full. Full marks: significant after Holm's correction.");
      return;
    }
    figures_.push_back({name, draw_scatter(figure),
                        "Share of certain orders of shown documents that contradict their grades.",
                        scatter_csv(figure)});
  }

  const Study& study_;
  std::set<std::int64_t> depths_;
  std::vector<std::string> names_;  // of lines; the index is the style
  std::vector<ReportFigure> figures_;
};

}  // namespace

std::vector<ReportFigure> study_answers(const Study& study, const StudyUser& user) {
  return StudyFigures(study).answers(user);
}

std::vector<ReportFigure> study_figures(const Study& study) {
  return StudyFigures(study).all();
}

}  // namespace olrank
