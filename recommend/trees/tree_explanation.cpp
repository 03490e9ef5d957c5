#include "recommend/trees/tree_explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "recommend/trees/tree_json.h"

namespace olrank {
namespace {

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
    nlohmann::ordered_json json;
    json["node"] = step.node;
    json["feature"] = std::string(features[node.feature]);
    json["threshold"] = node.threshold;
    const std::optional<float> value = profile_value(profile, node.feature);
    if (value) {
      json["value"] = *value;
    } else {
      json["value"] = nullptr;
    }
    json["branch"] = branch_name(step.branch);
    steps.push_back(std::move(json));
  }
  return steps;
}

nlohmann::ordered_json side_json(const FactorTree& tree, const std::optional<TreeStep>& step) {
  if (!step) return nullptr;
  return {{"node", step->node},
          {"level", tree.node(step->node).level},
          {"threshold", tree.node(step->node).threshold},
          {"branch", branch_name(step->branch)}};
}

}  // namespace

std::vector<PathReason> path_reasons(const TreeModel& model, std::int32_t user_leaf,
                                     std::int32_t item_leaf) {
  const auto of_user = known_answers(model.user_tree, user_leaf);
  const auto of_item = known_answers(model.item_tree, item_leaf);
  struct Placed {
    PathReason reason;
    std::int32_t level;  // the lower one of both
  };
  std::vector<Placed> placed;
  for (const auto& [feature, step] : of_user)
    placed.push_back({{feature, step, {}}, model.user_tree.node(step.node).level});
  for (const auto& [feature, step] : of_item) {
    const std::int32_t level = model.item_tree.node(step.node).level;
    const auto known =
        std::ranges::find_if(placed, [&](const Placed& other) { return other.reason.feature == feature; });
    if (known == placed.end()) {
      placed.push_back({{feature, {}, step}, level});
    } else {
      known->reason.item = step;
      known->level = std::max(known->level, level);
    }
  }
  std::ranges::stable_sort(placed, [](const Placed& left, const Placed& right) {
    if (left.reason.shared() != right.reason.shared()) return left.reason.shared();
    return left.level > right.level;
  });
  std::vector<PathReason> reasons;
  for (const Placed& place : placed) reasons.push_back(place.reason);
  return reasons;
}

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
    nlohmann::ordered_json json;
    json["feature"] = std::string(feature);
    json["shared"] = reason.shared();
    json["user"] = side_json(model.user_tree, reason.user);
    json["item"] = side_json(model.item_tree, reason.item);
    json["sentence"] = sentence;
    listed.push_back(std::move(json));
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

}  // namespace olrank
