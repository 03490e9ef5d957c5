#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "core/explore/certainty_policy.h"
#include "core/explore/exploration_settings.h"
#include "core/feedback/pair_settings.h"
#include "core/protocol.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"
#include "models/bandit_settings.h"
#include "models/network_settings.h"
#include "models/posterior_settings.h"
#include "models/trainer_settings.h"

namespace olrank {

enum class RankerKind {
  kPairRank,
  kOlRankNet,
  kOlLambdaRank,
  kP2LinRank,
  kP2NeurRank,
  kRankNet,
  kLambdaRankLabels,
  kDbgd,
  kMgd,
  kPdgd,
  kRankNetOffline,
};

template <>
struct EnumNames<RankerKind> {
  static constexpr std::array values = {
      std::pair{RankerKind::kPairRank, std::string_view("pairrank")},
      std::pair{RankerKind::kOlRankNet, std::string_view("olranknet")},
      std::pair{RankerKind::kOlLambdaRank, std::string_view("ollambdarank")},
      std::pair{RankerKind::kP2LinRank, std::string_view("p2linrank")},
      std::pair{RankerKind::kP2NeurRank, std::string_view("p2neurrank")},
      std::pair{RankerKind::kRankNet, std::string_view("ranknet")},
      std::pair{RankerKind::kLambdaRankLabels, std::string_view("lambdarank-labels")},
      std::pair{RankerKind::kDbgd, std::string_view("dbgd")},
      std::pair{RankerKind::kMgd, std::string_view("mgd")},
      std::pair{RankerKind::kPdgd, std::string_view("pdgd")},
      std::pair{RankerKind::kRankNetOffline, std::string_view("ranknet-offline")}};
};

/// One [[ranker]]: which method, and the settings of its parts.
struct RankerSettings {
  std::string name;
  RankerKind kind = RankerKind::kOlRankNet;
  NetworkSettings network;
  PosteriorSettings posterior;
  ExplorationSettings explore;
  PairSettings feedback;
  TrainerSettings trainer;
  BanditSettings bandit;

  static const Schema& schema();
  /// What holds for a kind under a protocol before anybody sets anything. The candidates of mgd depend on
  /// how they share a list, so the interleaving that will hold is asked for.
  static RankerSettings defaults(RankerKind kind, ProtocolName protocol,
                                 Interleaving interleaving = Interleaving::kTeamDraft);
};

/// Which orders a ranker with these settings counts as certain.
CertaintyPolicy certainty_policy(const RankerSettings& settings);

}  // namespace olrank
