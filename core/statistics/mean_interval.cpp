#include "core/statistics/mean_interval.h"

#include <cmath>

#include "core/statistics/student_t.h"

namespace olrank {

double mean_of(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return values.empty() ? std::nan("") : sum / static_cast<double>(values.size());
}

double deviation_of(const std::vector<double>& values) {
  if (values.size() < 2) return std::nan("");
  const double mean = mean_of(values);
  double sum = 0.0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

std::vector<double> independent_values(const FoldedValues& values) {
  FoldedValues folds;
  for (const std::vector<double>& fold : values) {
    if (!fold.empty()) folds.push_back(fold);
  }
  if (folds.size() == 1) return folds.front();
  std::vector<double> means;
  means.reserve(folds.size());
  for (const std::vector<double>& fold : folds) means.push_back(mean_of(fold));
  return means;
}

MeanInterval mean_interval(const FoldedValues& values, double confidence) {
  MeanInterval interval;
  std::vector<double> all;
  std::size_t folds = 0;
  for (const std::vector<double>& fold : values) {
    all.insert(all.end(), fold.begin(), fold.end());
    folds += fold.empty() ? 0 : 1;
  }
  interval.values = all.size();
  interval.units = folds > 1 ? folds : all.size();
  interval.over_folds = folds > 1;
  interval.mean = mean_of(all);
  interval.deviation = deviation_of(all);
  interval.half_width = std::nan("");
  if (all.size() > 1) {
    const auto count = static_cast<double>(all.size());
    interval.half_width =
        student_t_quantile(0.5 + 0.5 * confidence, count - 1.0) * interval.deviation / std::sqrt(count);
  }
  return interval;
}

}  // namespace olrank
