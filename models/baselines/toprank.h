#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/explore/certain_orders.h"
#include "models/skeleton/certain_order_ranker.h"
#include "models/skeleton/ranker_settings.h"
#include "models/skeleton/score_model.h"

namespace olrank {

/// TopRank: Lattimore, Kveton, Li and Szepesvári, "TopRank: a practical algorithm for online stochastic
/// ranking", NeurIPS 2018, Algorithm 1. For each query it keeps which documents are certainly worse than
/// others, from clicks alone: it splits the documents into blocks of those that no other of the rest beats,
/// shows each block in random order, and adds "j is worse than i" once the clicks of documents in a common
/// block differ by more than chance, S_ij ≥ √(2 N_ij log(c √N_ij / δ)). Features play no part, so it knows
/// nothing about queries that it was never asked: its scores are 0.
class TopRank : public OnlineRanker {
 public:
  TopRank(const RankerSettings& settings, std::int64_t features, const TrialKeys& keys,
          std::int64_t cutoff);

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  LearnReport learn(RoundContext& context, const Feedback& feedback) override;
  void describe(const QueryDocs& query, bool full, RoundDetail& detail) override;
  void score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const override;
  std::int64_t parameters() const override { return model_->parameters(); }
  ModelTensors model() const override;
  std::vector<RankerFigure> figures(ExecutionContext& context) const override;
  bool learns_from_unshown() const override { return true; }
  void fields(StateFields& state) override;

 private:
  /// It holds what is known about a query.
  struct Known {
    std::int64_t docs = 0;
    std::vector<std::int32_t> lead;      // S_ij of i < j, row by row
    std::vector<std::int32_t> count;     // N_ij, likewise
    std::vector<std::uint64_t> better;   // bit (i, j): j is worse than i; [docs × words]
    std::vector<std::int32_t> by_block;  // docs
    std::vector<std::int32_t> ends;      // of blocks
  };

  Known& known_of(const QueryDocs& query);
  static std::size_t pair_of(const Known& known, std::int64_t i, std::int64_t j);
  /// Counts a click on `winner` that `loser` did not get; true if that makes an order certain.
  bool count(Known& known, std::int64_t winner, std::int64_t loser) const;
  static void partition(Known& known);
  /// The orders by place, closed transitively.
  static void orders_of(const Known& known, OrderBits& orders);
  /// Blocks by controlled scores: −number of the block, raised by `fair`.
  void control(const Known& known, const FairRound& fair);

  RankerSettings settings_;
  std::unique_ptr<ScoreModel> model_;  // with no weight but 0
  CertainList list_;

  std::map<std::int64_t, Known> known_;  // by query

  const Known* ranked_ = nullptr;  // the latest
  std::vector<std::int32_t> block_of_;
  std::vector<std::uint8_t> clicked_;
  std::vector<double> controlled_scores_;
  std::vector<std::int32_t> controlled_docs_;
  std::vector<std::int32_t> controlled_ends_;
};

/// The clicks by which a document must lead another, over `count` clicks on either.
double toprank_threshold(std::int64_t count, double delta);

std::unique_ptr<OnlineRanker> make_toprank(const RankerRequest& request);
void set_toprank_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
