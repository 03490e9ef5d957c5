#include "recommend/trees/tree_json.h"

#include <string>
#include <utility>

namespace olrank {

std::string_view branch_name(TreeBranch branch) {
  switch (branch) {
    case TreeBranch::kAtLeast:
      return "at_least";
    case TreeBranch::kBelow:
      return "below";
    case TreeBranch::kUnknown:
      break;
  }
  return "unknown";
}

nlohmann::ordered_json tree_json(const FactorTree& tree, const NameTable& questions) {
  auto nodes = nlohmann::ordered_json::array();
  for (std::int32_t number = 0; number < tree.size(); ++number) {
    const TreeNode& node = tree.node(number);
    nlohmann::ordered_json json;
    json["node"] = number;
    json["level"] = node.level;
    if (node.parent >= 0) {
      json["parent"] = node.parent;
    } else {
      json["parent"] = nullptr;
    }
    json["rows"] = node.rows;
    if (!node.is_leaf()) {
      json["feature"] = std::string(questions[node.feature]);
      json["threshold"] = node.threshold;
      for (int branch = 0; branch < kTreeBranches; ++branch)
        json[std::string(branch_name(static_cast<TreeBranch>(branch)))] = node.children[branch];
    }
    json["factor"] = tree.factor(number);
    nodes.push_back(std::move(json));
  }
  return {{"depth", tree.depth()}, {"nodes", std::move(nodes)}};
}

}  // namespace olrank
