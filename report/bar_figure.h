#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/drawing.h"

namespace olrank {

struct Bar {
  std::string name;
  std::vector<double> parts;  // as many as the figure has names for
};

/// Stacked bars, a row each, with their totals; parts keep order and colour in every row.
struct BarFigure {
  std::string title;
  std::string subtitle;
  std::string unit;
  std::vector<std::string> parts;
  std::vector<Bar> bars;
};

Drawing draw_bars(const BarFigure& figure);
std::string bars_csv(const BarFigure& figure);

}  // namespace olrank
