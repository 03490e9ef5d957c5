#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "report/drawing.h"

namespace olrank {

/// A point of a line; `low` and `high` bound its band and are NaN without one.
struct LinePoint {
  double x = 0.0;
  double y = 0.0;
  double low = 0.0;
  double high = 0.0;
  std::size_t trials = 0;
};

struct FigureLine {
  std::string name;
  std::size_t style = 0;
  std::vector<LinePoint> points;  // x ascends
  /// Thin lines behind it, such as the seeds of a mean: x and y.
  std::vector<std::vector<std::pair<double, double>>> parts = {};
};

/// Lines with bands, labelled at their ends.
struct LineFigure {
  std::string title;
  std::string subtitle;
  std::string x_name = "round";
  double lowest = -std::numeric_limits<double>::infinity();  // bounds of the y axis
  double highest = std::numeric_limits<double>::infinity();
  bool whole_bands = false;     // never cut off wide bands
  bool bands = true;            // whether the points' low and high are drawn
  bool logarithmic_x = false;   // requires positive x
  bool logarithmic_y = false;   // requires positive y
  std::vector<double> x_ticks;  // default: round values
  std::vector<FigureLine> lines;
  FigureLine baseline;  // grey and dashed, to compare with; its style is not used. Without points: none.
};

Drawing draw_lines(const LineFigure& figure);

/// One line per point.
std::string lines_csv(const LineFigure& figure);

}  // namespace olrank
