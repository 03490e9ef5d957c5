#include "cuda/ops/theory_alpha.h"

#include <cmath>

#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

class TheoryAlphaKernelTest : public KernelTest {};

TEST_P(TheoryAlphaKernelTest, SetsTheAlphaOfTheLogDeterminant) {
  const TheoryAlpha theory{0.5, 2.0, 0.05, 3.0};
  for (const double log_det : {0.0, 1.5, 4000.0}) {
    const auto log_det_there = on_device(std::vector<double>{log_det});
    auto rule = on_device(std::vector<CertaintyRule>{{9.0, 0.125}});
    device::set_theory_alpha(nullptr, theory, log_det_there.data(), rule.data());
    const CertaintyRule found = rule.to_host()[0];
    const long double exact =
        0.5L * (0.5L * std::sqrt(static_cast<long double>(log_det) - 2.0L * std::log(0.05L)) +
                std::sqrt(3.0L) * 2.0L);
    // A device's logarithm may differ in its last bits.
    EXPECT_NEAR(found.alpha, static_cast<double>(exact), 1e-14 * static_cast<double>(exact));
    EXPECT_EQ(found.least_difference, 0.125);
  }
}

TEST_P(TheoryAlphaKernelTest, SumsTheLogarithmsOfADiagonal) {
  for (const std::int64_t parameters : {0, 1, 31, 32, 33, 256, 1000}) {
    std::vector<double> diagonal;
    long double exact = 0.0L;
    for (const float draw : random_numbers(parameters, 51)) {
      diagonal.push_back(2.5 + std::abs(double{draw}));
      exact += std::log(static_cast<long double>(diagonal.back()) / 2.5L);
    }
    const auto diagonal_there = on_device(diagonal);
    DeviceArray<double> log_det(1);
    device::diagonal_log_det(nullptr, parameters, diagonal_there.data(), 2.5, log_det.data());
    // Sums of up to 1,000 positive numbers below 2, in double.
    EXPECT_NEAR(log_det.to_host()[0], static_cast<double>(exact), 1e-12) << parameters;
  }
}

OLRANK_KERNEL_TESTS(TheoryAlphaKernelTest);

}  // namespace
}  // namespace olrank
