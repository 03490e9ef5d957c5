#include "jobs/recommending/interview_data.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "recommend/ranking_figures.h"
#include "recommend/trees/interview.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

ordered_json node_data(const FactorTree& tree, std::int32_t number, const NameTable& subjects) {
  const TreeNode& node = tree.node(number);
  ordered_json json = {{"rows", node.rows}};
  if (!node.is_leaf()) {
    json["subject"] = std::string(subjects[node.feature]);
    json["threshold"] = node.threshold;
    json["children"] = node.children;
  }
  return json;
}

/// Numbers items in the order in which lists name them, so that each name is written once.
class NamedItems {
 public:
  explicit NamedItems(const NameTable& names) : names_(names) {}

  std::size_t place(std::int32_t item) {
    const auto [found, added] = places_.emplace(item, listed_.size());
    if (added) listed_.emplace_back(names_[item]);
    return found->second;
  }
  const std::vector<std::string>& listed() const { return listed_; }

 private:
  const NameTable& names_;
  std::map<std::int32_t, std::size_t> places_;
  std::vector<std::string> listed_;
};

}  // namespace

ordered_json interview_data(const TreeRecommender& recommender, const ReviewNames& names, std::int64_t k) {
  constexpr std::size_t kExamples = 5;
  const TreeModel& trees = recommender.trees();
  const bool of_items = trees.questions == TreeQuestions::kItems;
  const NameTable& subjects = of_items ? names.items : names.features;
  NamedItems items(names.items);
  std::vector<float> scores(trees.items.rows());
  ordered_json user_nodes = ordered_json::array();
  for (std::int32_t number = 0; number < trees.user_tree.size(); ++number) {
    ordered_json json = node_data(trees.user_tree, number, subjects);
    recommender.score_at(number, scores);
    ordered_json list = ordered_json::array();
    for (const std::int32_t item : best_items(scores, {}, k))
      list.push_back({items.place(item), scores[item]});
    json["list"] = std::move(list);
    user_nodes.push_back(std::move(json));
  }
  ordered_json item_nodes = ordered_json::array();
  if (!of_items) {
    std::vector<std::vector<std::int32_t>> in_leaf(trees.item_tree.size());
    for (std::size_t item = 0; item < trees.item_leaf.size(); ++item) {
      std::vector<std::int32_t>& examples = in_leaf[trees.item_leaf[item]];
      if (examples.size() < kExamples) examples.push_back(static_cast<std::int32_t>(item));
    }
    for (std::int32_t number = 0; number < trees.item_tree.size(); ++number) {
      ordered_json json = node_data(trees.item_tree, number, subjects);
      ordered_json examples = ordered_json::array();
      for (const std::int32_t item : in_leaf[number]) examples.push_back(items.place(item));
      json["examples"] = std::move(examples);
      item_nodes.push_back(std::move(json));
    }
  }
  const auto answers = answer_texts(trees.questions);
  // The subject stands where the page puts its own.
  return {{"question", question_text(trees.questions, "{}")},
          {"answers", {answers[0], answers[1], answers[2]}},
          {"items", items.listed()},
          {"user_tree", std::move(user_nodes)},
          {"item_tree", std::move(item_nodes)}};
}

}  // namespace olrank
