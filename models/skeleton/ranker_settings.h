#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/explore/certain_orders.h"
#include "core/explore/exploring_list.h"
#include "core/fair/fair_list.h"
#include "core/feedback/preference_pairs.h"
#include "core/online/click_model.h"
#include "core/online/online_ranker.h"
#include "core/protocol.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"
#include "models/posterior/posterior.h"
#include "models/ranker_kinds.h"
#include "models/skeleton/network_settings.h"

namespace olrank {

enum class SimpleExploration { kGreedy, kEpsilon };
enum class Interleaving { kTeamDraft, kProbabilistic };

/// Exploration of the rankers without a posterior: ε-greedy, dueling bandits, Plackett-Luce.
struct BanditSettings {
  SimpleExploration exploration = SimpleExploration::kGreedy;
  double epsilon = 0.0;  // not set
  double exploration_radius = 1.0;
  Interleaving interleaving = Interleaving::kTeamDraft;
  std::int64_t candidates = 9;

  static const Schema& schema();
};

template <>
struct EnumNames<SimpleExploration> {
  static constexpr std::array values = names_in_order<SimpleExploration>("greedy", "epsilon");
};

template <>
struct EnumNames<Interleaving> {
  static constexpr std::array values = names_in_order<Interleaving>("team-draft", "probabilistic");
};

/// Which click models run side by side.
enum class ClickTerms { kLinear, kAdditive, kProducts };

/// The settings of kind clickgp: none of them is about the data.
struct ClickGpSettings {
  ClickTerms terms = ClickTerms::kProducts;
  double memory_limit = 0.0;  // MB
  double forget = 0.0;        // lists
  double explore_floor = 0.0;

  static const Schema& schema();
};

template <>
struct EnumNames<ClickTerms> {
  static constexpr std::array values = names_in_order<ClickTerms>("linear", "additive", "products");
};

/// One [[ranker]]: which method, and the settings of its parts.
struct RankerSettings {
  std::string name;
  RankerKind kind = RankerKind::kClickGp;
  std::string start_from;   // a model file or a folder with one; empty: first parameters are drawn
  bool trust_code = false;  // of that model, if it is a TorchScript module
  std::string own;          // of kind external: "NAME" or "NAME(PARAMETERS)" of the registered ranker
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
  /// Returns the defaults where some settings are chosen: the candidates of mgd depend on the interleaving,
  /// the pairs of networks on the loss, and their prior on whether they start from a model.
  static RankerSettings defaults(const RankerSettings& chosen, ProtocolName protocol);
};

/// Whether the recipe of a trial, which its model file holds, leaves a setting out: those that came last
/// are left out where they change nothing.
bool is_left_out_of_recipe(const RankerSettings& ranker, std::string_view key);

/// Which orders a ranker with these settings counts as certain.
CertaintyPolicy certainty_policy(const RankerSettings& settings);

struct RankerDevice;
struct ClickStart;

/// A ranker needs these in addition to its settings.
struct RankerDependencies {
  const LabelledQueries* labels = nullptr;  // for kinds that learn from them; has to outlive the ranker
  std::int64_t memory = 0;                  // bytes that its covariance may take; 0: all there is
  std::span<const std::vector<float>> first_thetas = {};  // of each member, of a model to start from
  const RankerDevice* device = nullptr;                   // to compute the ranker on a device
  bool sparse = false;                                    // whether documents are sparse
  std::shared_ptr<const ClickStart> click_start = {};     // for clickgp: a model other than by its weights
};

/// A kind's maker is given this.
struct RankerRequest {
  const RankerSettings& settings;
  std::int64_t features = 1;
  const TrialKeys& keys;
  std::int64_t cutoff = 10;
  const RankerDependencies& dependencies;
};

/// A query's names, which are its numbers unless it has others.
struct NamedQuery {
  explicit NamedQuery(const QueryDocs& query) {
    if (query.identity != nullptr) {
      identity = *query.identity;
      return;
    }
    for (std::int32_t doc = 0; doc < query.docs(); ++doc) numbers.push_back(query.number(doc));
    identity = {query.query, numbers};
  }

  std::vector<std::int64_t> numbers;
  QueryIdentity identity;
};

}  // namespace olrank
