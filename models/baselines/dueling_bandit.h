#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/baselines/interleaving.h"
#include "models/skeleton/ranker_request.h"
#include "models/skeleton/score_model_ranker.h"

namespace olrank {

/// Dueling bandit gradient descent, by the kind in the settings:
/// - dbgd: Yue and Joachims, "Interactively optimizing information retrieval systems as a dueling bandits
///   problem", ICML 2009, Algorithm 1: one candidate, θ + δu with u uniform on the unit sphere;
/// - mgd: Schuth et al., "Multileave gradient descent for fast online learning to rank", WSDM 2016: many
///   candidates at once, and the mean of those that win.
/// The current ranker and the candidates share a list; θ ← θ + η_t mean(u) over the candidates that its
/// clicks prefer to the current ranker. mgd with one candidate is dbgd, so both are one class.
class DuelingBanditRanker : public ScoreModelRanker {
 public:
  DuelingBanditRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                      std::vector<float> first_theta = {});

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  /// With team-draft interleaving, throws InvalidArgument for a list that this ranker did not draft with
  /// these parameters: its teams are unknown.
  LearnReport learn(RoundContext& context, const Feedback& feedback) override;

 private:
  Rankings rankings(const QueryDocs& query) const;
  void rank_candidates(RoundContext& context, const QueryDocs& query, std::uint32_t round);
  void draw_direction(std::uint32_t round, std::size_t candidate, std::span<double> direction) const;
  void compare(RoundContext& context, const Feedback& feedback, std::span<double> preferences);

  std::size_t candidates_;
  double radius_;  // δ
  Interleaving interleaving_;
  PhiloxKey direction_key_;
  PhiloxKey interleaving_key_;

  // Of the query and round that scores_of() knows; not state.
  std::vector<std::int32_t> rankings_;  // [1 + candidates × V]
  std::vector<std::int32_t> teams_;     // team-draft
  std::vector<double> rank_weights_;    // 1/rank^τ of as many ranks as any query had
};

/// Candidates that share a list with the current ranker.
std::int64_t candidates_of(const RankerSettings& settings);

std::unique_ptr<OnlineRanker> make_dueling_bandit(const RankerRequest& request);
void set_dueling_bandit_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
