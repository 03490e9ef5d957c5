#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "core/fair/fair_list.h"
#include "core/online/online_ranker.h"
#include "models/clickgp/click_belief.h"
#include "models/clickgp/click_memory.h"
#include "models/skeleton/certain_order_ranker.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// All that a list of kind clickgp follows from. A copy is a snapshot that costs little.
struct ClickState {
  std::vector<ClickBelief> beliefs;
  std::vector<double> weights;  // of the beliefs, by how well they predicted the clicks so far
  ClickMemory memory;
  std::uint64_t learned = 0;     // lists
  std::uint64_t changed_at = 0;  // lists learned when users were last noticed to have changed
  double half_life = 0.0;        // lists
};

/// The probability of each of the first ranks of `list`, given the documents above it. The list is in the
/// order of centre + common + own, with a random document at each rank with probability `floor`. As laws
/// around 0 have no sign, and those of own and other are one, ± common + (cos φ own + sin φ other) would
/// have been drawn as probably, for 32 angles φ that share out the circle. The probabilities are those of a
/// list that one of these 64 makes, chosen at random: exact, given the 64.
void find_propensity(std::span<const double> centre, const ScoreDraw& draw, double floor,
                     std::span<const std::int32_t> list, std::span<double> propensity);

/// Scores, orders and list of one query; its memory is reused from query to query.
class ClickRanking {
 public:
  ClickRanking(const RankerSettings& settings, const TrialKeys& keys, std::int64_t cutoff);

  /// Finds what each belief says of the documents.
  void look(const ClickState& state, FeatureMatrix docs, const QueryIdentity& identity);
  /// The list to show, and which orders are certain: those of the shown documents, or of all where
  /// fairness decides between orders. `explore` adds a draw from the posterior to the scores.
  RankedList make(ExecutionContext& context, const ClickState& state, std::uint32_t round,
                  const FairRound* fair, bool explore);

  /// P(row i is better than column j) of some documents, [docs × docs].
  void order_probabilities(const ClickState& state, std::span<const std::int32_t> docs,
                           std::vector<double>& probabilities) const;

  /// Holds the order probabilities of the latest list's decided documents.
  std::span<const double> probabilities() const { return probabilities_; }
  /// The state is another one.
  void forget_look() { looked_at_.reset(); }
  std::span<const ClickView> views() const { return views_; }
  std::span<const float> scaled() const { return scaled_; }
  std::span<const float> means() const { return means_; }
  /// The rows of the views that the remembered documents have, by their places.
  std::span<const std::int32_t> known_rows() const { return known_rows_; }
  /// Adds rows to the views, and returns the first one.
  std::int32_t add_rows(const ClickState& state, std::span<const float> scaled,
                        std::span<const float> means);
  std::span<const double> scores() const { return scores_; }
  std::span<const std::int32_t> by_score() const { return by_score_; }
  CertainList& list() { return list_; }

 private:
  /// A look depends on these: lists learned from, the query, its documents.
  using LookedAt = std::tuple<std::uint64_t, std::int64_t, std::vector<std::int64_t>>;

  void find_rows(const ClickState& state);
  void find_known_rows(const ClickState& state, const KnownQuery& known);
  /// Gives the other views what the widest one has in the rows from `first` on, and scores these.
  void share_rows(const ClickState& state, std::int64_t first);
  /// Finds what is certain of `docs`, and what is stated of the first ones.
  void find_orders(const ClickState& state, std::span<const std::int32_t> docs, std::size_t first);
  void average(const ClickState& state, std::span<const std::span<const double>> of_models,
               std::vector<double>& scores) const;
  /// Puts the documents in the order that a draw from the posterior gives, on top of `centre`.
  void draw_order(ExecutionContext& context, const ClickState& state, std::uint32_t round,
                  std::span<const double> centre);

  FairSettings fair_;
  double level_;  // at which an order is certain
  double explore_floor_;
  PhiloxKey tie_key_;
  PhiloxKey floor_key_;
  std::vector<PhiloxKey> draw_keys_;
  std::int64_t cutoff_;
  CertainList list_;

  std::optional<LookedAt> looked_at_;
  std::vector<float> scaled_;
  std::vector<float> now_scaled_;
  std::vector<float> means_;
  std::vector<std::int32_t> places_;  // of the documents in the memory
  std::vector<std::int32_t> known_rows_;
  std::vector<ClickView> views_;
  std::vector<double> scores_;
  std::vector<float> narrow_scores_;
  std::vector<std::int32_t> by_score_;
  std::vector<ScoreDraw> draws_;  // of the beliefs
  ScoreDraw draw_;                // their average
  std::vector<std::int32_t> drawn_;
  std::vector<double> propensity_;
  std::vector<double> probabilities_;
  std::vector<StatedOrder> stated_;
};

}  // namespace olrank
