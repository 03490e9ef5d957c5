#pragma once

#include <cmath>
#include <cstdint>

#include "core/math/host_device.h"

// The scalar mathematics of graded ranking metrics, for the CPU and for kernels.
namespace olrank {

/// What a shown document of a grade is worth: 2^grade − 1, or the grade itself.
enum class Gain { kExponential, kLinear };

/// How much a rank counts. kLog2 is 1/log2(rank + 2). kLetor leaves the first two ranks whole and goes on
/// with 1/log2(rank + 1): Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques",
/// TOIS 2002, base 2, as LETOR's evaluation tools have it.
enum class Discount { kLog2, kLetor };

/// Grades above this one are refused where data is read.
inline constexpr int kHighestGrade = 31;

OLRANK_HOST_DEVICE inline double dcg_gain(int grade, Gain gain) {
  if (gain == Gain::kLinear) return grade;
  return static_cast<double>((std::uint64_t{1} << grade) - 1);  // exact
}

/// `rank` counts from 0. A device's log2 may differ from the host's in the last bit: where figures have to
/// agree, kernels read a table that the host filled.
OLRANK_HOST_DEVICE inline double dcg_discount(std::int64_t rank, Discount discount) {
  if (discount == Discount::kLog2) return 1.0 / std::log2(static_cast<double>(rank + 2));
  return rank < 2 ? 1.0 : 1.0 / std::log2(static_cast<double>(rank + 1));
}

/// The chance that a document satisfies its reader: (2^grade − 1)/2^max_grade. Chapelle, Metzler, Zhang,
/// Grinspan, "Expected reciprocal rank for graded relevance", CIKM 2009, eq. (4).
OLRANK_HOST_DEVICE inline double err_satisfaction(int grade, int max_grade) {
  return static_cast<double>((std::uint64_t{1} << grade) - 1) /
         static_cast<double>(std::uint64_t{1} << max_grade);
}

}  // namespace olrank
