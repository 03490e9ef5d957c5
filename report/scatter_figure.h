#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/drawing.h"

namespace olrank {

/// `low` and `high` are y's interval, NaN without one.
struct ScatterPoint {
  std::string name;
  std::size_t style = 0;
  double x = 0.0;
  double y = 0.0;
  double low = 0.0;
  double high = 0.0;
};

/// Labelled points; the x axis is logarithmic if x spans more than a factor of 10.
struct ScatterFigure {
  std::string title;
  std::string subtitle;
  std::string x_name;
  std::string y_name;
  std::vector<ScatterPoint> points;
  bool whole_bars = false;  // the y axis shows all of each interval; otherwise it is cut where points end
};

Drawing draw_scatter(const ScatterFigure& figure);
std::string scatter_csv(const ScatterFigure& figure);

}  // namespace olrank
