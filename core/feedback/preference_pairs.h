#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/feedback/pair_settings.h"
#include "core/online/preference_pair.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// The number of shown documents that count as examined: up to and including the first unclicked document
/// after the last click; none without a click.
std::int64_t examined_documents(std::span<const std::uint8_t> clicks);

/// The preference pairs of a list's clicks. PairRule::kMatched and kExpected draw a matching from `coins`;
/// the other rules draw nothing. Pairs are in the order of ranks (kAdjacent, kAll: by winner, then loser)
/// or of the draw.
void preference_pairs(PairRule rule, std::span<const std::int32_t> shown,
                      std::span<const std::uint8_t> clicks, RngStream coins,
                      std::vector<PreferencePair>& pairs);

/// The pairs of a round that enter the loss, all with one weight.
struct LossPairs {
  std::vector<PreferencePair> pairs;
  double weight = 1.0;
};

/// `drawn` is the result of preference_pairs(). PairRule::kExpected is the mean over all matchings: every
/// clicked against every unclicked document, weighted by the probability that a matching contains the pair,
/// 1/max(clicked, unclicked). With the other rules, the loss uses the drawn pairs.
void loss_pairs(PairRule rule, std::span<const std::int32_t> shown, std::span<const std::uint8_t> clicks,
                std::span<const PreferencePair> drawn, LossPairs& loss);

}  // namespace olrank
