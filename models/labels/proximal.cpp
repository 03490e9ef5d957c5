#include <algorithm>
#include <cmath>
#include <utility>

#include "models/labels/label_solver.h"

namespace olrank {
namespace {

constexpr int kMostDoublings = 60;

/// Accelerated proximal gradient with backtracking, restarted where the objective rises: Beck and Teboulle,
/// "A fast iterative shrinkage-thresholding algorithm", SIAM J. Imaging Sciences 2009; O'Donoghue and
/// Candès, "Adaptive restart for accelerated gradient schemes", 2015.
class Proximal : public LabelSolver {
 public:
  Proximal(const LabelSettings& settings, LabelObjective& objective, std::vector<float> first_theta)
      : settings_(settings),
        objective_(objective),
        theta_(std::move(first_theta)),
        w_(theta_.begin(), theta_.end()),
        before_(w_),
        ahead_(w_),
        gradient_(w_.size()),
        moved_(w_.size()),
        narrow_(w_.size()) {}

  double advance() override {
    if (converged_) return value_;
    const double momentum = 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * momentum_ * momentum_));
    for (std::size_t k = 0; k < w_.size(); ++k)
      ahead_[k] = w_[k] + (momentum_ - 1.0) / momentum * (w_[k] - before_[k]);
    momentum_ = momentum;
    const double smooth = smooth_at(ahead_, gradient_);
    double distance_sq = 0.0;
    double smooth_moved = 0.0;
    for (int doubling = 0; doubling < kMostDoublings; ++doubling) {
      for (std::size_t k = 0; k < w_.size(); ++k) moved_[k] = ahead_[k] - gradient_[k] / curvature_;
      if (settings_.l1 > 0.0) shrink(settings_.l1 / curvature_, moved_);
      if (settings_.radius > 0.0) project_on_ball(settings_.radius_norm, settings_.radius, moved_);
      double linear = 0.0;
      distance_sq = 0.0;
      for (std::size_t k = 0; k < w_.size(); ++k) {
        const double difference = moved_[k] - ahead_[k];
        linear += gradient_[k] * difference;
        distance_sq += difference * difference;
      }
      smooth_moved = smooth_at(moved_, {});
      const double bound = smooth + linear + 0.5 * curvature_ * distance_sq;
      if (smooth_moved <= bound + 1e-7 * std::max(1.0, std::abs(bound))) break;
      curvature_ *= 2.0;
    }
    double sizes = 0.0;
    double squares = 0.0;
    for (const double entry : moved_) {
      sizes += std::abs(entry);
      squares += entry * entry;
    }
    const double value = smooth_moved + settings_.l1 * sizes;
    if (started_ && value > value_ && momentum_ > 2.0) {
      momentum_ = 1.0;  // too far ahead: the next step starts from here at rest
      before_ = w_;
      return value_;
    }
    started_ = true;
    value_ = value;
    before_.swap(w_);
    w_ = moved_;
    std::copy(w_.begin(), w_.end(), theta_.begin());
    converged_ =
        curvature_ * std::sqrt(distance_sq) <= settings_.tolerance * std::max(1.0, std::sqrt(squares));
    curvature_ *= 0.9;  // it may have been larger than it is here
    return value_;
  }
  bool converged() const override { return converged_; }
  std::span<const float> theta() const override { return theta_; }

  void fields(StateFields& state) override {
    state.sized("proximal.w", w_);
    state.sized("proximal.before", before_);
    state.numbers("proximal.numbers", momentum_, curvature_, value_);
    state.numbers("proximal.flags", started_, converged_);
    if (state.reads()) std::copy(w_.begin(), w_.end(), theta_.begin());
  }

 private:
  /// Mean loss + λ/2 ‖w‖², and its gradient unless that span is empty.
  double smooth_at(std::span<const double> w, std::span<double> gradient) {
    std::copy(w.begin(), w.end(), narrow_.begin());
    double value = objective_.mean_of_all(narrow_, gradient);
    double squares = 0.0;
    for (const double entry : w) squares += entry * entry;
    for (std::size_t k = 0; k < gradient.size(); ++k) gradient[k] += settings_.l2 * w[k];
    return value + 0.5 * settings_.l2 * squares;
  }

  LabelSettings settings_;
  LabelObjective& objective_;
  std::vector<float> theta_;
  std::vector<double> w_;
  std::vector<double> before_;
  std::vector<double> ahead_;
  std::vector<double> gradient_;
  std::vector<double> moved_;
  std::vector<float> narrow_;
  double momentum_ = 1.0;
  double curvature_ = 1.0;
  double value_ = 0.0;
  bool started_ = false;
  bool converged_ = false;
};

}  // namespace

std::unique_ptr<LabelSolver> make_proximal(const LabelSettings& settings, LabelObjective& objective,
                                           std::vector<float> first_theta) {
  return std::make_unique<Proximal>(settings, objective, std::move(first_theta));
}

}  // namespace olrank
