#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/online/click_model.h"
#include "core/online/online_ranker.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "models/baselines/external_ranker.h"
#include "models/skeleton/belief.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// A scoring function with its first parameters: those of the model to start from, else drawn.
struct FirstModel {
  std::unique_ptr<ScoreModel> model;
  std::vector<float> theta;  // empty: zeros
};

FirstModel first_model(const RankerRequest& request);

/// A ranker that follows a gradient or tries neighbours of θ. `more` are further arguments of its
/// constructor.
template <class Ranker, class... More>
std::unique_ptr<OnlineRanker> make_on_first_model(const RankerRequest& request, const More&... more) {
  FirstModel first = first_model(request);
  return std::make_unique<Ranker>(std::move(first.model), request.settings, request.keys,
                                  std::move(first.theta), more...);
}

std::unique_ptr<OnlineRanker> make_ranknet(const RankerRequest& request);
void set_ranknet_defaults(RankerSettings& settings, const DefaultsContext& context);

/// A list that takes, at each rank, with probability ε a uniformly random remaining document and otherwise
/// the best remaining one. `best_first` is the order by score; the coins lie at (round, 0, rank).
/// `propensity` receives that of each rank, as in RankedList. O(V).
void epsilon_greedy_list(std::span<const std::int32_t> best_first, double epsilon, PhiloxKey key,
                         std::uint32_t round, Scratch& scratch, std::span<std::int32_t> list,
                         std::span<double> propensity);

/// RankNet on all labels: Burges et al., "Learning to rank using gradient descent", ICML 2005, by the
/// trainer of `olrank train`: `epochs` passes of Adam over the queries, each in a new random order, on the
/// mean over `batch` queries of the mean cross-entropy of their pairs. The step is `learning_rate`, times
/// `learning_rate_decay` after each pass; there is no regulariser. One thread; the result depends on the
/// arguments alone. Throws NumericError for losses that are not finite.
std::vector<float> train_offline(const ScoreModel& model, const LabelledQueries& labels,
                                 const RankerSettings& settings, PhiloxKey key, std::vector<float> theta);

/// The linear model of a fold that the cosine of other models refers to: train_offline() with the defaults
/// of `ranknet-offline` and coins of the fold only, so that it is the same for every ranker, user and seed.
std::vector<float> offline_linear_theta(const LabelledQueries& labels, std::int64_t features,
                                        std::int64_t fold);

std::unique_ptr<OnlineRanker> make_ranknet_offline(const RankerRequest& request);
void set_ranknet_offline_defaults(RankerSettings& settings, const DefaultsContext& context);

std::unique_ptr<OnlineRanker> make_fairco(const RankerRequest& request);
void set_fairco_defaults(RankerSettings& settings, const DefaultsContext& context);

/// The clicks by which a document must lead another, over `count` clicks on either.
double toprank_threshold(std::int64_t count, double delta);

std::unique_ptr<OnlineRanker> make_toprank(const RankerRequest& request);
void set_toprank_defaults(RankerSettings& settings, const DefaultsContext& context);

/// The grades of a query. Throws InvalidArgument, naming the ranker, where the labels have none for it.
QueryGrades grades_of(const LabelledQueries& labels, const QueryDocs& query, const std::string& ranker);

std::unique_ptr<OnlineRanker> make_lambdarank_labels(const RankerRequest& request);
void set_lambdarank_labels_defaults(RankerSettings& settings, const DefaultsContext& context);

/// The architecture in the model file of a registered ranker, which holds nothing else of it and is not
/// read.
constexpr std::string_view kExternalArchitecture = "external";

/// A ranker that a program has registered.
struct RegisteredRanker {
  std::string description;
  ExternalRankerFactory factory;
  std::string parameters = {};  // of `own`
};

/// The ranker of a setting `own`; where that is empty, of this name. Throws InvalidArgument if none has it.
RegisteredRanker registered_ranker(const std::string& name, const std::string& own);

std::unique_ptr<OnlineRanker> make_external(const RankerRequest& request);

std::unique_ptr<OnlineRanker> make_pdgd(const RankerRequest& request);
void set_pdgd_defaults(RankerSettings& settings, const DefaultsContext& context);

/// Keys whose descending order is a Plackett-Luce list over `scores`: s_i + g_i with g_i standard Gumbel,
/// drawn at (round, i) (the Gumbel trick; Yellott, Journal of Mathematical Psychology 1977).
void plackett_luce_keys(std::span<const double> scores, PhiloxKey key, std::uint32_t round,
                        std::span<double> keys);

/// The propensity of each rank of such a list: e^s of its document over the sum of those not placed above.
void plackett_luce_propensity(std::span<const double> scores, std::span<const std::int32_t> list,
                              std::vector<double>& propensity);

/// Draws such a list of all documents, with its propensity.
void draw_plackett_luce(std::span<const double> scores, PhiloxKey key, std::uint32_t round,
                        Scratch& scratch, std::vector<std::int32_t>& list, std::vector<double>& propensity);

/// The weights with which PDGD follows ∇f (Oosterhuis and de Rijke, "Differentiable unbiased online
/// learning to rank", CIKM 2018): for every pair of a clicked i and an examined unclicked j, +ρ σ(z)σ(−z)
/// to weights[i] and −ρ σ(z)σ(−z) to weights[j], with z = s_i − s_j and ρ = P(R*) / (P(R) + P(R*)). R is
/// the list, R* the list with i and j swapped, P the Plackett-Luce probability with denominators over all
/// documents not yet placed. All of `weights` [V] is written; `shown` has no document twice.
///
/// Only the denominators between the two ranks a < b remain of P(R*)/P(R):
///   Π_{r=a+1..b} D_r / (D_r + e^{s_a} − e^{s_b}) = Π_{r=a+1..b} (E_r + e^{s_b}) / (E_r + e^{s_a}),
/// D_r the sum of e^s over what is not yet placed at rank r, E_r the same without the document of rank b.
/// Exact to rounding for scores of any size: E_r is a sum, never a difference, and each
/// exponential is relative to the largest one in its sum. O(V + n³) for n examined documents.
void plackett_luce_pair_weights(std::span<const double> scores, std::span<const std::int32_t> shown,
                                std::span<const std::uint8_t> clicks, Scratch& scratch,
                                std::span<double> weights);

// One list from several rankers, and what its clicks say about them. Ranker 0 is the current one, the
// others are candidates. The functions of rankings, lists and preferences are pure functions of their
// arguments.

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
