#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "recommend/trees/profiles.h"

namespace olrank {

/// The answers to a node's question about its feature.
enum class TreeBranch : std::uint8_t { kAtLeast, kBelow, kUnknown };
inline constexpr int kTreeBranches = 3;

/// A node of a factorisation tree. Jia, Toward Reliable Decision-making in Information Systems, PhD thesis,
/// UVA 2022, Eq. (4.2.5).
struct TreeNode {
  std::int32_t parent = -1;
  std::int32_t level = 0;     // 0 at the root
  std::int32_t feature = -1;  // -1 in a leaf
  float threshold = 0.0F;
  std::array<std::int32_t, kTreeBranches> children{-1, -1, -1};
  std::int64_t rows = 0;  // how many users or items of the training data came here

  bool is_leaf() const { return feature < 0; }
};

/// One step of a path: the question of a node, and the branch taken.
struct TreeStep {
  std::int32_t node = 0;
  TreeBranch branch = TreeBranch::kUnknown;
};

/// A tree of questions about features. Each node has a factor, so that a walk may stop anywhere.
class FactorTree {
 public:
  FactorTree() = default;
  /// A root without question.
  explicit FactorTree(int dimension);

  int dimension() const { return dimension_; }
  std::int32_t size() const { return static_cast<std::int32_t>(nodes_.size()); }
  const TreeNode& node(std::int32_t number) const { return nodes_[number]; }
  TreeNode& node(std::int32_t number) { return nodes_[number]; }
  std::span<const float> factor(std::int32_t node) const {
    return {factors_.data() + std::size_t(node) * dimension_, static_cast<std::size_t>(dimension_)};
  }
  std::span<float> factor(std::int32_t node) {
    return {factors_.data() + std::size_t(node) * dimension_, static_cast<std::size_t>(dimension_)};
  }

  /// Gives a leaf its question and three children, which start with its factor.
  void split(std::int32_t leaf, std::int32_t feature, float threshold);
  /// Levels of questions; 0 for a root alone.
  int depth() const;

  /// Where a row with this value of the node's feature goes; empty is ∅.
  TreeBranch branch_of(std::int32_t node, std::optional<float> value) const;
  std::int32_t leaf_of(std::span<const ProfileEntry> profile) const;
  /// The questions from the root to `node`.
  std::vector<TreeStep> path_to(std::int32_t node) const;

 private:
  int dimension_ = 0;
  std::vector<TreeNode> nodes_;
  std::vector<float> factors_;
};

}  // namespace olrank
