#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/protocol.h"
#include "core/settings/enum_names.h"

namespace olrank {

class OnlineRanker;
struct RankerLoad;
struct RankerMemory;
struct RankerRequest;
struct RankerSettings;

enum class RankerKind {
  kClickGp,
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
  kTopRank,
  kFairCo,
  kExternal,
};

/// The scoring functions that a kind can have.
enum class ModelForms { kLinear, kNetwork, kEither };
/// A kind's certain orders follow from this, if it has any.
enum class OrderEvidence { kNone, kWidths, kVotes, kClickCounts, kProbabilities };
/// How a kind uses the pair rule of the settings: not at all, one pair at a time, or with weights too.
enum class PairUse { kOwnPairs, kUnweighted, kWeighted };

/// How a kind trains: the pairs of its whole history by Newton's method, or by steps of a network; one step
/// a round; true grades before the first round, or those of all queries asked so far; estimates of
/// relevance from all shown documents; the posterior given all clicks; no parameters at all.
enum class Training { kNewton, kHistory, kRound, kLabels, kAskedLabels, kEstimates, kPosterior, kNone };
/// How a kind without certain orders explores, if not in a way of its own.
enum class BanditUse { kNone, kEpsilon, kDuels };

/// A kind's defaults depend on these.
struct DefaultsContext {
  ProtocolName protocol;
  const RankerSettings& chosen;
};

/// All that the rest of the program knows about a kind of ranker.
struct RankerKindRow {
  RankerKind kind = RankerKind::kOlRankNet;
  std::string_view name;  // in settings and files
  ModelForms forms = ModelForms::kEither;
  OrderEvidence evidence = OrderEvidence::kNone;
  PairUse pairs = PairUse::kOwnPairs;
  Training training = Training::kRound;
  BanditUse bandit = BanditUse::kNone;

  bool step_is_share = false;   // with the summed loss, learning_rate is a share of the largest stable step
  bool weighs_by_ndcg = false;  // LambdaRank: pairs are weighted by |ΔNDCG|
  bool multileaves = false;     // compares bandit.candidates at once, not one
  bool needs_labels = false;    // learns from true grades; no other kind is given any
  bool needs_groups = false;    // learns from the probabilities of examination that come with groups
  bool starts_from_model = false;  // a kind that refits its history from zero would forget the model
  bool takes_sparse = false;       // needs of a document its score and gradient alone
  bool on_device = false;          // has a device implementation
  bool is_external = false;  // its rankers are the program's that uses the library, found by their names

  /// Changes what all kinds share under a protocol; null for nothing.
  void (*set_defaults)(RankerSettings& settings, const DefaultsContext& context) = nullptr;
  /// The memory of a trial; null for a kind whose state is the parameters of a score model.
  RankerMemory (*plan)(const RankerSettings& settings, const RankerLoad& load) = nullptr;
  /// The ranker before round 1. The request has passed the checks of make_ranker().
  std::unique_ptr<OnlineRanker> (*make)(const RankerRequest& request) = nullptr;

  bool has_orders() const { return evidence != OrderEvidence::kNone; }
  bool is_ensemble() const { return evidence == OrderEvidence::kVotes; }
};

/// Throws InvalidArgument for a kind without a row.
const RankerKindRow& row_of(RankerKind kind);

/// The names of the kinds that `wanted` accepts: "pdgd, dbgd or mgd".
std::string kinds_where(bool (*wanted)(const RankerKindRow& row));

/// The kinds by name, for settings.
struct RankerKindNames {
  using Entry = std::pair<RankerKind, std::string_view>;
  const Entry* begin() const;
  const Entry* end() const;
  std::size_t size() const { return static_cast<std::size_t>(end() - begin()); }
};

template <>
struct EnumNames<RankerKind> {
  static constexpr RankerKindNames values{};
};

}  // namespace olrank
