#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

namespace olrank {

/// Of a sample: the mean is NaN without values, the deviation with fewer than two.
struct Moments {
  double mean = 0.0;
  double deviation = 0.0;
};

inline Moments moments_of(const std::vector<double>& values) {
  Moments moments;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) moments.mean += value;
  moments.mean /= count;
  double sum = 0.0;
  for (const double value : values) sum += (value - moments.mean) * (value - moments.mean);
  moments.deviation = values.size() > 1 ? std::sqrt(sum / (count - 1.0)) : std::nan("");
  return moments;
}

/// "0.4123 ± 0.0102"; without the deviation if it is NaN.
inline std::string moments_text(const Moments& moments, int digits) {
  const std::string mean = fmt::format("{:.{}f}", moments.mean, digits);
  return std::isfinite(moments.deviation) ? fmt::format("{} ± {:.{}f}", mean, moments.deviation, digits)
                                          : mean;
}

}  // namespace olrank
