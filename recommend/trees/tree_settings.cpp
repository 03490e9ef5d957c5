#include "recommend/trees/tree_settings.h"

namespace olrank {

const Schema& TreeSettings::schema() {
  static const Schema schema =
      SchemaBuilder<TreeSettings>("recommend", "Factorisation trees.")
          .field("user_depth", &TreeSettings::user_depth, "levels of questions in the users' tree")
          .symbol("h")
          .at_least(0)
          .at_most(12)
          .field("item_depth", &TreeSettings::item_depth, "levels of questions in the items' tree of fact")
          .at_least(0)
          .at_most(12)
          .field("node_rows", &TreeSettings::node_rows,
                 "users or items that a node must have to ask a question")
          .at_least(2)
          .field("parent_factor", &TreeSettings::parent_factor,
                 "a node's factor is its parent's plus a term of its own, and only this term is penalised")
          .field("personal", &TreeSettings::personal,
                 "when each user and item gets a term of its own: after the last pass of fact, or in every "
                 "pass")
          .field("user_penalty", &TreeSettings::user_penalty,
                 "weight of the squared factors in the users' tree")
          .symbol("λ_u")
          .above(0)
          .field("item_penalty", &TreeSettings::item_penalty, "weight of the squared factors of items")
          .symbol("λ_v")
          .above(0)
          .field("tree_pair_weight", &TreeSettings::tree_pair_weight,
                 "weight of the loss of a pair against a rating's squared error in fact")
          .symbol("λ_b")
          .at_least(0)
          .field("least_change", &TreeSettings::least_change,
                 "the training ends once a pass changes the loss by less than this share")
          .at_least(0)
          .at_most(1)
          .field("like_at", &TreeSettings::like_at, "lowest rating that is a like in fmf's questions")
          .build();
  return schema;
}

}  // namespace olrank
