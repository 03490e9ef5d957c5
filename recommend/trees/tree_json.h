#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "recommend/name_table.h"
#include "recommend/trees/factor_tree.h"

namespace olrank {

/// "at_least", "below" or "unknown": the answer that leads to a child, and its key in JSON.
std::string_view branch_name(TreeBranch branch);

/// {"depth", "nodes": [{"node", "level", "parent", "rows", "factor", and of inner nodes "feature",
/// "threshold", "at_least", "below", "unknown"}, …]}: children as numbers of nodes. `questions` are the
/// names of what nodes ask about.
nlohmann::ordered_json tree_json(const FactorTree& tree, const NameTable& questions);

}  // namespace olrank
