#include "recommend/recommender_kinds.h"

#include <algorithm>
#include <array>

#include "recommend/popular.h"
#include "recommend/trees/fact_training.h"
#include "recommend/trees/fmf_training.h"

namespace olrank {
namespace {

using Key = std::string_view;

constexpr std::array<Key, 15> kFactKeys = {
    "dimension", "user_depth",    "item_depth",        "node_rows",        "parent_factor",
    "personal",  "user_penalty",  "item_penalty",      "tree_pair_weight", "pairs_per_rating",
    "finalists", "descent_steps", "descent_step_size", "start_passes",     "least_change"};
constexpr std::array<Key, 9> kFmfKeys = {"dimension",     "user_depth",   "node_rows",
                                         "parent_factor", "user_penalty", "item_penalty",
                                         "start_passes",  "least_change", "like_at"};

constexpr std::array kKinds = {
    RecommenderKindRow{.kind = RecommenderKind::kFact,
                       .about = "two trees over what reviews mention, with factors in their leaves",
                       .passes = 10,
                       .keys = kFactKeys,
                       .explains = true,
                       .plan = plan_fact,
                       .start = start_fact,
                       .read = read_fact},
    RecommenderKindRow{.kind = RecommenderKind::kFmf,
                       .about = "a tree over what users rate, with factors in its leaves",
                       .passes = 10,
                       .keys = kFmfKeys,
                       .plan = plan_fmf,
                       .start = start_fmf,
                       .read = read_fmf},
    RecommenderKindRow{.kind = RecommenderKind::kPopular,
                       .about = "the items with most reviews, the same for everybody",
                       .passes = 1,
                       .plan = plan_popular,
                       .start = start_popular,
                       .read = read_popular},
};

bool lists(const RecommenderKindRow& row, Key key) {
  return std::find(row.keys.begin(), row.keys.end(), key) != row.keys.end();
}

}  // namespace

std::span<const RecommenderKindRow> recommender_kinds() {
  return kKinds;
}

const RecommenderKindRow& recommender_kind(RecommenderKind kind) {
  return *std::find_if(kKinds.begin(), kKinds.end(),
                       [&](const RecommenderKindRow& row) { return row.kind == kind; });
}

bool kind_reads(RecommenderKind kind, Key key) {
  if (lists(recommender_kind(kind), key)) return true;
  return std::none_of(kKinds.begin(), kKinds.end(),
                      [&](const RecommenderKindRow& row) { return lists(row, key); });
}

RecommendSettings resolved(RecommendSettings settings) {
  if (settings.passes == 0) settings.passes = recommender_kind(settings.kind).passes;
  return settings;
}

}  // namespace olrank
