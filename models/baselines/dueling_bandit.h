#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "models/skeleton/ranker_settings.h"

// One list from several rankers, and what its clicks say about them. Ranker 0 is the current one, the
// others are candidates. Everything here is a pure function of its arguments.
namespace olrank {

/// Orders of one query's documents, one row per ranker; a non-owning view.
struct Rankings {
  std::span<const std::int32_t> values;  // [rankers × docs], each row a permutation, best first
  std::size_t rankers = 0;
  std::size_t docs = 0;

  std::span<const std::int32_t> of(std::size_t ranker) const { return values.subspan(ranker * docs, docs); }
};

/// Team-draft multileaving (Schuth et al., "Multileaved comparisons for fast online evaluation", CIKM 2014;
/// with two rankers the interleaving of Radlinski, Kurup and Joachims, CIKM 2008): in cycles,
/// each ranker, in a random order, adds its best document that is not in the list yet. teams[rank] is the
/// ranker that added list[rank]. The coins of cycle c lie at (round, 0, c).
void team_draft(const Rankings& rankings, PhiloxKey key, std::uint32_t round, Scratch& scratch,
                std::span<std::int32_t> list, std::span<std::int32_t> teams);

/// preferences[r] is 1, 0 or −1: whether ranker r's team got more, as many or fewer clicks than ranker 0's.
/// `teams` and `clicks` are those of the shown ranks.
void team_draft_preferences(std::span<const std::int32_t> teams, std::span<const std::uint8_t> clicks,
                            Scratch& scratch, std::span<double> preferences);

/// Weights 1/rank^τ, ranks counted from 1, of the softmax over ranks (Hofmann, Whiteson and de Rijke, "A
/// probabilistic method for inferring preferences from clicks", CIKM 2011).
void rank_weights(double temperature, std::span<double> weights);

/// Probabilistic multileaving (Schuth et al., "Probabilistic multileave for online retrieval evaluation",
/// SIGIR 2015; CIKM 2011 with two rankers): for each rank a ranker is drawn uniformly, and the document
/// from that ranker's softmax over ranks of the remaining documents. The coins of a rank lie at
/// (round, 0, rank). O(V²).
void probabilistic_list(const Rankings& rankings, std::span<const double> weights, PhiloxKey key,
                        std::uint32_t round, Scratch& scratch, std::span<std::int32_t> list);

/// P(ranker r added `doc` | the list up to it), for a doc that follows `placed` on a probabilistic list.
/// Given the list, the rankers of different ranks are independent (CIKM 2011).
void assignment_posterior(const Rankings& rankings, std::span<const double> weights,
                          std::span<const std::int32_t> placed, std::int32_t doc, Scratch& scratch,
                          std::span<double> posterior);

/// The number of assignments of rankers to clicks that a preference averages over. Its standard error is at
/// most 0.032; where that matters, the rankers are nearly even. Deviation: the literature draws 10,000,
/// which costs ten times as much and changes only equally close calls.
inline constexpr int kSampledAssignments = 1000;

/// preferences[r] is the mean over sampled assignments of 1, 0 or −1: whether ranker r was assigned more,
/// as many or fewer clicks than ranker 0 (CIKM 2011; SIGIR 2015). Works for any list. The
/// coins lie at (round, 1, 0).
void probabilistic_preferences(const Rankings& rankings, std::span<const double> weights,
                               std::span<const std::int32_t> shown, std::span<const std::uint8_t> clicks,
                               PhiloxKey key, std::uint32_t round, Scratch& scratch,
                               std::span<double> preferences);

/// Candidates that share a list with the current ranker.
std::int64_t candidates_of(const RankerSettings& settings);

std::unique_ptr<OnlineRanker> make_dueling_bandit(const RankerRequest& request);
void set_dueling_bandit_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
