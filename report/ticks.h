#pragma once

#include <string>
#include <vector>

namespace olrank {

/// Where an axis has its lines, and what stands beside them.
struct Tick {
  double value = 0.0;
  std::string label;
};

/// A range of values on an axis of pixels.
class Scale {
 public:
  /// `low` < `high`; both positive when logarithmic.
  Scale(double low, double high, double first_pixel, double last_pixel, bool logarithmic = false);

  double operator()(double value) const;
  double low() const { return low_; }
  double high() const { return high_; }
  bool logarithmic() const { return logarithmic_; }

  /// Round values within the range: steps of 1, 2 or 5 times a power of ten, about `wanted` of them; on a
  /// logarithmic axis powers of ten, with 2 and 5 times them where these are few.
  std::vector<Tick> ticks(int wanted) const;

 private:
  double low_;
  double high_;
  double first_pixel_;
  double last_pixel_;
  bool logarithmic_;
};

/// "2,500", "0.35", "1.2e+07": short, for axes and texts.
std::string short_number(double value);

}  // namespace olrank
