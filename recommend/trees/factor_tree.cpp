#include "recommend/trees/factor_tree.h"

#include <algorithm>
#include <cassert>

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

}  // namespace olrank
