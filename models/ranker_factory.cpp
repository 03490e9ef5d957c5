#include "models/ranker_factory.h"

#include <fmt/format.h>

#include "core/error.h"
#include "models/dueling_bandit.h"
#include "models/linear/linear_model.h"
#include "models/linear/linear_ranking.h"
#include "models/linear/p2linrank.h"
#include "models/linear/pairrank.h"
#include "models/pdgd.h"
#include "models/ranknet.h"

namespace olrank {
namespace {

[[noreturn]] void refuse_form(const RankerSettings& settings) {
  throw Error(
      fmt::format("Ranker '{}': the kind '{}' with network = \"{}\" is not in this version of olrank.",
                  settings.name, name_of(settings.kind), name_of(settings.network.network)));
}

std::unique_ptr<ScoreModel> make_score_model(const RankerSettings& settings, std::int64_t features) {
  if (settings.network.network != NetworkForm::kLinear) refuse_form(settings);
  return std::make_unique<LinearModel>(features);
}

/// The most pairs that a round of a rule can bring.
std::int64_t pairs_of_a_round(PairRule rule, std::int64_t cutoff) {
  return rule == PairRule::kAll ? cutoff * cutoff / 4 : cutoff / 2;
}

}  // namespace

std::unique_ptr<OnlineRanker> make_ranker(const RankerSettings& settings, std::int64_t features,
                                          const TrialKeys& keys, std::int64_t cutoff) {
  switch (settings.kind) {
    case RankerKind::kPairRank:
      return std::make_unique<PairRank>(features, settings, keys, cutoff);
    case RankerKind::kP2LinRank:
      return std::make_unique<P2LinRank>(features, settings, keys, cutoff);
    case RankerKind::kPdgd:
      return std::make_unique<PdgdRanker>(make_score_model(settings, features), settings, keys);
    case RankerKind::kDbgd:
    case RankerKind::kMgd:
      return std::make_unique<DuelingBanditRanker>(make_score_model(settings, features), settings, keys);
    case RankerKind::kRankNet:
      return std::make_unique<RankNetRanker>(make_score_model(settings, features), settings, keys);
    case RankerKind::kOlRankNet:
    case RankerKind::kOlLambdaRank:
    case RankerKind::kP2NeurRank:
    case RankerKind::kLambdaRankLabels:
      break;
  }
  refuse_form(settings);
}

RankerPlan plan_ranker(const RankerSettings& settings, std::int64_t features, std::int64_t rounds,
                       std::int64_t cutoff) {
  constexpr std::int64_t kDouble = sizeof(double);
  const std::int64_t stride = padded_features(features);
  const std::int64_t history =
      rounds * pairs_of_a_round(settings.feedback.pairs, cutoff) * (stride + 8) * kDouble;
  switch (settings.kind) {
    case RankerKind::kPairRank:
      return {features, history + 3 * stride * stride * kDouble};
    case RankerKind::kP2LinRank:
      return {features * settings.posterior.members,
              history + settings.posterior.members * stride * stride * kDouble};
    default:
      return {features, 2 * features * kDouble};
  }
}

}  // namespace olrank
