#include "models/posterior/posterior_plan.h"

#include <algorithm>

namespace olrank {
namespace {

double history_bytes(const NetworkShape& shape, double pairs) {
  return pairs * 2.0 * static_cast<double>(shape.factors()) * static_cast<double>(sizeof(float));
}

}  // namespace

FormCost dual_cost(const NetworkShape& shape, std::int64_t pairs, std::int64_t docs,
                   std::int64_t new_pairs) {
  const auto n = static_cast<double>(pairs);
  const auto factors = static_cast<double>(shape.factors());
  const auto v = static_cast<double>(docs);
  const auto k = static_cast<double>(new_pairs);
  // Tangent kernels with both documents of each pair, the triangle of L⁻¹ for widths and again to invert
  // new rows, and the lower half of SᵀS.
  const double operations =
      4.0 * n * factors * v + n * n * v + n * n * k + n * v * v + v * v * factors * 2.0;
  return {operations, n * n / 2.0 * 8.0 + history_bytes(shape, n)};
}

FormCost primal_cost(const NetworkShape& shape, std::int64_t pairs, std::int64_t docs,
                     std::int64_t new_pairs) {
  const auto p = static_cast<double>(shape.parameters());
  const auto v = static_cast<double>(docs);
  const auto k = static_cast<double>(new_pairs);
  // Half of the symmetric A⁻¹ for widths, P = A⁻¹Γᵀ, and half of A⁻¹ to update.
  const double operations = p * p * v + 2.0 * p * v * v + 2.0 * p * p * k + p * p * k;
  return {operations, p * p * 8.0 + history_bytes(shape, static_cast<double>(pairs))};
}

double primal_peak_bytes(const NetworkShape& shape, std::int64_t pairs) {
  const auto p = static_cast<double>(shape.parameters());
  return 1.5 * p * p * 8.0 + 2.0 * history_bytes(shape, static_cast<double>(pairs));
}

double orthonormal_peak_bytes(const NetworkShape& shape, std::int64_t pairs) {
  const auto p = static_cast<double>(shape.parameters());
  const double rank = std::min(p, static_cast<double>(pairs));
  return 2.0 * rank * (p + rank) * 8.0 + 2.0 * history_bytes(shape, static_cast<double>(pairs));
}

double conversion_operations(const NetworkShape& shape, std::int64_t pairs) {
  const auto p = static_cast<double>(shape.parameters());
  // Half of ΓᵀΓ, the factor and its inverse, half of L⁻ᵀL⁻¹.
  return p * p * static_cast<double>(pairs) + p * p * p;
}

}  // namespace olrank
