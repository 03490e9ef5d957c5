#include "cuda/ops/optimiser_step.h"

#include "tests/cuda/kernels/kernel_test.h"

namespace olrank {
namespace {

class OptimiserStepKernelTest : public KernelTest {};

struct State {
  DeviceArray<double> position;
  DeviceArray<double> first;
  DeviceArray<double> second;

  explicit State(std::int64_t numbers) : position(numbers), first(numbers), second(numbers) {}
  device::OptimiserState view() { return {position.data(), first.data(), second.data()}; }
};

std::vector<double> gradient_at(std::int64_t numbers, std::uint64_t step) {
  std::vector<double> gradient;
  for (const float draw : random_numbers(numbers, 40 + step)) gradient.push_back(double{draw});
  return gradient;
}

TEST_P(OptimiserStepKernelTest, AdamAndNesterovFollowTheirFormulas) {
  const std::int64_t p = 300;
  const std::int64_t members = 2;
  const std::vector<double> steps = {0.1, 0.02};
  const std::vector<float> start = random_numbers(members * p, 1);
  const auto steps_there = on_device(steps);
  for (const bool adam : {true, false}) {
    auto theta = on_device(start);
    State state(members * p);
    device::begin_training(nullptr, members * p, theta.data(), state.view());
    std::vector<double> position(start.begin(), start.end());
    std::vector<double> first(position.size());
    std::vector<double> second(position.size());
    std::vector<float> expected = start;
    for (std::int64_t number = 1; number <= 4; ++number) {
      const auto gradient = gradient_at(members * p, static_cast<std::uint64_t>(number));
      const auto gradient_there = on_device(gradient);
      if (adam) {
        device::adam_step(nullptr, members, p, number, gradient_there.data(), steps_there.data(),
                          state.view(), theta.data());
      } else {
        device::nesterov_step(nullptr, members, p, gradient_there.data(), steps_there.data(), state.view(),
                              theta.data());
      }
      const auto found = theta.to_host();
      for (std::size_t k = 0; k < expected.size(); ++k) {
        const double step = steps[k / static_cast<std::size_t>(p)];
        if (adam) {
          first[k] = 0.9 * first[k] + 0.1 * gradient[k];
          second[k] = 0.999 * second[k] + 0.001 * gradient[k] * gradient[k];
          const double mean = first[k] / (1.0 - std::pow(0.9, static_cast<double>(number)));
          const double spread = second[k] / (1.0 - std::pow(0.999, static_cast<double>(number)));
          position[k] -= step * mean / (std::sqrt(spread) + 1e-8);
          expected[k] = static_cast<float>(position[k]);
        } else {
          const double carried = double{expected[k]} - step * gradient[k];
          expected[k] = static_cast<float>(carried + 0.9 * (carried - position[k]));
          position[k] = carried;
        }
      }
      // In double, rounded to float32 once: the last place of a float at most.
      EXPECT_TRUE(all_near(found, expected, 1e-9, 2e-7)) << adam << " " << number;
    }
  }
}

OLRANK_KERNEL_TESTS(OptimiserStepKernelTest);

}  // namespace
}  // namespace olrank
