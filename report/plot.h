#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/statistics/mean_interval.h"
#include "report/drawing.h"

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

/// The estimate with its interval.
PlotPoint plot_point(double x, const MeanInterval& estimate);

enum class PlotKind {
  kLines,        // with bands, labelled at their ends; the points' x ascends
  kScatter,      // a labelled point per series; x is logarithmic if it spans more than a factor of 10
  kBars,         // stacked bars with totals, a row per series; a point's y is the size of one part
  kDifferences,  // a row per series, whose only point has its difference and interval in y
};

/// A figure of one kind: what it shows and how its axes are drawn.
struct Plot {
  PlotKind kind = PlotKind::kLines;
  std::string title;
  std::string subtitle;
  std::string x_name = "round";
  std::string y_name;             // of a scatter plot; the unit of bars
  std::vector<std::string> bars;  // the names of a bar's parts
  std::vector<PlotSeries> series;
  PlotSeries baseline = {};  // of lines: grey and dashed; its style is not used. Without points: none.

  double lowest = -std::numeric_limits<double>::infinity();  // bounds of the y axis of lines
  double highest = std::numeric_limits<double>::infinity();
  bool whole_intervals = false;  // the y axis shows all of each interval; otherwise long ones are cut off
  bool bands = true;             // whether lines have the bands of their points
  bool logarithmic_x = false;    // of lines; requires positive x
  bool logarithmic_y = false;    // of lines; requires positive y
  std::vector<double> x_ticks = {};  // of lines; default: round values

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

}  // namespace olrank
