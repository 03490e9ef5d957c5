#include <gtest/gtest.h>

#include "core/error.h"
#include "core/ops/optimizer_step.h"
#include "cuda/ops/layer_table.h"
#include "cuda/ops/optimizer_step.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

namespace device = OLRANK_DEVICE_NAMESPACE;

void expect_every_unit(const TangentShape& shape) {
  const device::LayerTable table(shape);
  ASSERT_EQ(table.depth, std::ssize(shape.layers()));
  EXPECT_EQ(table.units(), shape.units());
  EXPECT_EQ(table.parameters, shape.parameters());
  std::int64_t unit = 0;
  for (std::int64_t l = 0; l < table.depth; ++l) {
    const NetworkLayer& layer = shape.layers()[l];
    for (std::int64_t row = 0; row < layer.rows; ++row, ++unit) {
      ASSERT_EQ(table.layer_number(unit), l) << unit;
      ASSERT_EQ(table.row_of(unit), row) << unit;
      ASSERT_EQ(table.layer_of(unit).delta, layer.delta) << unit;
    }
  }
}

TEST(LayerTableTest, FindsTheLayerOfEveryUnit) {
  for (const NetworkShape& shape : test_shapes()) expect_every_unit(shape);
}

TEST(LayerTableTest, RefusesLayersThatAreNotANetworks) {
  for (const TangentShape& shape : {shape_of_layers({{6, 5, true}, {6, 6, true}, {1, 24}, {1, 6, true}}),
                                    TangentShape(ntk_shape(3, 4, 33))})
    EXPECT_THROW(device::LayerTable{shape}, InvalidArgument);
}

class OptimizerStepKernelTest : public KernelTest {};

constexpr double kDecay = 0.3;

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

TEST_P(OptimizerStepKernelTest, AdamAndNesterovMatchCpu) {
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
        const auto rates = on_device(std::vector{step_rates(number, kDecay)});
        device::optimizer_step(nullptr, device::Step::kAdam, members, p, rates.data(),
                               gradient_there.data(), steps_there.data(), state.view(), theta.data());
      } else {
        device::optimizer_step(nullptr, device::Step::kNesterov, members, p, nullptr, gradient_there.data(),
                               steps_there.data(), state.view(), theta.data());
      }
      const auto found = theta.to_host();
      for (std::size_t member = 0; member < steps.size(); ++member) {
        const auto part = [&](auto& values) {
          return std::span(values).subspan(member * static_cast<std::size_t>(p), p);
        };
        if (adam) {
          adam_step(number, steps[member], kDecay, part(gradient), {part(first), part(second)},
                    part(position), part(expected));
        } else {
          nesterov_step(steps[member], part(gradient), part(first), part(position), part(expected));
        }
      }
      // In double, rounded to float32 once: the last place of a float at most.
      EXPECT_TRUE(all_near(found, expected, 1e-9, 2e-7)) << adam << " " << number;
    }
  }
}

// The obvious formula: position −= step · (gradient + decay · position).
TEST_P(OptimizerStepKernelTest, DecayedStepsKeepThePositionInDouble) {
  const std::int64_t p = 257;
  const std::vector<double> steps = {0.3, 0.01};
  const std::vector<float> start = random_numbers(2 * p, 5);
  const auto steps_there = on_device(steps);
  auto theta = on_device(start);
  State state(2 * p);
  device::begin_training(nullptr, 2 * p, theta.data(), state.view());
  std::vector<double> position(start.begin(), start.end());
  const auto rates = on_device(std::vector{step_rates(1, kDecay)});
  for (std::uint64_t number = 1; number <= 5; ++number) {
    const auto gradient = gradient_at(2 * p, number);
    device::optimizer_step(nullptr, device::Step::kDecayed, 2, p, rates.data(), on_device(gradient).data(),
                           steps_there.data(), state.view(), theta.data());
    for (std::size_t k = 0; k < position.size(); ++k)
      position[k] -= steps[k / static_cast<std::size_t>(p)] * (gradient[k] + kDecay * position[k]);
  }
  EXPECT_TRUE(all_near(state.position.to_host(), position, 1e-13, 1e-13));
  const std::vector<float> expected(position.begin(), position.end());
  EXPECT_TRUE(all_near(theta.to_host(), expected, 1e-9, 2e-7));
}

TEST_P(OptimizerStepKernelTest, GradientDescentMatchesCpu) {
  const std::int64_t p = 257;
  const std::vector<double> steps = {0.3, 0.0};
  const std::vector<float> start = random_numbers(2 * p, 2);
  const auto gradient = gradient_at(2 * p, 3);
  auto theta = on_device(start);
  device::optimizer_step(nullptr, device::Step::kDescent, 2, p, nullptr, on_device(gradient).data(),
                         on_device(steps).data(), {}, theta.data());
  std::vector<float> expected = start;
  gradient_descent_step(steps[0], std::span(gradient).first(p), std::span(expected).first(p));
  EXPECT_TRUE(all_near(theta.to_host(), expected, 1e-9, 2e-7));
}

TEST_P(OptimizerStepKernelTest, MembersWithoutAStepDoNotMove) {
  const std::int64_t p = 40;
  const std::vector<float> start = random_numbers(2 * p, 4);
  const auto gradient = on_device(gradient_at(2 * p, 5));
  const auto rates = on_device(std::vector{step_rates(1, 0.0)});
  for (const bool adam : {true, false}) {
    auto theta = on_device(start);
    State state(2 * p);
    device::begin_training(nullptr, 2 * p, theta.data(), state.view());
    // Both gather momentum, then the second one has no step.
    for (const double second : {0.1, 0.0}) {
      const auto before = theta.to_host();
      const auto steps = on_device(std::vector<double>{0.1, second});
      if (adam) {
        device::optimizer_step(nullptr, device::Step::kAdam, 2, p, rates.data(), gradient.data(),
                               steps.data(), state.view(), theta.data());
      } else {
        device::optimizer_step(nullptr, device::Step::kNesterov, 2, p, nullptr, gradient.data(),
                               steps.data(), state.view(), theta.data());
      }
      const auto after = theta.to_host();
      EXPECT_NE(before[0], after[0]);
      for (std::int64_t k = p; k < 2 * p; ++k) EXPECT_EQ(before[k] == after[k], second == 0.0);
    }
  }
}

OLRANK_KERNEL_TESTS(OptimizerStepKernelTest);

}  // namespace
}  // namespace olrank
