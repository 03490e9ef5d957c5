#include "recommend/trees/factor_tree.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

namespace olrank {

FactorTree::FactorTree(int dimension) : dimension_(dimension), nodes_(1), factors_(dimension, 0.0F) {}

void FactorTree::split(std::int32_t leaf, std::int32_t feature, float threshold) {
  assert(nodes_[leaf].is_leaf());
  nodes_[leaf].feature = feature;
  nodes_[leaf].threshold = threshold;
  for (int branch = 0; branch < kTreeBranches; ++branch) {
    nodes_[leaf].children[branch] = size();
    TreeNode child;
    child.parent = leaf;
    child.level = nodes_[leaf].level + 1;
    nodes_.push_back(child);
    factors_.resize(factors_.size() + dimension_);
    std::ranges::copy(factor(leaf), factor(size() - 1).begin());
  }
}

int FactorTree::depth() const {
  std::int32_t depth = 0;
  for (const TreeNode& node : nodes_) depth = std::max(depth, node.level);
  return depth;
}

TreeBranch FactorTree::branch_of(std::int32_t number, std::optional<float> value) const {
  if (!value) return TreeBranch::kUnknown;
  return *value >= nodes_[number].threshold ? TreeBranch::kAtLeast : TreeBranch::kBelow;
}

std::int32_t FactorTree::leaf_of(std::span<const ProfileEntry> profile) const {
  std::int32_t number = 0;
  while (!nodes_[number].is_leaf()) {
    const TreeBranch branch = branch_of(number, profile_value(profile, nodes_[number].feature));
    number = nodes_[number].children[static_cast<int>(branch)];
  }
  return number;
}

std::vector<TreeStep> FactorTree::path_to(std::int32_t number) const {
  std::vector<TreeStep> path;
  while (nodes_[number].parent >= 0) {
    const std::int32_t parent = nodes_[number].parent;
    const auto place = std::ranges::find(nodes_[parent].children, number);
    path.push_back({parent, static_cast<TreeBranch>(place - nodes_[parent].children.begin())});
    number = parent;
  }
  std::ranges::reverse(path);
  return path;
}

nlohmann::ordered_json tree_json(const FactorTree& tree, const NameTable& questions) {
  auto nodes = nlohmann::ordered_json::array();
  for (std::int32_t number = 0; number < tree.size(); ++number) {
    const TreeNode& node = tree.node(number);
    nlohmann::ordered_json json;
    json["node"] = number;
    json["level"] = node.level;
    json["parent"] = node.parent >= 0 ? nlohmann::ordered_json(node.parent) : nullptr;
    json["rows"] = node.rows;
    if (!node.is_leaf()) {
      json["feature"] = std::string(questions[node.feature]);
      json["threshold"] = node.threshold;
      for (int branch = 0; branch < kTreeBranches; ++branch)
        json[std::string(name_of(static_cast<TreeBranch>(branch)))] = node.children[branch];
    }
    json["factor"] = tree.factor(number);
    nodes.push_back(std::move(json));
  }
  return {{"depth", tree.depth()}, {"nodes", std::move(nodes)}};
}

std::optional<float> profile_value(std::span<const ProfileEntry> profile, std::int32_t feature) {
  const auto place = std::ranges::lower_bound(profile, feature, {}, &ProfileEntry::feature);
  if (place == profile.end() || place->feature != feature) return std::nullopt;
  return place->value;
}

Profiles make_profiles(std::int64_t rows, std::int64_t features, std::span<const MentionCount> counts,
                       ProfileKind kind) {
  Profiles profiles;
  profiles.features = features;
  profiles.begin.assign(rows + 1, 0);
  std::vector<std::int64_t> mentions(rows, 0);
  for (const MentionCount& count : counts) {
    mentions[count.row] += count.positive + count.negative;
    ++profiles.begin[count.row + 1];
  }
  std::partial_sum(profiles.begin.begin(), profiles.begin.end(), profiles.begin.begin());
  profiles.entries.reserve(counts.size());
  for (const MentionCount& count : counts) {
    const std::int32_t value =
        count.positive + (kind == ProfileKind::kUser ? count.negative : -count.negative);
    profiles.entries.push_back(
        {count.feature, static_cast<float>(value) / static_cast<float>(mentions[count.row])});
  }
  return profiles;
}

Thresholds equal_frequency_thresholds(const Profiles& profiles) {
  std::vector<std::vector<float>> values(profiles.features);
  for (const ProfileEntry& entry : profiles.entries) values[entry.feature].push_back(entry.value);
  Thresholds thresholds;
  for (std::vector<float>& of_feature : values) {
    std::ranges::sort(of_feature);
    const std::size_t first = thresholds.values.size();
    for (int cut = 1; cut <= kMostThresholds; ++cut) {
      if (of_feature.empty()) break;
      const float value = of_feature[of_feature.size() * cut / (kMostThresholds + 1)];
      if (value <= of_feature.front()) continue;  // nothing would be below it
      if (thresholds.values.size() > first && thresholds.values.back() == value) continue;
      thresholds.values.push_back(value);
    }
    // Frequent lowest values can swallow every cut although others follow.
    if (thresholds.values.size() == first && !of_feature.empty() &&
        of_feature.back() > of_feature.front()) {
      thresholds.values.push_back(*std::ranges::upper_bound(of_feature, of_feature.front()));
    }
    thresholds.begin.push_back(static_cast<std::int64_t>(thresholds.values.size()));
  }
  return thresholds;
}

Thresholds same_threshold(std::int64_t features, float threshold) {
  Thresholds thresholds;
  thresholds.values.assign(features, threshold);
  for (std::int64_t feature = 1; feature <= features; ++feature) thresholds.begin.push_back(feature);
  return thresholds;
}

std::vector<std::uint8_t> reached_thresholds(const Profiles& profiles, const Thresholds& thresholds) {
  std::vector<std::uint8_t> reached(profiles.entries.size());
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const std::span<const float> cuts = thresholds.of(profiles.entries[i].feature);
    const auto above = std::ranges::upper_bound(cuts, profiles.entries[i].value);
    reached[i] = static_cast<std::uint8_t>(above - cuts.begin());
  }
  return reached;
}

const Schema& TreeSettings::schema() {
  using S = TreeSettings;
  static const Schema schema =
      SchemaBuilder<S>("recommend", "Factorisation trees.")
          .field("user_depth", &S::user_depth, "levels of questions in the users' tree", {0, 12})
          .symbol("h")
          .field("item_depth", &S::item_depth, "levels of questions in the items' tree of fact", {0, 12})
          .field("node_rows", &S::node_rows, "users or items that a node must have to ask a question", {2})
          .field("parent_factor", &S::parent_factor,
                 "a node's factor is its parent's plus a term of its own, and only this term is penalised")
          .field("personal", &S::personal,
                 "when each user and item gets a term of its own: after the last pass of fact, or in every "
                 "pass")
          .field("user_penalty", &S::user_penalty, "weight of the squared factors in the users' tree",
                 above(0))
          .symbol("λ_u")
          .field("item_penalty", &S::item_penalty, "weight of the squared factors of items", above(0))
          .symbol("λ_v")
          .field("tree_pair_weight", &S::tree_pair_weight,
                 "weight of the loss of a pair against a rating's squared error in fact", {0})
          .symbol("λ_b")
          .field("least_change", &S::least_change,
                 "the training ends once a pass changes the loss by less than this share", {0, 1})
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
