#pragma once

#include "core/math/portable_exp.h"

namespace olrank {

/// The range of a column's values within a query.
struct ColumnRange {
  double low = 0.0;
  double width = 1.0;
};

/// From −0, zeros of both signs become +0. A constant column has the width 1.
OLRANK_HOST_DEVICE inline ColumnRange column_range(float low, float high) {
  const double width = double{high} - double{low};
  return {low == 0.0F ? -0.0 : double{low}, width > 0.0 ? width : 1.0};
}

/// Computes in double: the range of two floats may be no float, and a tiny one must not lose its digits.
OLRANK_HOST_DEVICE inline float share_of_range(float value, double low, double width) {
  return static_cast<float>((double{value} - low) / width);
}

}  // namespace olrank
