#include "core/metrics/list_metrics.h"

#include <algorithm>
#include <cassert>

namespace olrank {

GradeCounts count_grades(std::span<const std::uint8_t> grades) {
  GradeCounts counts{};
  for (const std::uint8_t grade : grades) ++counts[grade];
  return counts;
}

GainTable gain_table(Gain gain) {
  GainTable table{};
  for (int grade = 0; grade <= kHighestGrade; ++grade) table[grade] = dcg_gain(grade, gain);
  return table;
}

void DiscountTable::reach(std::int64_t ranks) {
  for (auto rank = std::ssize(values_); rank < ranks; ++rank) {
    values_.push_back(dcg_discount(rank, discount_));
  }
}

double dcg_of_list(std::span<const std::uint8_t> shown_grades, const GainTable& gains,
                   std::span<const double> discounts) {
  assert(discounts.size() >= shown_grades.size());
  double sum = 0.0;
  for (std::size_t rank = 0; rank < shown_grades.size(); ++rank)
    sum += gains[shown_grades[rank]] * discounts[rank];
  return sum;
}

double ideal_dcg(const GradeCounts& counts, std::int64_t ranks, const GainTable& gains,
                 std::span<const double> discounts) {
  double sum = 0.0;
  std::int64_t rank = 0;
  for (std::size_t grade = kHighestGrade; grade > 0 && rank < ranks; --grade) {
    for (const std::int64_t end = std::min(ranks, rank + counts[grade]); rank < end; ++rank) {
      sum += gains[grade] * discounts[rank];
    }
  }
  return sum;
}

RandomDcg random_dcg(const GradeCounts& counts, std::int64_t ranks, const GainTable& gains,
                     std::span<const double> discounts) {
  double docs = 0.0;
  double gain_sum = 0.0;
  double gain_squares = 0.0;
  for (std::size_t grade = 0; grade < counts.size(); ++grade) {
    const auto count = static_cast<double>(counts[grade]);
    docs += count;
    gain_sum += count * gains[grade];
    gain_squares += count * gains[grade] * gains[grade];
  }
  if (docs == 0.0) return {};
  double weight_sum = 0.0;
  double weight_squares = 0.0;
  const std::int64_t shown = std::min(ranks, static_cast<std::int64_t>(docs));
  for (std::int64_t rank = 0; rank < shown; ++rank) {
    weight_sum += discounts[rank];
    weight_squares += discounts[rank] * discounts[rank];
  }
  RandomDcg dcg{gain_sum / docs * weight_sum, 0.0};
  // Ranks beyond the cutoff have discount 0. Hoeffding, "A combinatorial central limit theorem", 1951.
  if (docs > 1.0) {
    dcg.variance = std::max(0.0, (gain_squares - gain_sum * gain_sum / docs) *
                                     (weight_squares - weight_sum * weight_sum / docs) / (docs - 1.0));
  }
  return dcg;
}

std::int64_t graded_pairs(const GradeCounts& counts) {
  std::int64_t pairs = 0;
  std::int64_t lower = 0;
  for (const std::int64_t count : counts) {
    pairs += count * lower;
    lower += count;
  }
  return pairs;
}

std::int64_t misordered_pairs(std::span<const std::uint8_t> list_grades, int max_grade) {
  std::array<std::int64_t, kHighestGrade + 1> lower{};  // documents of a lower grade seen so far, by grade
  std::int64_t pairs = 0;
  for (const std::uint8_t grade : list_grades) {
    pairs += lower[grade];
    for (std::size_t higher = std::size_t{grade} + 1; higher <= static_cast<std::size_t>(max_grade);
         ++higher) {
      ++lower[higher];
    }
  }
  return pairs;
}

}  // namespace olrank
