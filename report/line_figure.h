#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "report/drawing.h"

namespace olrank {

/// A point of a line; `low` and `high` bound its band and are NaN where there is none.
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
};

/// Lines with bands, each with its name beside its end.
struct LineFigure {
  std::string title;
  std::string subtitle;
  std::string x_name = "round";
  double lowest = -std::numeric_limits<double>::infinity();  // values beyond make no sense
  double highest = std::numeric_limits<double>::infinity();
  bool whole_bands = false;     // however wide they are
  bool logarithmic_x = false;   // every x is positive
  bool logarithmic_y = false;   // every y is positive
  std::vector<double> x_ticks;  // where the axis is told; round values unless set
  std::vector<FigureLine> lines;
};

Drawing draw_lines(const LineFigure& figure);

/// What the figure shows, a line a point.
std::string lines_csv(const LineFigure& figure);

}  // namespace olrank
