#pragma once

#include <string>
#include <vector>

namespace olrank {

/// A tick of an axis, with its label.
struct Tick {
  double value = 0.0;
  std::string label;
};

/// Maps a range of values to pixels.
class Scale {
 public:
  /// `low` < `high`; both positive when logarithmic.
  Scale(double low, double high, double first_pixel, double last_pixel, bool logarithmic = false);

  double operator()(double value) const;
  double low() const { return low_; }
  double high() const { return high_; }
  bool logarithmic() const { return logarithmic_; }

  /// About `wanted` round values within the range: steps of 1, 2 or 5 times a power of ten. On a
  /// logarithmic axis: powers of ten, and over at most three decades also 2 and 5 times these.
  std::vector<Tick> ticks(int wanted) const;

 private:
  double low_;
  double high_;
  double first_pixel_;
  double last_pixel_;
  bool logarithmic_;
};

}  // namespace olrank
