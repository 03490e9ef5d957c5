#include "cuda/ops/layer_table.h"

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
    EXPECT_EQ(table.first_unit[l], unit);
    for (std::int64_t row = 0; row < layer.rows; ++row, ++unit) {
      ASSERT_EQ(table.layer_number(unit), l) << unit;
      ASSERT_EQ(table.row_of(unit), row) << unit;
      ASSERT_EQ(table.layer_of(unit).delta, layer.delta) << unit;
    }
  }
}

TEST(LayerTableTest, FindsTheLayerOfEveryUnit) {
  for (const NetworkShape& shape : test_shapes()) expect_every_unit(shape);
  for (const TangentShape& shape : module_shapes()) expect_every_unit(shape);
}

TEST(LayerTableTest, DividesWhereLayersAreThoseOfANetwork) {
  for (const NetworkShape& shape : test_shapes())
    EXPECT_EQ(device::LayerTable(shape).width, shape.depth == 1 ? 1 : shape.width);
  EXPECT_EQ(device::LayerTable(module_shapes()[0]).width, 6) << "residual blocks";
  EXPECT_EQ(device::LayerTable(module_shapes()[1]).width, 0) << "with a plain vector";
  EXPECT_EQ(device::LayerTable(TangentShape::of_rows(23)).width, 1);
}

}  // namespace
}  // namespace olrank
