#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/math/portable_exp.h"
#include "models/labels/label_solver.h"

namespace olrank {
namespace {

constexpr std::size_t kMemory = 10;
constexpr int kMostTrials = 40;
constexpr double kDecrease = 1e-4;  // of a step, as a share of its slope
constexpr double kCurvature = 0.9;  // what may be left of the slope

double product(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Limited-memory BFGS: Nocedal and Wright, Numerical Optimization, 2006, Algorithm 7.4. The step is found
/// by bisection to the weak Wolfe conditions, which also serves losses with kinks: Lewis and Overton,
/// "Nonsmooth optimization via quasi-Newton methods", Mathematical Programming 2013, Algorithm 2.6. Every
/// iterate is one of float32 numbers, so that the line search compares objectives of parameters that exist.
class Lbfgs : public LabelSolver {
 public:
  Lbfgs(const LabelSettings& settings, LabelObjective& objective, std::vector<float> first_theta)
      : settings_(settings),
        objective_(objective),
        theta_(std::move(first_theta)),
        gradient_(theta_.size()),
        trial_(theta_.size()),
        trial_gradient_(theta_.size()),
        direction_(theta_.size()) {}

  double advance() override {
    if (!started_) {
      value_ = evaluate(theta_, gradient_);
      started_ = true;
    }
    const double length = norm(gradient_);
    double squares = 0.0;
    for (const float entry : theta_) squares += double{entry} * double{entry};
    if (length <= settings_.tolerance * std::max(1.0, std::sqrt(squares))) converged_ = true;
    if (converged_) return value_;
    find_direction();
    double slope = product(direction_, gradient_);
    if (!(slope < 0.0)) {  // rounding has spoiled the memory
      forget();
      find_direction();
      slope = -length * length;
    }
    const double first = steps_.empty() ? std::min(1.0, 1.0 / length) : 1.0;
    if (search(first, slope)) return value_;
    // A fresh start along the gradient may still help; after that there is nothing to gain.
    converged_ = steps_.empty();
    forget();
    return value_;
  }
  bool converged() const override { return converged_; }
  std::span<const float> theta() const override { return theta_; }

  void fields(StateFields& state) override {
    state.sized("lbfgs.theta", theta_);
    state.sized("lbfgs.gradient", gradient_);
    state.numbers("lbfgs.value", value_);
    state.numbers("lbfgs.started", started_);
    state.numbers("lbfgs.converged", converged_);
    auto entries = static_cast<std::int64_t>(steps_.size());
    state.numbers("lbfgs.memory", entries);
    if (state.reads()) forget();
    for (std::int64_t entry = 0; entry < entries; ++entry) {
      if (state.reads()) {
        steps_.emplace_back(theta_.size());
        changes_.emplace_back(theta_.size());
      }
      state.sized("lbfgs.step", steps_[entry]);
      state.sized("lbfgs.change", changes_[entry]);
    }
  }

 private:
  double evaluate(std::span<const float> theta, std::span<double> gradient) {
    const double mean = objective_.mean_of_all(theta, gradient);
    for (std::size_t k = 0; k < theta.size(); ++k) gradient[k] += settings_.l2 * double{theta[k]};
    return mean + penalty(settings_, theta);
  }

  void forget() {
    steps_.clear();
    changes_.clear();
  }

  /// direction = −H gradient, H the estimate of the inverse Hessian.
  void find_direction() {
    for (std::size_t k = 0; k < direction_.size(); ++k) direction_[k] = -gradient_[k];
    std::vector<double> shares(steps_.size());
    for (std::size_t entry = steps_.size(); entry-- > 0;) {
      shares[entry] = product(steps_[entry], direction_) / product(steps_[entry], changes_[entry]);
      for (std::size_t k = 0; k < direction_.size(); ++k)
        direction_[k] -= shares[entry] * changes_[entry][k];
    }
    if (steps_.empty()) return;
    const double scale =
        product(steps_.back(), changes_.back()) / product(changes_.back(), changes_.back());
    for (double& entry : direction_) entry *= scale;
    for (std::size_t entry = 0; entry < steps_.size(); ++entry) {
      const double share =
          shares[entry] - product(changes_[entry], direction_) / product(steps_[entry], changes_[entry]);
      for (std::size_t k = 0; k < direction_.size(); ++k) direction_[k] += share * steps_[entry][k];
    }
  }

  /// Moves along the direction; false if no step lowers the objective.
  bool search(double step, double slope) {
    double low = 0.0;
    double high = 0.0;  // 0: none yet
    std::vector<float> best;
    std::vector<double> best_gradient;
    double best_value = value_;
    for (int trial = 0; trial < kMostTrials; ++trial) {
      for (std::size_t k = 0; k < trial_.size(); ++k)
        trial_[k] = static_cast<float>(double{theta_[k]} + step * direction_[k]);
      if (trial_ == theta_) break;
      const double value = evaluate(trial_, trial_gradient_);
      if (value < best_value) {
        best = trial_;
        best_gradient = trial_gradient_;
        best_value = value;
      }
      if (!(value <= value_ + kDecrease * step * slope)) {
        high = step;
      } else if (product(direction_, trial_gradient_) < kCurvature * slope) {
        low = step;
      } else {
        break;
      }
      step = high > 0.0 ? 0.5 * (low + high) : 2.0 * low;
    }
    if (best.empty()) return false;
    accept(best, best_gradient, best_value);
    return true;
  }

  void accept(std::vector<float>& theta, std::vector<double>& gradient, double value) {
    std::vector<double> step(theta.size());
    std::vector<double> change(theta.size());
    for (std::size_t k = 0; k < theta.size(); ++k) {
      step[k] = double{theta[k]} - double{theta_[k]};
      change[k] = gradient[k] - gradient_[k];
    }
    const double curvature = product(step, change);
    if (curvature > 1e-10 * std::sqrt(product(step, step) * product(change, change))) {
      if (steps_.size() == kMemory) {
        steps_.erase(steps_.begin());
        changes_.erase(changes_.begin());
      }
      steps_.push_back(std::move(step));
      changes_.push_back(std::move(change));
    }
    theta_.swap(theta);
    gradient_.swap(gradient);
    value_ = value;
  }

  LabelSettings settings_;
  LabelObjective& objective_;
  std::vector<float> theta_;
  std::vector<double> gradient_;
  std::vector<float> trial_;
  std::vector<double> trial_gradient_;
  std::vector<double> direction_;
  std::vector<std::vector<double>> steps_;    // the latest last
  std::vector<std::vector<double>> changes_;  // of the gradient
  double value_ = 0.0;
  bool started_ = false;
  bool converged_ = false;
};

}  // namespace

std::unique_ptr<LabelSolver> make_lbfgs(const LabelSettings& settings, LabelObjective& objective,
                                        std::vector<float> first_theta) {
  return std::make_unique<Lbfgs>(settings, objective, std::move(first_theta));
}

}  // namespace olrank
