#include "cuda/ops/optimizer_step.h"

#include "core/ops/optimizer_step.h"
#include "tests/cuda/kernels/kernel_test.h"

namespace olrank {
namespace {

class OptimizerStepKernelTest : public KernelTest {};

struct State {
  DeviceArray<double> position;
  DeviceArray<double> first;
  DeviceArray<double> second;

  explicit State(std::int64_t numbers) : position(numbers), first(numbers), second(numbers) {}
  device::OptimizerState view() { return {position.data(), first.data(), second.data()}; }
};

std::vector<double> gradient_at(std::int64_t numbers, std::uint64_t step) {
  std::vector<double> gradient;
  for (const float draw : random_numbers(numbers, 40 + step)) gradient.push_back(double{draw});
  return gradient;
}

TEST_P(OptimizerStepKernelTest, AdamAndNesterovAreTheProcessors) {
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
      for (std::size_t member = 0; member < steps.size(); ++member) {
        const auto part = [&](auto& values) {
          return std::span(values).subspan(member * static_cast<std::size_t>(p),
                                           static_cast<std::size_t>(p));
        };
        if (adam) {
          adam_step(number, steps[member], 0.0, part(gradient), {part(first), part(second)}, part(position),
                    part(expected));
        } else {
          nesterov_step(steps[member], part(gradient), part(first), part(position), part(expected));
        }
      }
      // In double, rounded to float32 once: the last place of a float at most.
      EXPECT_TRUE(all_near(found, expected, 1e-9, 2e-7)) << adam << " " << number;
    }
  }
}

OLRANK_KERNEL_TESTS(OptimizerStepKernelTest);

}  // namespace
}  // namespace olrank
