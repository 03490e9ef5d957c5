#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/math/philox.h"
#include "core/settings/schema.h"
#include "recommend/trees/factor_tree.h"

namespace olrank {

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
