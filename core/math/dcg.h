#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "core/math/portable_exp.h"

// The scalar mathematics of graded ranking metrics, for the CPU and for kernels.
namespace olrank {

/// The gain of a document with a grade: 2^grade − 1, or the grade itself.
enum class Gain { kExponential, kLinear };

/// The weight of a rank. kLog2 is 1/log2(rank + 2). kLetor gives the first two ranks weight 1 and later
/// ones 1/log2(rank + 1): Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques",
/// TOIS 2002, base 2: the convention of LETOR's evaluation tools.
enum class Discount { kLog2, kLetor };

/// Readers of data reject grades above this one.
inline constexpr int kHighestGrade = 31;

/// Documents of each grade in one query.
using GradeCounts = std::array<std::int64_t, kHighestGrade + 1>;

inline GradeCounts count_grades(std::span<const std::uint8_t> grades) {
  GradeCounts counts{};
  for (const std::uint8_t grade : grades) ++counts[grade];
  return counts;
}

/// Pairs of documents with different grades.
inline std::int64_t graded_pairs(const GradeCounts& counts) {
  std::int64_t pairs = 0;
  std::int64_t lower = 0;
  for (const std::int64_t count : counts) {
    pairs += count * lower;
    lower += count;
  }
  return pairs;
}

OLRANK_HOST_DEVICE inline double dcg_gain(int grade, Gain gain) {
  if (gain == Gain::kLinear) return grade;
  return static_cast<double>((std::uint64_t{1} << grade) - 1);  // exact
}

/// `rank` counts from 0. A device's log2 may differ from the host's in the last bit, so kernels whose
/// results must match the CPU's read a table that the host filled.
OLRANK_HOST_DEVICE inline double dcg_discount(std::int64_t rank, Discount discount) {
  if (discount == Discount::kLog2) return 1.0 / std::log2(static_cast<double>(rank + 2));
  return rank < 2 ? 1.0 : 1.0 / std::log2(static_cast<double>(rank + 1));
}

/// The gain of a clicked document: a click counts as grade 1.
inline constexpr double kClickGain = 1.0;

/// |ΔNDCG| of swapping two documents whose gains differ by `gain_difference`. Burges, "From RankNet to
/// LambdaRank to LambdaMART: an overview", 2010, §4.
OLRANK_HOST_DEVICE inline double ndcg_change(double gain_difference, double first_discount,
                                             double second_discount, double ideal_dcg) {
  return gain_difference * std::fabs(first_discount - second_discount) / ideal_dcg;
}

/// The chance that a document satisfies its reader: (2^grade − 1)/2^max_grade. Chapelle, Metzler, Zhang,
/// Grinspan, "Expected reciprocal rank for graded relevance", CIKM 2009, eq. (4).
OLRANK_HOST_DEVICE inline double err_satisfaction(int grade, int max_grade) {
  return static_cast<double>((std::uint64_t{1} << grade) - 1) /
         static_cast<double>(std::uint64_t{1} << max_grade);
}

/// Whether a document comes before another in the order by score: descending, ties by index.
OLRANK_HOST_DEVICE inline bool comes_before(float score, std::int64_t index, float other_score,
                                            std::int64_t other_index) {
  return score > other_score || (score == other_score && index < other_index);
}

OLRANK_HOST_DEVICE inline bool comes_before(double score, std::int64_t index, double other_score,
                                            std::int64_t other_index) {
  return score > other_score || (score == other_score && index < other_index);
}

}  // namespace olrank
