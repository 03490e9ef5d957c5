#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/math/philox.h"
#include "recommend/trees/factor_tree.h"

namespace olrank {

/// A tree of questions that generated users or items answer. Each branch of each node moves their factor;
/// a level moves it less than the one above.
class PlantedTree {
 public:
  struct Shape {
    std::int64_t levels = 3;
    std::int64_t features = 100;
    std::int64_t dimension = 8;
    PhiloxKey key;
  };
  explicit PlantedTree(const Shape& shape);

  /// The feature that the root asks about.
  std::int64_t root_feature() const { return node_features_[0]; }

  /// Where a user or an item is: a random branch at each level.
  struct Place {
    std::vector<double> factor;
    std::vector<std::int64_t> features;  // asked on the path
    std::vector<TreeBranch> branches;
  };
  Place draw_place(PhiloxKey key, std::int64_t row, double personal) const;

 private:
  Shape shape_;
  std::vector<std::int64_t> node_features_;  // nodes level by level
  std::vector<double> moves_;                // of each node's branches
};

}  // namespace olrank
