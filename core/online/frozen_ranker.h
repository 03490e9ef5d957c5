#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/data/feature_matrix.h"
#include "core/explore/order_bits.h"
#include "core/online/online_ranker.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// A query to rank.
struct RankingTask {
  FeatureMatrix docs;               // [V × d], normalised
  std::int64_t cutoff = 10;         // ranks that will be seen
  std::uint32_t round = 1;          // selects the draws of an exploring list
  bool explore = true;              // false: by score
  const FairRound* fair = nullptr;  // the documents' groups, where exposure is measured
  QueryIdentity identity = {};
};

/// A list, with the scores and orders behind it. Memory is reused from list to list.
struct Ranking {
  std::vector<float> scores;           // [V]
  std::vector<std::int32_t> by_score;  // docs, best first
  std::vector<std::int32_t> list;      // docs as they are to be shown
  std::vector<double> propensity;      // of each rank, as in RankedList
  bool knows_orders = false;           // whether `orders` and `certainty` are set
  OrderBits orders;                    // by places of by_score
  std::optional<ListCertainty> certainty;
  std::optional<ListFairness> fairness;
  /// P(document of rank i is better than that of rank j), [k × k] for the k ranks that will be seen; empty
  /// where a ranker knows none.
  std::vector<double> probabilities;
};

/// A snapshot of a ranker: it never changes, and any number of threads may use it at once, each with a
/// different context.
class FrozenRanker {
 public:
  FrozenRanker() = default;
  virtual ~FrozenRanker() = default;
  FrozenRanker(const FrozenRanker&) = delete;
  FrozenRanker& operator=(const FrozenRanker&) = delete;

  virtual void rank(ExecutionContext& context, const RankingTask& task, Ranking& ranking) const = 0;
  virtual ModelTensors model() const = 0;
};

}  // namespace olrank
