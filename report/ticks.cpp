#include "report/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/number_text.h"

namespace olrank {
namespace {

double round_step(double rough) {
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1.0 - 1e-9)) return factor * power;
  }
  return 10.0 * power;
}

std::string tick_label(double value, double step) {
  const double size = std::abs(value);
  if (value == 0.0) return "0";
  if (size >= 1e6 || step >= 1e6) return with_minus(fmt::format("{:g}M", value / 1e6));
  if (size >= 1e4) return with_minus(fmt::format("{:g}k", value / 1e3));
  const int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  if (digits > 6) return with_minus(fmt::format("{:.2g}", value));
  return fixed_number(value, digits);
}

}  // namespace

Scale::Scale(double low, double high, double first_pixel, double last_pixel, bool logarithmic)
    : low_(low),
      high_(high),
      first_pixel_(first_pixel),
      last_pixel_(last_pixel),
      logarithmic_(logarithmic) {}

double Scale::operator()(double value) const {
  const double share =
      logarithmic_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
  return first_pixel_ + share * (last_pixel_ - first_pixel_);
}

std::vector<Tick> Scale::ticks(int wanted) const {
  std::vector<Tick> found;
  if (logarithmic_) {
    const double decades = std::log10(high_ / low_);
    for (double power = std::pow(10.0, std::floor(std::log10(low_))); power <= high_; power *= 10.0) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double value = factor * power;
        if (factor > 1.0 && decades > 3.0) continue;
        if (value >= low_ * (1.0 - 1e-9) && value <= high_ * (1.0 + 1e-9))
          found.push_back({value, value < 1e4 ? short_number(value) : tick_label(value, value)});
      }
    }
    return found;
  }
  const double step = round_step((high_ - low_) / wanted);
  for (double multiple = std::ceil(low_ / step - 1e-9); multiple * step <= high_ + 1e-9 * step;
       ++multiple) {
    const double value = multiple * step + 0.0;  // avoids negative zero
    found.push_back({value, tick_label(value, step)});
  }
  return found;
}

}  // namespace olrank
