#include "models/labels/label_solver.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "core/math/portable_exp.h"

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

double guaranteed_step(const LabelSettings& settings, const LabelObjective& objective) {
  const double radius = settings.radius > 0.0 ? settings.radius : 1.0;
  const double slopes = objective.largest_slopes() * objective.longest_row();
  const double queries = static_cast<double>(objective.queries());
  return slopes > 0.0 ? radius / (slopes * std::sqrt(2.0 * queries)) : radius;
}

void project_on_ball(BallNorm norm, double radius, std::span<double> w) {
  if (norm == BallNorm::kL2) {
    const double length = olrank::norm(w);
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

namespace {

/// It goes over the queries in a new random order each pass.
class ShuffledSolver : public LabelSolver {
 protected:
  ShuffledSolver(const LabelSettings& settings, LabelObjective& objective, PhiloxKey key)
      : settings_(settings), objective_(objective), order_(objective.queries()), key_(key) {}

  void begin_pass() {
    ++pass_;
    std::iota(order_.begin(), order_.end(), 0);
    RngStream(key_, pass_, 0, 1).shuffle(std::span(order_));
  }
  /// The objective of a pass that met these losses and ended at θ.
  double objective_of(double losses, std::span<const float> theta) const {
    return losses / static_cast<double>(std::max<std::size_t>(1, order_.size())) +
           penalty(settings_, theta);
  }

  LabelSettings settings_;
  LabelObjective& objective_;
  std::vector<std::int64_t> order_;
  std::uint32_t pass_ = 0;
  std::int64_t steps_ = 0;

 private:
  PhiloxKey key_;
};

/// Mini-batches of queries. The penalty's gradient is part of every step.
class AdamSolver : public ShuffledSolver {
 public:
  AdamSolver(const LabelSettings& settings, LabelObjective& objective, PhiloxKey key,
             std::vector<float> first_theta)
      : ShuffledSolver(settings, objective, key),
        step_(settings.learning_rate > 0.0 ? settings.learning_rate : LabelSettings::kAdamStep),
        theta_(std::move(first_theta)),
        position_(theta_.begin(), theta_.end()),
        first_(theta_.size()),
        second_(theta_.size()) {}

  double advance() override {
    begin_pass();
    const AdamPass pass{order_, settings_.batch, steps_, step_, settings_.l2};
    const double sum = objective_.adam_pass(pass, {theta_, position_, {first_, second_}});
    steps_ += pass.steps();
    step_ *= settings_.learning_rate_decay;
    return objective_of(sum, theta_);
  }
  std::span<const float> theta() const override { return theta_; }

  void fields(StateFields& state) override {
    state.numbers("adam.pass", pass_);
    state.numbers("adam.steps", steps_);
    state.numbers("adam.step", step_);
    state.sized("adam.position", position_);
    state.sized("adam.first", first_);
    state.sized("adam.second", second_);
    state.sized("adam.theta", theta_);
  }

 private:
  double step_;
  std::vector<float> theta_;
  std::vector<double> position_;
  std::vector<double> first_;
  std::vector<double> second_;
};

/// Online gradient descent, one query a step, and the mean of the iterates before each step, ŵ = (1/n) Σ
/// w_i. Tewari and Chaudhuri, ICML 2015, Theorem 4.
class AveragedDescent : public ShuffledSolver {
 public:
  AveragedDescent(const LabelSettings& settings, LabelObjective& objective, PhiloxKey key,
                  std::vector<float> first_theta)
      : ShuffledSolver(settings, objective, key),
        step_(settings.learning_rate > 0.0 ? settings.learning_rate : guaranteed_step(settings, objective)),
        latest_(std::move(first_theta)),
        mean_(latest_),
        w_(latest_.begin(), latest_.end()),
        sum_(latest_.size()),
        gradient_(latest_.size()) {}

  double advance() override {
    begin_pass();
    double losses = 0.0;
    for (std::size_t place = 0; place < order_.size(); ++place) {
      losses +=
          objective_.mean(latest_, std::span<const std::int64_t>(order_).subspan(place, 1), gradient_);
      for (std::size_t k = 0; k < w_.size(); ++k) {
        sum_[k] += w_[k];
        w_[k] -= step_ * (gradient_[k] + settings_.l2 * w_[k]);
      }
      if (settings_.radius > 0.0) project_on_ball(settings_.radius_norm, settings_.radius, w_);
      std::copy(w_.begin(), w_.end(), latest_.begin());
      ++steps_;
    }
    for (std::size_t k = 0; k < w_.size(); ++k)
      mean_[k] = static_cast<float>(sum_[k] / static_cast<double>(std::max<std::int64_t>(1, steps_)));
    return objective_of(losses, latest_);
  }
  std::span<const float> theta() const override { return mean_; }
  std::span<const float> latest() const override { return latest_; }

  void fields(StateFields& state) override {
    state.numbers("descent.pass", pass_);
    state.numbers("descent.steps", steps_);
    state.sized("descent.w", w_);
    state.sized("descent.sum", sum_);
    state.sized("descent.mean", mean_);
    if (state.reads()) std::copy(w_.begin(), w_.end(), latest_.begin());
  }

 private:
  double step_;
  std::vector<float> latest_;
  std::vector<float> mean_;
  std::vector<double> w_;
  std::vector<double> sum_;
  std::vector<double> gradient_;
};

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
    for (const double entry : moved_) sizes += std::abs(entry);
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
    converged_ = curvature_ * std::sqrt(distance_sq) <= settings_.tolerance * std::max(1.0, norm(w_));
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
    const double value = objective_.mean_of_all(narrow_, gradient);
    const double squares = std::inner_product(w.begin(), w.end(), w.begin(), 0.0);
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

std::unique_ptr<LabelSolver> make_adam(const LabelSettings& settings, LabelObjective& objective,
                                       PhiloxKey key, std::vector<float> first_theta) {
  return std::make_unique<AdamSolver>(settings, objective, key, std::move(first_theta));
}

std::unique_ptr<LabelSolver> make_label_solver(const LabelSettings& settings, LabelObjective& objective,
                                               PhiloxKey key, std::vector<float> first_theta) {
  check_label_settings(settings);
  if (settings.optimizer == LabelOptimizer::kLbfgs)
    return make_lbfgs(settings, objective, std::move(first_theta));
  if (settings.optimizer == LabelOptimizer::kOgdAverage)
    return std::make_unique<AveragedDescent>(settings, objective, key, std::move(first_theta));
  if (settings.optimizer == LabelOptimizer::kProximal)
    return std::make_unique<Proximal>(settings, objective, std::move(first_theta));
  return make_adam(settings, objective, key, std::move(first_theta));
}

}  // namespace olrank
