#include <algorithm>
#include <numeric>
#include <utility>

#include "models/labels/label_solver.h"

namespace olrank {
namespace {

/// Online gradient descent, one query a step, and the mean of the iterates before each step, ŵ = (1/n) Σ
/// w_i. Tewari and Chaudhuri, ICML 2015, Theorem 4.
class AveragedDescent : public LabelSolver {
 public:
  AveragedDescent(const LabelSettings& settings, LabelObjective& objective, PhiloxKey key,
                  std::vector<float> first_theta)
      : settings_(settings),
        objective_(objective),
        key_(key),
        step_(settings.learning_rate > 0.0 ? settings.learning_rate : guaranteed_step(settings, objective)),
        latest_(std::move(first_theta)),
        mean_(latest_),
        w_(latest_.begin(), latest_.end()),
        sum_(latest_.size()),
        gradient_(latest_.size()),
        order_(objective.queries()) {}

  double advance() override {
    ++pass_;
    std::iota(order_.begin(), order_.end(), 0);
    RngStream(key_, pass_, 0, 1).shuffle(std::span(order_));
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
    return losses / static_cast<double>(std::max<std::size_t>(1, order_.size())) +
           penalty(settings_, latest_);
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
  LabelSettings settings_;
  LabelObjective& objective_;
  PhiloxKey key_;
  double step_;
  std::uint32_t pass_ = 0;
  std::int64_t steps_ = 0;
  std::vector<float> latest_;
  std::vector<float> mean_;
  std::vector<double> w_;
  std::vector<double> sum_;
  std::vector<double> gradient_;
  std::vector<std::int64_t> order_;
};

}  // namespace

std::unique_ptr<LabelSolver> make_averaged_descent(const LabelSettings& settings, LabelObjective& objective,
                                                   PhiloxKey key, std::vector<float> first_theta) {
  return std::make_unique<AveragedDescent>(settings, objective, key, std::move(first_theta));
}

}  // namespace olrank
