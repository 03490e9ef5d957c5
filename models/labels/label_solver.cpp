#include "models/labels/label_solver.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "core/error.h"

namespace olrank {

double penalty(const LabelSettings& settings, std::span<const float> theta) {
  double squares = 0.0;
  double sizes = 0.0;
  for (const float entry : theta) {
    squares += double{entry} * double{entry};
    sizes += std::abs(double{entry});
  }
  return 0.5 * settings.l2 * squares + settings.l1 * sizes;
}

std::unique_ptr<LabelSolver> make_label_solver(const LabelSettings& settings, LabelObjective& objective,
                                               PhiloxKey key, std::vector<float> first_theta) {
  check_label_settings(settings);
  switch (settings.optimizer) {
    case LabelOptimizer::kAdam:
      return make_adam(settings, objective, key, std::move(first_theta));
    case LabelOptimizer::kLbfgs:
      return make_lbfgs(settings, objective, std::move(first_theta));
    case LabelOptimizer::kOgdAverage:
      return make_averaged_descent(settings, objective, key, std::move(first_theta));
    case LabelOptimizer::kProximal:
      return make_proximal(settings, objective, std::move(first_theta));
  }
  throw InvalidArgument("The optimizer is unknown.");
}

double guaranteed_step(const LabelSettings& settings, const LabelObjective& objective) {
  const double radius = settings.radius > 0.0 ? settings.radius : 1.0;
  const double slopes = objective.largest_slopes() * objective.longest_row();
  const double queries = static_cast<double>(objective.queries());
  return slopes > 0.0 ? radius / (slopes * std::sqrt(2.0 * queries)) : radius;
}

void project_on_ball(BallNorm norm, double radius, std::span<double> w) {
  if (norm == BallNorm::kL2) {
    double squares = 0.0;
    for (const double entry : w) squares += entry * entry;
    const double length = std::sqrt(squares);
    if (length <= radius) return;
    for (double& entry : w) entry *= radius / length;
    return;
  }
  // Duchi, Shalev-Shwartz, Singer, Chandra, "Efficient projections onto the ℓ₁-ball", ICML 2008, Figure 1.
  std::vector<double> sizes;
  sizes.reserve(w.size());
  double sum = 0.0;
  for (const double entry : w) {
    sizes.push_back(std::abs(entry));
    sum += sizes.back();
  }
  if (sum <= radius) return;
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  double largest = 0.0;
  double threshold = 0.0;
  for (std::size_t count = 1; count <= sizes.size(); ++count) {
    largest += sizes[count - 1];
    const double of_count = (largest - radius) / static_cast<double>(count);
    if (sizes[count - 1] <= of_count) break;
    threshold = of_count;
  }
  shrink(threshold, w);
}

void shrink(double weight, std::span<double> w) {
  for (double& entry : w) entry = std::copysign(std::max(0.0, std::abs(entry) - weight), entry);
}

}  // namespace olrank
