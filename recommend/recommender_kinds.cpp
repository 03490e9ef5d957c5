#include "recommend/recommender_kinds.h"

#include <algorithm>
#include <array>

#include "recommend/popular.h"

namespace olrank {
namespace {

using Key = std::string_view;

constexpr std::array kKinds = {
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
