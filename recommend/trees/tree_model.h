#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "recommend/recommender.h"
#include "recommend/trees/factor_tree.h"
#include "recommend/trees/squared_sums.h"

namespace olrank {

/// The nodes of the users' tree ask about one of these.
enum class TreeQuestions : std::uint8_t {
  kFeatures,  // fact: how much a feature matters
  kItems,     // fmf: how an item was rated
};

/// A model of trees: r̂_ij = u_i·v_j. Where questions are about items there is no items' tree.
struct TreeModel {
  TreeQuestions questions = TreeQuestions::kFeatures;
  FactorTree user_tree;
  FactorTree item_tree;
  FactorRows users;  // leaf factors with personal terms
  FactorRows items;
  std::vector<std::int32_t> user_leaf;
  std::vector<std::int32_t> item_leaf;  // empty without items' tree
  Profiles user_profiles;               // of the training; empty where questions are about items
  Profiles item_profiles;

  void fields(StateFields& state, std::int64_t user_rows, std::int64_t item_rows, std::int64_t features);
  void save(StateWriter& state) const;
};
/// Throws IoError for what save() did not write, or wrote for other counts.
TreeModel read_tree_model(StateReader& state, TreeQuestions questions, std::int64_t users,
                          std::int64_t items, std::int64_t features);

/// The profile of a user of whom some reviews are known: none gives ∅ everywhere.
Profiles profile_of_reviews(std::span<const KnownReview> reviews, TreeQuestions questions,
                            std::int64_t features);

class TreeRecommender : public Recommender {
 public:
  explicit TreeRecommender(TreeModel model) : model_(std::move(model)) {}

  void score(std::int64_t user, std::span<float> scores) const override;
  bool scores_new_users() const override { return true; }
  /// Walks to a leaf of the users' tree and takes its factor.
  void score_new_user(std::span<const KnownReview> reviews, std::span<float> scores) const override;
  /// Both paths of the trees; nothing where questions are about items.
  std::optional<Explanation> explain(std::int64_t user, std::int64_t item,
                                     const ReviewNames& names) const override;
  void save(StateWriter& state) const override { model_.save(state); }

  /// Scores for somebody who has come to a node of the users' tree.
  void score_at(std::int32_t node, std::span<float> scores) const;
  const TreeModel& trees() const { return model_; }
  void replace(TreeModel model) { model_ = std::move(model); }

 private:
  TreeModel model_;
};

}  // namespace olrank
