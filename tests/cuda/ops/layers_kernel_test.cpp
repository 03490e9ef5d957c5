#include <gtest/gtest.h>

#include "core/error.h"
#include "core/ops/optimizer_step.h"
#include "cuda/ops/replay.h"
#include "cuda/ops/tangent_factors.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

TEST(LayerTableTest, FindsTheLayerOfEveryUnit) {
  for (const NetworkShape& network : test_shapes()) {
    const TangentShape shape(network);
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
}

TEST(LayerTableTest, RefusesLayersThatAreNotANetworks) {
  for (const TangentShape& shape : {shape_of_layers({{6, 5, true}, {6, 6, true}, {1, 24}, {1, 6, true}}),
                                    TangentShape(ntk_shape(3, 4, 33))})
    EXPECT_THROW(device::LayerTable{shape}, InvalidArgument);
}

OLRANK_KERNEL_TEST_SUITE(OptimizerStepKernelTest);

constexpr double kDecay = 0.3;

struct State {
  DeviceArray<double> position, first, second;

  explicit State(std::int64_t numbers) : position(numbers), first(numbers), second(numbers) {}
  device::OptimizerState view() { return {position, first, second}; }
};

/// A step of two networks, at the rates of the given number.
void take_step(device::Step kind, std::int64_t number, const std::vector<double>& gradient,
               const std::vector<double>& steps, State& state, DeviceArray<float>& theta) {
  device::optimizer_step(nullptr, kind, 2, std::ssize(gradient) / 2,
                         on_device(std::vector{step_rates(number, kDecay)}), on_device(gradient),
                         on_device(steps), state.view(), theta);
}

TEST_P(OptimizerStepKernelTest, StepsMatchCpu) {
  const std::int64_t p = 300;
  const std::vector<double> steps = {0.1, 0.02};
  const std::vector<float> start = random_numbers(2 * p, 1);
  for (const device::Step kind :
       {device::Step::kDescent, device::Step::kDecayed, device::Step::kAdam, device::Step::kNesterov}) {
    auto theta = on_device(start);
    State state(2 * p);
    device::begin_training(nullptr, 2 * p, theta, state.view());
    std::vector<double> position(start.begin(), start.end());
    std::vector<double> first(position.size());
    std::vector<double> second(position.size());
    std::vector<float> expected = start;
    for (std::int64_t number = 1; number <= 4; ++number) {
      const auto gradient = random_doubles(2 * p, 40 + static_cast<std::uint64_t>(number));
      take_step(kind, number, gradient, steps, state, theta);
      for (std::size_t member = 0; member < steps.size(); ++member) {
        const auto part = [&](auto& values) {
          return std::span(values).subspan(member * static_cast<std::size_t>(p), p);
        };
        if (kind == device::Step::kAdam) {
          adam_step(number, steps[member], kDecay, part(gradient), {part(first), part(second)},
                    part(position), part(expected));
        } else if (kind == device::Step::kNesterov) {
          nesterov_step(steps[member], part(gradient), part(first), part(position), part(expected));
        } else if (kind == device::Step::kDescent) {
          gradient_descent_step(steps[member], part(gradient), part(expected));
        } else {
          decayed_step(steps[member], kDecay, part(gradient), part(position), part(expected));
        }
      }
      // In double, rounded to float32 once: the last place of a float at most.
      EXPECT_TRUE(all_near(theta.to_host(), expected, 1e-9, 2e-7)) << number;
    }
    if (kind != device::Step::kDescent) {
      EXPECT_TRUE(all_near(state.position.to_host(), position, 1e-13, 1e-13)) << "in double";
    }
  }
}

TEST_P(OptimizerStepKernelTest, MembersWithoutAStepDoNotMove) {
  const std::int64_t p = 40;
  for (const device::Step kind : {device::Step::kAdam, device::Step::kNesterov}) {
    auto theta = on_device(random_numbers(2 * p, 4));
    State state(2 * p);
    device::begin_training(nullptr, 2 * p, theta, state.view());
    // Both gather momentum, then the second one has no step.
    for (const double second : {0.1, 0.0}) {
      const auto before = theta.to_host();
      take_step(kind, 1, random_doubles(2 * p, 45), {0.1, second}, state, theta);
      const auto after = theta.to_host();
      EXPECT_NE(before[0], after[0]);
      for (std::int64_t k = p; k < 2 * p; ++k) EXPECT_EQ(before[k] == after[k], second == 0.0);
    }
  }
}

}  // namespace
}  // namespace olrank
