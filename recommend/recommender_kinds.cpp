#include "recommend/recommender_kinds.h"

#include <algorithm>
#include <array>

#include "recommend/factors/bprmf.h"
#include "recommend/factors/efm.h"
#include "recommend/factors/nmf.h"
#include "recommend/mter/mter.h"
#include "recommend/popular.h"
#include "recommend/trees/fact_training.h"
#include "recommend/trees/fmf_training.h"

namespace olrank {
namespace {

using Key = std::string_view;

const std::array kKinds = {
    RecommenderKindRow{RecommenderKind::kMter,
                       "tensors of preferences and phrases, with a core each, and pairs", 100, kMterKeys,
                       true, nullptr, plan_mter, start_mter, read_mter},
    RecommenderKindRow{RecommenderKind::kMterS, "mter with canonical decompositions, vectors partly shared",
                       100, kMterCanonicalKeys, true, nullptr, plan_mter, start_mter, read_mter},
    RecommenderKindRow{RecommenderKind::kMterSa, "mter with canonical decompositions, all vectors shared",
                       100, kMterCanonicalKeys, true, nullptr, plan_mter, start_mter, read_mter},
    RecommenderKindRow{RecommenderKind::kFact,
                       "two trees over what reviews mention, with factors in their leaves", 10, kFactKeys,
                       true, nullptr, plan_fact, start_fact, read_fact},
    RecommenderKindRow{RecommenderKind::kFmf, "a tree over what users rate, with factors in its leaves", 10,
                       kFmfKeys, false, nullptr, plan_fmf, start_fmf, read_fmf},
    RecommenderKindRow{RecommenderKind::kEfm,
                       "explicit factors: ratings, users' attention and items' quality", 30, kEfmKeys, true,
                       nullptr, plan_efm, start_efm, read_efm},
    RecommenderKindRow{RecommenderKind::kBprmf, "matrix factorisation for pairs", 100, kBprmfKeys, false,
                       set_bprmf_defaults, plan_bprmf, start_bprmf, read_product},
    RecommenderKindRow{RecommenderKind::kNmf, "non-negative factorisation of ratings", 30, kNmfKeys, false,
                       nullptr, plan_nmf, start_nmf, read_product},
    RecommenderKindRow{RecommenderKind::kPopular,
                       "the items with most reviews, the same for everybody",
                       1,
                       {},
                       false,
                       nullptr,
                       plan_popular,
                       start_popular,
                       read_popular},
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

RecommendSettings default_settings(RecommenderKind kind) {
  RecommendSettings settings;
  settings.kind = kind;
  if (const auto set = recommender_kind(kind).set_defaults) set(settings);
  return settings;
}

std::vector<std::string> recommender_names() {
  std::vector<std::string> names;
  for (const RecommenderKindRow& row : kKinds) names.emplace_back(name_of(row.kind));
  return names;
}

RecommendSettings resolved(RecommendSettings settings) {
  if (settings.passes == 0) settings.passes = recommender_kind(settings.kind).passes;
  return settings;
}

}  // namespace olrank
