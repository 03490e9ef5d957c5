#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/data/feature_matrix.h"
#include "core/explore/order_bits.h"
#include "core/online/online_ranker.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// A list to make.
struct RankingTask {
  FeatureMatrix docs;        // [V × d], normalised
  std::int64_t cutoff = 10;  // ranks that will be seen
  std::uint32_t round = 1;   // where the coins of an exploring list lie
  bool explore = true;       // false: by score
};

/// A list and what it rests on. Memory is kept from list to list.
struct Ranking {
  std::vector<float> scores;           // [V]
  std::vector<std::int32_t> by_score;  // docs, best first
  std::vector<std::int32_t> list;      // docs as they are to be shown
  bool knows_orders = false;           // whether `orders` and `certainty` say anything
  OrderBits orders;                    // by places of by_score
  std::optional<ListCertainty> certainty;
};

/// How a ranker made lists at one moment: it never changes, and any number of threads may use it at once,
/// each with a context of its own.
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
