#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace olrank {

/// The unit that rounds are compared in across machines: the product of two square float matrices on one
/// thread, measured between the rounds themselves.
class ProductUnit {
 public:
  static constexpr std::int64_t kSide = 1000;
  static constexpr std::string_view kName = "gemm float";

  /// Multiplies, and remembers how long it took.
  void measure(int times = 1);

  // The median of all measurements; NaN without any.
  double seconds() const;            // on the clock
  double processor_seconds() const;  // which other programs disturb less

 private:
  std::vector<float> factor_;
  std::vector<float> product_;
  std::vector<double> seconds_;
  std::vector<double> processor_seconds_;
};

}  // namespace olrank
