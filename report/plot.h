#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/statistics/t_tests.h"
#include "report/drawing.h"
#include "report/markup.h"

namespace olrank {

/// A point of a series; `low` and `high` bound the interval of y and are NaN without one.
struct PlotPoint {
  double x = 0.0;
  double y = 0.0;
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();
  std::size_t trials = 0;
};

/// A plot shows a series under one name.
struct PlotSeries {
  std::string name;
  std::size_t style = 0;
  std::vector<PlotPoint> points;  // see PlotKind
  /// Thin lines behind a line, such as the seeds of a mean, and dots behind a point: x and y.
  std::vector<std::vector<std::pair<double, double>>> parts = {};
  std::string variant = {};  // tells differences of one name apart; may be empty
  bool significant = false;  // a difference with a full mark instead of a hollow one
};

PlotPoint plot_point(double x, const MeanInterval& estimate);

enum class PlotKind {
  kLines,        // with bands, labelled at their ends; the points' x ascends
  kScatter,      // a labelled point per series; x is logarithmic if it spans more than a factor of 10
  kDifferences,  // a row per series, whose only point has its difference and interval in y
};

/// A figure of one kind: what it shows and how its axes are drawn.
struct Plot {
  PlotKind kind = PlotKind::kLines;
  std::string title;
  std::string subtitle;
  std::string x_name = "round";
  std::string y_name;  // of a scatter plot
  std::vector<PlotSeries> series;
  PlotSeries baseline = {};  // of lines: grey and dashed; its style is not used. Without points: none.

  double lowest = -std::numeric_limits<double>::infinity();  // bounds of the y axis of lines
  double highest = std::numeric_limits<double>::infinity();
  bool whole_intervals = false;  // the y axis shows all of each interval; otherwise long ones are cut off
  bool bands = true;             // whether lines have the bands of their points
  bool logarithmic_x = false;    // of lines; requires positive x
  bool logarithmic_y = false;    // of lines; requires positive y

  double no_difference = 0.0;     // 0, or 1 for ratios, whose axis is logarithmic
  std::string variant_name = {};  // heads the column of variants
};

/// The size in pixels that a title takes of the font of text_width(): its letters are bold.
inline constexpr double kTitleFont = 13.5;

/// Whether lines have points at two values of x at least; otherwise they show nothing.
bool spans_x(const Plot& plot);

/// Intervals of differences beyond three times the largest difference are cut off at the frame.
Drawing draw(const Plot& plot);

/// The plot's numbers: a line per point of lines and scatter plots, and per series of the other kinds.
std::string plot_csv(const Plot& plot);

/// From the least to the largest of the finite values that it took.
struct ValueRange {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
  /// Whether the values differ by no more than rounding, which no ticks can tell apart.
  bool is_flat() const { return high - low <= 1e-12 * std::abs(high); }
};

struct Tick {
  double value = 0.0;
  std::string label;
};

class Scale {
 public:
  /// `low` < `high`; both positive when logarithmic.
  Scale(double low, double high, double first_pixel, double last_pixel, bool logarithmic = false);

  double operator()(double value) const;
  double low() const { return low_; }
  double high() const { return high_; }

  /// About `wanted` round values within the range: steps of 1, 2 or 5 times a power of ten. On a
  /// logarithmic axis: powers of ten, and over at most three decades also 2 and 5 times these.
  std::vector<Tick> ticks(int wanted) const;

 private:
  double low_;
  double high_;
  double first_pixel_;
  double last_pixel_;
  bool logarithmic_;
};

/// A page shows the figures of a group together: the answers, and under a fold each of the others.
enum class FigureGroup { kMain, kQuality, kCertainty, kTime };

struct ReportFigure {
  std::string slug;  // used in file names
  Drawing drawing;
  std::string caption;  // one or two sentences
  std::string csv;      // the numbers behind it
  FigureGroup group = FigureGroup::kMain;
};

ReportFigure figure_of(std::string slug, const Plot& plot, std::string caption,
                       FigureGroup group = FigureGroup::kMain);

// The drawings of every kind of plot share these.

inline constexpr double kPlotWidth = 400.0;
inline constexpr double kPlotBottom = 36.0;
inline constexpr double kPlotFont = 11.0;

/// Title and subtitle, with which the body of a drawing begins.
inline std::string plot_heading(const Plot& plot) {
  return svg_text(0.0, 13.0, shortened(plot.title, kTitleFont, kPlotWidth), "title") +
         svg_text(0.0, 28.0, shortened(plot.subtitle, kPlotFont, kPlotWidth), "tick");
}

/// The label of a tick of the x axis, which stays within the drawing.
inline std::string x_tick_label(const Scale& x, const Tick& tick, double bottom) {
  const double half = 0.5 * text_width(tick.label, kPlotFont);
  return svg_text(std::min(x(tick.value), kPlotWidth - half), bottom + 15.0, tick.label, "tick",
                  Anchor::kMiddle);
}

inline Drawing finished_drawing(const Plot& plot, double height, std::string body,
                                std::string description) {
  return {kPlotWidth, height, std::move(body),
          plot.subtitle.empty() ? plot.title : plot.title + ", " + plot.subtitle, std::move(description)};
}

Drawing draw_lines_or_points(const Plot& plot);

}  // namespace olrank
