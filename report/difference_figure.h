#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/drawing.h"

namespace olrank {

/// An estimated difference with its interval; `low` and `high` are NaN without one.
struct DifferenceRow {
  std::string name;     // equal names of neighbours are written once
  std::string variant;  // what tells rows of one name apart; may be empty
  std::size_t style = 0;
  double value = 0.0;
  double low = 0.0;
  double high = 0.0;
  bool significant = false;  // draws a full mark instead of a hollow one
};

/// A row per difference with its interval, around the line of no difference.
struct DifferenceFigure {
  std::string title;
  std::string subtitle;
  std::string x_name;
  double none = 0.0;         // no difference: 0, or 1 for ratios
  bool logarithmic = false;  // for ratios
  std::string variant_name;  // heads the column of variants
  std::vector<DifferenceRow> rows;
};

/// Intervals beyond three times the largest difference are cut off at the frame.
Drawing draw_differences(const DifferenceFigure& figure);
std::string differences_csv(const DifferenceFigure& figure);

}  // namespace olrank
