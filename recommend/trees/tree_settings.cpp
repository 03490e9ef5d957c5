#include "recommend/trees/tree_settings.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random/rng_stream.h"

namespace olrank {

const Schema& TreeSettings::schema() {
  using S = TreeSettings;
  static const Schema schema =
      SchemaBuilder<S>("recommend", "Factorisation trees.")
          .field("user_depth", &S::user_depth, "levels of questions in the users' tree")
          .symbol("h")
          .between(0, 12)
          .field("item_depth", &S::item_depth, "levels of questions in the items' tree of fact")
          .between(0, 12)
          .field("node_rows", &S::node_rows, "users or items that a node must have to ask a question")
          .at_least(2)
          .field("parent_factor", &S::parent_factor,
                 "a node's factor is its parent's plus a term of its own, and only this term is penalised")
          .field("personal", &S::personal,
                 "when each user and item gets a term of its own: after the last pass of fact, or in every "
                 "pass")
          .field("user_penalty", &S::user_penalty, "weight of the squared factors in the users' tree")
          .symbol("λ_u")
          .above(0)
          .field("item_penalty", &S::item_penalty, "weight of the squared factors of items")
          .symbol("λ_v")
          .above(0)
          .field("tree_pair_weight", &S::tree_pair_weight,
                 "weight of the loss of a pair against a rating's squared error in fact")
          .symbol("λ_b")
          .at_least(0)
          .field("least_change", &S::least_change,
                 "the training ends once a pass changes the loss by less than this share")
          .between(0, 1)
          .field("like_at", &S::like_at, "lowest rating that is a like in fmf's questions")
          .build();
  return schema;
}

namespace {

/// The standard deviation of a move at each level: 1, 0.6, 0.36, …
double move_size(std::int64_t level) {
  return std::pow(0.6, static_cast<double>(level));
}

}  // namespace

PlantedTree::PlantedTree(const Shape& shape) : shape_(shape) {
  std::int64_t nodes = 0;
  std::int64_t on_level = 1;
  for (std::int64_t level = 0; level < shape.levels; ++level, on_level *= kTreeBranches) nodes += on_level;
  // Features are numbered from the most frequent one. Trees ask about frequent features; a tree with more
  // nodes than features asks about some twice.
  std::vector<std::int64_t> order(std::min(shape.features, std::max<std::int64_t>(nodes, 13)));
  std::iota(order.begin(), order.end(), 0);
  RngStream draws(shape.key, 0);
  draws.shuffle(std::span<std::int64_t>(order));
  for (std::int64_t node = 0; node < nodes; ++node)
    node_features_.push_back(order[node % std::ssize(order)]);
  RngStream moves(shape.key, 1);
  std::int64_t node = 0;
  on_level = 1;
  for (std::int64_t level = 0; level < shape.levels; ++level, on_level *= kTreeBranches) {
    for (std::int64_t place = 0; place < on_level; ++place, ++node) {
      for (std::int64_t k = 0; k < kTreeBranches * shape.dimension; ++k)
        moves_.push_back(move_size(level) * moves.normal());
    }
  }
}

PlantedTree::Place PlantedTree::draw_place(PhiloxKey key, std::int64_t row, double personal) const {
  RngStream draws(key, 0, static_cast<std::uint32_t>(row));
  Place place;
  place.factor.assign(shape_.dimension, 0.0);
  std::int64_t node = 0;
  double variance = 0.0;
  for (std::int64_t level = 0; level < shape_.levels; ++level) {
    const auto branch = static_cast<std::int64_t>(draws.index(kTreeBranches));
    place.features.push_back(node_features_[node]);
    place.branches.push_back(static_cast<TreeBranch>(branch));
    for (std::int64_t k = 0; k < shape_.dimension; ++k)
      place.factor[k] += moves_[(node * kTreeBranches + branch) * shape_.dimension + k];
    variance += move_size(level) * move_size(level);
    node = node * kTreeBranches + branch + 1;
  }
  // Unit variance in each dimension, most of it of the tree.
  const double scale = 1.0 / std::sqrt(variance + personal * personal);
  for (double& value : place.factor) value = scale * (value + personal * draws.normal());
  return place;
}

}  // namespace olrank
