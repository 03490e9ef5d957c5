#pragma once

#include <string>
#include <string_view>

#include "core/explore/certainty_policy.h"
#include "core/explore/exploration_settings.h"
#include "core/fair/fair_settings.h"
#include "core/feedback/pair_settings.h"
#include "core/protocol.h"
#include "core/settings/schema.h"
#include "models/posterior/posterior_settings.h"
#include "models/ranker_kinds.h"
#include "models/skeleton/bandit_settings.h"
#include "models/skeleton/clickgp_settings.h"
#include "models/skeleton/network_settings.h"
#include "models/skeleton/trainer_settings.h"

namespace olrank {

/// One [[ranker]]: which method, and the settings of its parts.
struct RankerSettings {
  std::string name;
  RankerKind kind = RankerKind::kClickGp;
  std::string start_from;   // a model file or a folder with one; empty: first parameters are drawn
  bool trust_code = false;  // of that model, if it is a TorchScript module
  NetworkSettings network;
  PosteriorSettings posterior;
  ExplorationSettings explore;
  PairSettings feedback;
  TrainerSettings trainer;
  BanditSettings bandit;
  FairSettings fair;
  ClickGpSettings click;

  static const Schema& schema();
  /// The kind of a ranker of which none is named.
  static RankerKind default_kind(ProtocolName protocol);
  /// The settings of a kind under a protocol, before any is set.
  static RankerSettings defaults(RankerKind kind, ProtocolName protocol);
  /// The same where some are chosen: the candidates of mgd depend on the interleaving, the pairs of
  /// networks on the loss, and their prior on whether they start from a model.
  static RankerSettings defaults(const RankerSettings& chosen, ProtocolName protocol);
};

/// Whether the recipe of a trial, which its model file holds, leaves a setting out: those that came last
/// are left out where they change nothing.
bool is_left_out_of_recipe(const RankerSettings& ranker, std::string_view key);

/// Which orders a ranker with these settings counts as certain.
CertaintyPolicy certainty_policy(const RankerSettings& settings);

}  // namespace olrank
