#pragma once

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/random/rng_stream.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"
#include "recommend/reviews.h"

namespace olrank {

/// An entry is what a row says about a feature. A feature that it does not list is ∅, unknown.
struct ProfileEntry {
  std::int32_t feature = 0;
  float value = 0.0F;
};

/// The profiles of users or items as a sparse matrix; features ascend within a row. In a tree whose
/// questions are items, a feature is an item and its value the rating.
struct Profiles {
  std::int64_t features = 0;
  std::vector<std::int64_t> begin{0};
  std::vector<ProfileEntry> entries;

  std::int64_t rows() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  std::span<const ProfileEntry> row(std::int64_t number) const {
    return {entries.data() + begin[number], entries.data() + begin[number + 1]};
  }
};

/// Empty for ∅.
std::optional<float> profile_value(std::span<const ProfileEntry> profile, std::int32_t feature);

enum class ProfileKind {
  kUser,  // p + n, how much the user cares: Jia, Toward Reliable Decision-making in Information Systems,
          // PhD thesis, UVA 2022, Eq. (4.2.3)
  kItem,  // p − n, how good it is: Eq. (4.2.4)
};

/// Profiles from counts as added_up() returns them. Values are divided by the row's
/// number of mentions; the thesis says only that they are normalised.
Profiles make_profiles(std::int64_t rows, std::int64_t features, std::span<const MentionCount> counts,
                       ProfileKind kind);

/// The thresholds T_l at which a tree may split a feature, ascending. Each leaves values on both sides.
using Thresholds = Groups<float>;

inline constexpr int kMostThresholds = 8;

/// At most kMostThresholds equal-frequency cuts of a feature's values; none for a single value.
Thresholds equal_frequency_thresholds(const Profiles& profiles);

Thresholds same_threshold(std::int64_t features, float threshold);

/// For each entry of the profiles, how many thresholds of its feature it reaches.
std::vector<std::uint8_t> reached_thresholds(const Profiles& profiles, const Thresholds& thresholds);

/// The answers to a node's question about its feature.
enum class TreeBranch : std::uint8_t { kAtLeast, kBelow, kUnknown };
template <>
struct EnumNames<TreeBranch> {
  static constexpr std::array values = names_in_order<TreeBranch>("at_least", "below", "unknown");
};
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

/// {"depth", "nodes": [{"node", "level", "parent", "rows", "factor", and of inner nodes "feature",
/// "threshold", "at_least", "below", "unknown"}, …]}: children as numbers of nodes. `questions` are the
/// names of what nodes ask about.
nlohmann::ordered_json tree_json(const FactorTree& tree, const NameTable& questions);

/// When personal terms are added to the factors of leaves: after the last pass, or in every pass, so that
/// the other side's tree sees them. Which one is meant is not said in Jia, PhD thesis, UVA 2022, §4.2.
enum class PersonalTerms { kEnd, kEvery };
template <>
struct EnumNames<PersonalTerms> {
  static constexpr std::array values = names_in_order<PersonalTerms>("end", "every");
};

/// The trees of fact and fmf. Jia, PhD thesis, UVA 2022, prints depth 6 and dimension 20, no other value.
struct TreeSettings {
  std::int64_t user_depth = 6;  // h
  std::int64_t item_depth = 6;
  std::int64_t node_rows = 20;
  bool parent_factor = true;
  PersonalTerms personal = PersonalTerms::kEvery;
  double user_penalty = 300.0;    // λ_u
  double item_penalty = 300.0;    // λ_v
  double tree_pair_weight = 5.0;  // λ_b
  double least_change = 1e-3;
  double like_at = 4.0;
  // The rest are no settings of users.
  std::int64_t pairs_per_rating = 2;  // that fact draws in each pass
  std::int64_t finalists = 5;         // of a split that are fitted with their pairs
  std::int64_t descent_steps = 30;    // of AdaGrad in such a fit
  double descent_step_size = 0.1;
  std::int64_t start_passes = 10;  // of the plain factorisation that gives the first item factors

  static const Schema& schema();
};

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
