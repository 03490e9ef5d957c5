#include "models/ranker_kinds.h"

#include <array>
#include <vector>

#include "core/error.h"
#include "core/text/message_text.h"
#include "models/baselines/baselines.h"
#include "models/clickgp/click_regression.h"
#include "models/linear/linear_belief.h"
#include "models/neural/network_rankers.h"
#include "models/ranker_memory.h"

namespace olrank {
namespace {

/// The order is that in which users see them.
constexpr std::array kRows = {
    RankerKindRow{.kind = RankerKind::kClickGp,
                  .name = "clickgp",
                  .forms = ModelForms::kLinear,
                  .evidence = OrderEvidence::kProbabilities,
                  .training = Training::kPosterior,
                  .starts_from_model = true,
                  .set_defaults = set_clickgp_defaults,
                  .plan = memory_of_clickgp,
                  .make = make_clickgp},
    RankerKindRow{.kind = RankerKind::kPairRank,
                  .name = "pairrank",
                  .forms = ModelForms::kLinear,
                  .evidence = OrderEvidence::kWidths,
                  .pairs = PairUse::kUnweighted,
                  .training = Training::kNewton,
                  .set_defaults = set_pairrank_defaults,
                  .plan = memory_of_linear,
                  .make = make_pairrank},
    RankerKindRow{.kind = RankerKind::kOlRankNet,
                  .name = "olranknet",
                  .forms = ModelForms::kNetwork,
                  .evidence = OrderEvidence::kWidths,
                  .pairs = PairUse::kWeighted,
                  .training = Training::kHistory,
                  .step_is_share = true,
                  .starts_from_model = true,
                  .on_device = true,
                  .set_defaults = set_olranknet_defaults,
                  .plan = memory_of_confident_network,
                  .make = make_confident_network},
    RankerKindRow{.kind = RankerKind::kOlLambdaRank,
                  .name = "ollambdarank",
                  .forms = ModelForms::kNetwork,
                  .evidence = OrderEvidence::kWidths,
                  .pairs = PairUse::kUnweighted,
                  .training = Training::kHistory,
                  .step_is_share = true,
                  .weighs_by_ndcg = true,
                  .starts_from_model = true,
                  .on_device = true,
                  .plan = memory_of_confident_network,
                  .make = make_confident_network},
    RankerKindRow{.kind = RankerKind::kP2LinRank,
                  .name = "p2linrank",
                  .forms = ModelForms::kLinear,
                  .evidence = OrderEvidence::kVotes,
                  .pairs = PairUse::kUnweighted,
                  .training = Training::kNewton,
                  .set_defaults = set_p2linrank_defaults,
                  .plan = memory_of_linear,
                  .make = make_p2linrank},
    RankerKindRow{.kind = RankerKind::kP2NeurRank,
                  .name = "p2neurrank",
                  .forms = ModelForms::kNetwork,
                  .evidence = OrderEvidence::kVotes,
                  .pairs = PairUse::kWeighted,
                  .training = Training::kHistory,
                  .step_is_share = true,
                  .starts_from_model = true,
                  .on_device = true,
                  .set_defaults = set_p2neurrank_defaults,
                  .plan = memory_of_p2neurrank,
                  .make = make_p2neurrank},
    RankerKindRow{.kind = RankerKind::kRankNet,
                  .name = "ranknet",
                  .pairs = PairUse::kUnweighted,
                  .bandit = BanditUse::kEpsilon,
                  .starts_from_model = true,
                  .takes_sparse = true,
                  .set_defaults = set_ranknet_defaults,
                  .make = make_ranknet},
    RankerKindRow{.kind = RankerKind::kLambdaRankLabels,
                  .name = "lambdarank-labels",
                  .training = Training::kAskedLabels,
                  .needs_labels = true,
                  .takes_sparse = true,
                  .set_defaults = set_lambdarank_labels_defaults,
                  .make = make_lambdarank_labels},
    RankerKindRow{.kind = RankerKind::kDbgd,
                  .name = "dbgd",
                  .bandit = BanditUse::kDuels,
                  .takes_sparse = true,
                  .set_defaults = set_dueling_bandit_defaults,
                  .make = make_dueling_bandit},
    RankerKindRow{.kind = RankerKind::kMgd,
                  .name = "mgd",
                  .bandit = BanditUse::kDuels,
                  .multileaves = true,
                  .takes_sparse = true,
                  .set_defaults = set_dueling_bandit_defaults,
                  .make = make_dueling_bandit},
    RankerKindRow{.kind = RankerKind::kPdgd,
                  .name = "pdgd",
                  .starts_from_model = true,
                  .takes_sparse = true,
                  .set_defaults = set_pdgd_defaults,
                  .make = make_pdgd},
    RankerKindRow{.kind = RankerKind::kRankNetOffline,
                  .name = "ranknet-offline",
                  .training = Training::kLabels,
                  .needs_labels = true,
                  .takes_sparse = true,
                  .set_defaults = set_ranknet_offline_defaults,
                  .make = make_ranknet_offline},
    RankerKindRow{.kind = RankerKind::kTopRank,
                  .name = "toprank",
                  .forms = ModelForms::kLinear,
                  .evidence = OrderEvidence::kClickCounts,
                  .training = Training::kNone,
                  .set_defaults = set_toprank_defaults,
                  .plan = memory_of_toprank,
                  .make = make_toprank},
    RankerKindRow{.kind = RankerKind::kFairCo,
                  .name = "fairco",
                  .training = Training::kEstimates,
                  .needs_groups = true,
                  .set_defaults = set_fairco_defaults,
                  .plan = memory_of_fairco,
                  .make = make_fairco},
    RankerKindRow{.kind = RankerKind::kExternal,
                  .name = "external",
                  .forms = ModelForms::kLinear,
                  .training = Training::kNone,
                  .is_external = true,
                  .plan = memory_of_external,
                  .make = make_external},
};

constexpr auto kNames = [] {
  std::array<RankerKindNames::Entry, kRows.size()> names;
  for (std::size_t row = 0; row < kRows.size(); ++row) names[row] = {kRows[row].kind, kRows[row].name};
  return names;
}();

}  // namespace

const RankerKindRow& row_of(RankerKind kind) {
  for (const RankerKindRow& row : kRows) {
    if (row.kind == kind) return row;
  }
  throw InvalidArgument("A ranker has an unknown kind.");
}

std::string kinds_where(bool (*wanted)(const RankerKindRow& row)) {
  std::vector<std::string> found;
  for (const RankerKindRow& row : kRows) {
    if (wanted(row)) found.emplace_back(row.name);
  }
  return joined(found, " or ");
}

const RankerKindNames::Entry* RankerKindNames::begin() const {
  return kNames.data();
}

const RankerKindNames::Entry* RankerKindNames::end() const {
  return kNames.data() + kNames.size();
}

}  // namespace olrank
