#include "recommend/trees/tree_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/io/state_archive.h"

namespace olrank {

namespace {

constexpr std::size_t kMostReasons = 3;

/// A feature that speaks for an item, with the levels and branches of both paths on which it was asked.
struct PathReason {
  std::int32_t feature = 0;
  std::optional<TreeStep> user;  // empty where the user's path does not know the feature
  std::optional<TreeStep> item;
  std::int32_t level = 0;  // the lower one of both

  bool shared() const { return user && item; }
};

/// Nodes were added in the order of their numbers, three with each split in the same order, so that the
/// questions alone give the shape back.
void tree_fields(StateFields& state, FactorTree& tree, int dimension, std::int64_t features) {
  std::vector<std::int32_t> asked;
  std::vector<float> thresholds;
  std::vector<std::int64_t> rows;
  std::vector<float> factors;
  for (std::int32_t number = 0; number < tree.size(); ++number) {
    asked.push_back(tree.node(number).feature);
    thresholds.push_back(tree.node(number).threshold);
    rows.push_back(tree.node(number).rows);
    const std::span<const float> factor = tree.factor(number);
    factors.insert(factors.end(), factor.begin(), factor.end());
  }
  state.any("tree.features", asked);
  state.any("tree.thresholds", thresholds);
  state.any("tree.rows", rows);
  state.any("tree.factors", factors);
  if (!state.reads()) return;
  state.require(thresholds.size() == asked.size() && rows.size() == asked.size() &&
                    factors.size() == asked.size() * static_cast<std::size_t>(dimension),
                "the parts of a tree do not fit together");
  tree = FactorTree(dimension);
  for (std::int32_t number = 0; number < std::ssize(asked); ++number) {
    state.require(number < tree.size() && asked[number] < features,
                  "a tree has nodes that nothing leads to");
    if (asked[number] >= 0) tree.split(number, asked[number], thresholds[number]);
    tree.node(number).rows = rows[number];
  }
  state.require(tree.size() == std::ssize(asked), "a tree lacks nodes");
  for (std::int32_t number = 0; number < tree.size(); ++number)
    std::copy_n(factors.begin() + std::ptrdiff_t{number} * dimension, dimension,
                tree.factor(number).begin());
}

void profile_fields(StateFields& state, Profiles& profiles, std::int64_t rows, std::int64_t features) {
  std::vector<std::int32_t> numbers;
  std::vector<float> values;
  for (const ProfileEntry& entry : profiles.entries) {
    numbers.push_back(entry.feature);
    values.push_back(entry.value);
  }
  if (state.reads()) profiles.begin.resize(rows + 1);
  state.sized("profiles.begin", profiles.begin);
  state.any("profiles.features", numbers);
  state.any("profiles.values", values);
  if (!state.reads()) return;
  state.require(numbers.size() == values.size() && are_rows(profiles.begin, rows, numbers, features),
                "profiles do not fit the model");
  profiles.features = features;
  for (std::size_t entry = 0; entry < numbers.size(); ++entry)
    profiles.entries.push_back({numbers[entry], values[entry]});
}

void leaf_fields(StateFields& state, std::vector<std::int32_t>& leaves, std::int64_t rows,
                 const FactorTree& tree) {
  if (state.reads()) leaves.resize(rows);
  state.sized("leaves", leaves);
  for (const std::int32_t leaf : leaves)
    state.require(leaf >= 0 && leaf < tree.size() && tree.node(leaf).is_leaf(),
                  "somebody's leaf is not one of the tree");
}

/// The lowest known answer about each feature of a path, from the leaf upwards.
std::vector<std::pair<std::int32_t, TreeStep>> known_answers(const FactorTree& tree, std::int32_t leaf) {
  std::vector<TreeStep> path = tree.path_to(leaf);
  std::ranges::reverse(path);
  std::vector<std::pair<std::int32_t, TreeStep>> answers;
  for (const TreeStep& step : path) {
    const std::int32_t feature = tree.node(step.node).feature;
    const bool lower =
        std::ranges::any_of(answers, [&](const auto& answer) { return answer.first == feature; });
    if (step.branch != TreeBranch::kUnknown && !lower) answers.emplace_back(feature, step);
  }
  return answers;
}

std::string reason_sentence(const PathReason& reason, std::string_view item, std::string_view feature) {
  const bool item_good = reason.item && reason.item->branch == TreeBranch::kAtLeast;
  const bool user_emphasises = reason.user && reason.user->branch == TreeBranch::kAtLeast;
  const std::string_view quality = item_good ? "good" : "passable";
  const std::string_view attention = user_emphasises ? "emphasis" : "taste";
  if (reason.shared()) {
    return fmt::format("{} because its {} {} matches with your {} on {}.", item,
                       item_good ? "excellent" : quality, feature, attention, feature);
  }
  if (reason.item) return fmt::format("{} because of its {} {}.", item, quality, feature);
  return fmt::format("{} because it suits people with your {} on {}.", item, attention, feature);
}

nlohmann::ordered_json path_json(const FactorTree& tree, std::int32_t leaf,
                                 std::span<const ProfileEntry> profile, const NameTable& features) {
  auto steps = nlohmann::ordered_json::array();
  for (const TreeStep& step : tree.path_to(leaf)) {
    const TreeNode& node = tree.node(step.node);
    const std::optional<float> value = profile_value(profile, node.feature);
    steps.push_back({{"node", step.node},
                     {"feature", features[node.feature]},
                     {"threshold", node.threshold},
                     {"value", value ? nlohmann::ordered_json(*value) : nullptr},
                     {"branch", name_of(step.branch)}});
  }
  return steps;
}

nlohmann::ordered_json side_json(const FactorTree& tree, const std::optional<TreeStep>& step) {
  if (!step) return nullptr;
  return {{"node", step->node},
          {"level", tree.node(step->node).level},
          {"threshold", tree.node(step->node).threshold},
          {"branch", name_of(step->branch)}};
}

/// The reasons why an item is for a user: features on both paths first, then those on one, each group from
/// the leaves upwards. Answers "unknown" give no reason. Jia, Toward Reliable Decision-making in
/// Information Systems, PhD thesis, UVA 2022, §4.2.3.
std::vector<PathReason> path_reasons(const TreeModel& model, std::int32_t user_leaf,
                                     std::int32_t item_leaf) {
  const auto of_user = known_answers(model.user_tree, user_leaf);
  const auto of_item = known_answers(model.item_tree, item_leaf);
  std::vector<PathReason> reasons;
  reasons.reserve(of_user.size() + of_item.size());
  for (const auto& [feature, step] : of_user)
    reasons.push_back({feature, step, {}, model.user_tree.node(step.node).level});
  for (const auto& [feature, step] : of_item) {
    const std::int32_t level = model.item_tree.node(step.node).level;
    const auto known = std::ranges::find(reasons, feature, &PathReason::feature);
    if (known == reasons.end()) {
      reasons.push_back({feature, {}, step, level});
    } else {
      known->item = step;
      known->level = std::max(known->level, level);
    }
  }
  std::ranges::stable_sort(reasons, [](const PathReason& left, const PathReason& right) {
    if (left.shared() != right.shared()) return left.shared();
    return left.level > right.level;
  });
  return reasons;
}

/// Up to kMostReasons reasons as sentences; all of them, and both paths with every predicate and value, as
/// JSON.
Explanation explain_by_paths(const TreeModel& model, std::int64_t user, std::int64_t item,
                             const ReviewNames& names) {
  const std::int32_t user_leaf = model.user_leaf[user];
  const std::int32_t item_leaf = model.item_leaf[item];
  const std::vector<PathReason> reasons = path_reasons(model, user_leaf, item_leaf);
  const std::string_view item_name = names.items[item];
  Explanation explanation;
  auto listed = nlohmann::ordered_json::array();
  for (const PathReason& reason : reasons) {
    const std::string_view feature = names.features[reason.feature];
    const std::string sentence = reason_sentence(reason, item_name, feature);
    if (explanation.sentences.size() < kMostReasons) explanation.sentences.push_back(sentence);
    listed.push_back({{"feature", feature},
                      {"shared", reason.shared()},
                      {"user", side_json(model.user_tree, reason.user)},
                      {"item", side_json(model.item_tree, reason.item)},
                      {"sentence", sentence}});
  }
  if (explanation.sentences.empty()) {
    explanation.sentences.push_back(fmt::format(
        "{} because people of whom as little is known like it; no feature speaks for it.", item_name));
  }
  explanation.details["reasons"] = std::move(listed);
  explanation.details["user_leaf"] = user_leaf;
  explanation.details["user_path"] =
      path_json(model.user_tree, user_leaf, model.user_profiles.row(user), names.features);
  explanation.details["item_leaf"] = item_leaf;
  explanation.details["item_path"] =
      path_json(model.item_tree, item_leaf, model.item_profiles.row(item), names.features);
  return explanation;
}

}  // namespace

void TreeModel::fields(StateFields& state, std::int64_t user_rows, std::int64_t item_rows,
                       std::int64_t features) {
  std::int64_t dimension = users.dimension();
  state.numbers("dimension", dimension);
  state.require(dimension >= 1 && dimension <= 1 << 20, "its dimension is none");
  const int d = static_cast<int>(dimension);
  tree_fields(state, user_tree, d, questions == TreeQuestions::kItems ? item_rows : features);
  if (state.reads()) {
    users = FactorRows(user_rows, d);
    items = FactorRows(item_rows, d);
  }
  state.sized("factors", users.padded_values());
  state.sized("factors", items.padded_values());
  leaf_fields(state, user_leaf, user_rows, user_tree);
  if (questions == TreeQuestions::kItems) return;
  tree_fields(state, item_tree, d, features);
  leaf_fields(state, item_leaf, item_rows, item_tree);
  profile_fields(state, user_profiles, user_rows, features);
  profile_fields(state, item_profiles, item_rows, features);
}

void TreeModel::save(StateWriter& state) const {
  save_fields(*this, state, users.rows(), items.rows(), user_profiles.features);
}

TreeModel read_tree_model(StateReader& state, TreeQuestions questions, std::int64_t users,
                          std::int64_t items, std::int64_t features) {
  TreeModel model;
  model.questions = questions;
  load_fields(model, state, users, items, features);
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
  for (const KnownReview& review : reviews) {
    for (const Mention& mention : review.mentions) {
      if (mention.feature >= 0 && mention.feature < features)
        counts.push_back(MentionCount::one(0, mention));
    }
  }
  return make_profiles(1, features, added_up(std::move(counts)), ProfileKind::kUser);
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
