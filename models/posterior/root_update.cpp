#include "models/posterior/root_update.h"

#include <cmath>

namespace olrank {

void RootUpdate::add(std::span<const double> c, double* l, std::int64_t stride) {
  const auto n = std::ssize(c);
  cosine_.resize(n);
  sine_.resize(n);
  for (std::int64_t i = 0; i < n; ++i) {
    double* row = l + i * stride;
    double carried = c[i];
    for (std::int64_t j = 0; j < i; ++j) {
      const double old = row[j];
      row[j] = cosine_[j] * old + sine_[j] * carried;
      carried = cosine_[j] * carried - sine_[j] * old;
    }
    const double length = std::hypot(row[i], carried);
    cosine_[i] = row[i] / length;
    sine_[i] = carried / length;
    row[i] = length;
  }
}

}  // namespace olrank
