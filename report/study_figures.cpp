#include "report/study_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "report/line_figure.h"
#include "report/scatter_figure.h"

namespace olrank {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// A line's name: the structure and its noise, without the width.
std::string line_name(const StudyCell& cell) {
  return cell.noise_variance ? fmt::format("{}, ν² {:g}", cell.structure, *cell.noise_variance)
                             : cell.structure;
}

class StudyFigures {
 public:
  explicit StudyFigures(const Study& study) : study_(study) {
    for (const StudyCell& cell : study.plan.cells) {
      depths_.insert(cell.depth);
      if (std::find(names_.begin(), names_.end(), line_name(cell)) == names_.end())
        names_.push_back(line_name(cell));
    }
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

 private:
  const StudyCell& cell_of(const StudyRow& row) const { return study_.plan.cells[row.cell]; }

  std::size_t style_of(const StudyCell& cell) const {
    return static_cast<std::size_t>(std::find(names_.begin(), names_.end(), line_name(cell)) -
                                    names_.begin());
  }

  std::string place(const StudyUser& user, std::int64_t depth) const {
    return fmt::format("{} user, {} layers, {}", user.user, depth, study_.run.data);
  }

  void add(const std::string& slug, const LineFigure& figure, std::string caption) {
    if (figure.lines.empty()) return;
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
      FigureLine line{line_name(cell), style_of(cell), {}};
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
      const std::string name = line_name(cell);
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
    if (figure.points.empty()) return;
    figures_.push_back({fmt::format("false-certain-{}", user.user), draw_scatter(figure),
                        "Share of certain orders of shown documents that contradict their grades.",
                        scatter_csv(figure)});
  }

  const Study& study_;
  std::set<std::int64_t> depths_;
  std::vector<std::string> names_;  // of lines; the index is the style
  std::vector<ReportFigure> figures_;
};

}  // namespace

std::vector<ReportFigure> study_figures(const Study& study) {
  return StudyFigures(study).all();
}

}  // namespace olrank
