#pragma once

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

}  // namespace olrank
