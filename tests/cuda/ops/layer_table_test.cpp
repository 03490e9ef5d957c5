#include "cuda/ops/layer_table.h"

#include "core/error.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

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

}  // namespace
}  // namespace olrank
