#include <algorithm>
#include <numeric>
#include <utility>

#include "models/labels/label_solver.h"

namespace olrank {
namespace {

/// Mini-batches of queries, in a new random order each pass. The penalty's gradient is part of every step.
class AdamSolver : public LabelSolver {
 public:
  AdamSolver(const LabelSettings& settings, LabelObjective& objective, PhiloxKey key,
             std::vector<float> first_theta)
      : settings_(settings),
        objective_(objective),
        key_(key),
        theta_(std::move(first_theta)),
        position_(theta_.begin(), theta_.end()),
        first_(theta_.size()),
        second_(theta_.size()),
        order_(objective.queries()) {
    step_ = settings.learning_rate > 0.0 ? settings.learning_rate : LabelSettings::kAdamStep;
  }

  double advance() override {
    ++pass_;
    std::iota(order_.begin(), order_.end(), 0);
    RngStream(key_, pass_, 0, 1).shuffle(std::span(order_));
    const AdamPass pass{order_, settings_.batch, steps_, step_, settings_.l2};
    const double sum = objective_.adam_pass(pass, {theta_, position_, {first_, second_}});
    steps_ += pass.steps();
    step_ *= settings_.learning_rate_decay;
    return sum / static_cast<double>(std::max<std::size_t>(1, order_.size())) + penalty(settings_, theta_);
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
  LabelSettings settings_;
  LabelObjective& objective_;
  PhiloxKey key_;
  std::uint32_t pass_ = 0;
  std::int64_t steps_ = 0;
  double step_ = 0.0;
  std::vector<float> theta_;
  std::vector<double> position_;
  std::vector<double> first_;
  std::vector<double> second_;
  std::vector<std::int64_t> order_;
};

}  // namespace

std::unique_ptr<LabelSolver> make_adam(const LabelSettings& settings, LabelObjective& objective,
                                       PhiloxKey key, std::vector<float> first_theta) {
  return std::make_unique<AdamSolver>(settings, objective, key, std::move(first_theta));
}

}  // namespace olrank
