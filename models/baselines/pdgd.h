#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

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
