#include "recommend/trees/tree_model.h"

#include <algorithm>
#include <utility>

#include "core/io/state_archive.h"
#include "recommend/trees/tree_explanation.h"

namespace olrank {
namespace {

void save_tree(StateWriter& state, const FactorTree& tree) {
  std::vector<std::int32_t> features;
  std::vector<float> thresholds;
  std::vector<std::int64_t> rows;
  std::vector<float> factors;
  for (std::int32_t number = 0; number < tree.size(); ++number) {
    features.push_back(tree.node(number).feature);
    thresholds.push_back(tree.node(number).threshold);
    rows.push_back(tree.node(number).rows);
    const std::span<const float> factor = tree.factor(number);
    factors.insert(factors.end(), factor.begin(), factor.end());
  }
  state.put("tree.features", features);
  state.put("tree.thresholds", thresholds);
  state.put("tree.rows", rows);
  state.put("tree.factors", factors);
}

/// Nodes were added in the order of their numbers, three with each split in the same order, so that the
/// questions alone give the shape back.
FactorTree read_tree(StateReader& state, int dimension, std::int64_t features) {
  const std::vector<std::int32_t> asked = state.get<std::int32_t>("tree.features");
  const std::vector<float> thresholds = state.get<float>("tree.thresholds");
  const std::vector<std::int64_t> rows = state.get<std::int64_t>("tree.rows");
  const std::vector<float> factors = state.get<float>("tree.factors");
  if (thresholds.size() != asked.size() || rows.size() != asked.size() ||
      factors.size() != asked.size() * static_cast<std::size_t>(dimension)) {
    state.fail("the parts of a tree do not fit together");
  }
  FactorTree tree(dimension);
  for (std::int32_t number = 0; number < std::ssize(asked); ++number) {
    if (number >= tree.size() || asked[number] >= features)
      state.fail("a tree has nodes that nothing leads to");
    if (asked[number] >= 0) tree.split(number, asked[number], thresholds[number]);
    tree.node(number).rows = rows[number];
  }
  if (tree.size() != std::ssize(asked)) state.fail("a tree lacks nodes");
  for (std::int32_t number = 0; number < tree.size(); ++number)
    std::copy_n(factors.begin() + std::ptrdiff_t{number} * dimension, dimension,
                tree.factor(number).begin());
  return tree;
}

void save_factors(StateWriter& state, const FactorRows& factors) {
  state.put("factors", factors.padded_values());
}

FactorRows read_factors(StateReader& state, std::int64_t rows, int dimension) {
  FactorRows factors(rows, dimension);
  state.get_into("factors", factors.padded_values());
  return factors;
}

void save_profiles(StateWriter& state, const Profiles& profiles) {
  std::vector<std::int32_t> features;
  std::vector<float> values;
  for (const ProfileEntry& entry : profiles.entries) {
    features.push_back(entry.feature);
    values.push_back(entry.value);
  }
  state.put("profiles.begin", profiles.begin);
  state.put("profiles.features", features);
  state.put("profiles.values", values);
}

Profiles read_profiles(StateReader& state, std::int64_t rows, std::int64_t features) {
  Profiles profiles;
  profiles.features = features;
  profiles.begin.resize(rows + 1);
  state.get_into("profiles.begin", std::span<std::int64_t>(profiles.begin));
  const std::vector<std::int32_t> numbers = state.get<std::int32_t>("profiles.features");
  const std::vector<float> values = state.get<float>("profiles.values");
  const bool fit = numbers.size() == values.size() && profiles.begin.front() == 0 &&
                   profiles.begin.back() == std::ssize(numbers) && std::ranges::is_sorted(profiles.begin) &&
                   std::ranges::all_of(numbers, [&](std::int32_t n) { return n >= 0 && n < features; });
  if (!fit) state.fail("profiles do not fit the model");
  for (std::size_t entry = 0; entry < numbers.size(); ++entry)
    profiles.entries.push_back({numbers[entry], values[entry]});
  return profiles;
}

std::vector<std::int32_t> read_leaves(StateReader& state, std::int64_t rows, const FactorTree& tree) {
  std::vector<std::int32_t> leaves(rows);
  state.get_into("leaves", std::span<std::int32_t>(leaves));
  for (const std::int32_t leaf : leaves) {
    if (leaf < 0 || leaf >= tree.size() || !tree.node(leaf).is_leaf())
      state.fail("somebody's leaf is not one of the tree");
  }
  return leaves;
}

}  // namespace

void TreeModel::save(StateWriter& state) const {
  state.put("dimension", std::int64_t{users.dimension()});
  save_tree(state, user_tree);
  save_factors(state, users);
  save_factors(state, items);
  state.put("leaves", user_leaf);
  if (questions == TreeQuestions::kItems) return;
  save_tree(state, item_tree);
  state.put("leaves", item_leaf);
  save_profiles(state, user_profiles);
  save_profiles(state, item_profiles);
}

TreeModel read_tree_model(StateReader& state, TreeQuestions questions, std::int64_t users,
                          std::int64_t items, std::int64_t features) {
  TreeModel model;
  model.questions = questions;
  const auto dimension = state.get_one<std::int64_t>("dimension");
  if (dimension < 1 || dimension > 1 << 20) state.fail("its dimension is none");
  const int d = static_cast<int>(dimension);
  model.user_tree = read_tree(state, d, questions == TreeQuestions::kItems ? items : features);
  model.users = read_factors(state, users, d);
  model.items = read_factors(state, items, d);
  model.user_leaf = read_leaves(state, users, model.user_tree);
  if (questions == TreeQuestions::kItems) return model;
  model.item_tree = read_tree(state, d, features);
  model.item_leaf = read_leaves(state, items, model.item_tree);
  model.user_profiles = read_profiles(state, users, features);
  model.item_profiles = read_profiles(state, items, features);
  return model;
}

Profiles profile_of_reviews(std::span<const KnownReview> reviews, TreeQuestions questions,
                            std::int64_t features) {
  if (questions == TreeQuestions::kItems) {
    Profiles profile;
    profile.features = features;
    for (const KnownReview& review : reviews) {
      if (review.item >= 0 && review.item < features)
        profile.entries.push_back({review.item, review.rating});
    }
    std::ranges::stable_sort(profile.entries, {}, &ProfileEntry::feature);
    profile.begin.push_back(std::ssize(profile.entries));
    return profile;
  }
  std::vector<MentionCount> counts;
  std::vector<const Mention*> mentions;
  for (const KnownReview& review : reviews) {
    for (const Mention& mention : review.mentions) {
      if (mention.feature >= 0 && mention.feature < features) mentions.push_back(&mention);
    }
  }
  std::ranges::sort(mentions, {}, &Mention::feature);
  for (const Mention* mention : mentions) {
    if (counts.empty() || counts.back().feature != mention->feature)
      counts.push_back({.feature = mention->feature});
    ++(mention->sentiment > 0 ? counts.back().positive : counts.back().negative);
  }
  return make_profiles(1, features, counts, ProfileKind::kUser);
}

void TreeRecommender::score(std::int64_t user, std::span<float> scores) const {
  score_rows(model_.items, model_.users.row(user), scores);
}

void TreeRecommender::score_at(std::int32_t node, std::span<float> scores) const {
  score_rows(model_.items, model_.user_tree.factor(node), scores);
}

void TreeRecommender::score_new_user(std::span<const KnownReview> reviews, std::span<float> scores) const {
  const std::int64_t features =
      model_.questions == TreeQuestions::kItems ? model_.items.rows() : model_.user_profiles.features;
  const Profiles profile = profile_of_reviews(reviews, model_.questions, features);
  score_at(model_.user_tree.leaf_of(profile.row(0)), scores);
}

std::optional<Explanation> TreeRecommender::explain(std::int64_t user, std::int64_t item,
                                                    const ReviewNames& names) const {
  if (model_.questions == TreeQuestions::kItems) return std::nullopt;
  return explain_by_paths(model_, user, item, names);
}

}  // namespace olrank
