#include "models/posterior/posterior_memory.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/models/posterior/posterior_oracle.h"

namespace olrank {
namespace {

TEST(PosteriorMemoryTest, DualPaysUntilAboutTheNumberOfParameters) {
  // n²V against p²V: the two meet where n is a little below p, as tangent kernels cost something too.
  const NetworkShape shape = ntk_shape(136, 100, 2);
  const std::int64_t pairs = primal_pays_from(shape, 120);
  EXPECT_GT(pairs, shape.parameters() / 2);
  EXPECT_LT(pairs, 2 * shape.parameters());
  EXPECT_LT(dual_operations(shape, pairs - 1, 120, 4), primal_operations(shape, 0, 120, 4));
  EXPECT_GE(dual_operations(shape, pairs, 120, 4), primal_operations(shape, 0, 120, 4));
}

}  // namespace
}  // namespace olrank
