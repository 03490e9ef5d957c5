#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/drawing.h"

namespace olrank {

struct Bar {
  std::string name;
  std::vector<double> parts;  // one per name in BarFigure::parts
};

/// Stacked bars with their totals, one per row; a part has the same place and colour in every row.
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
