#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/feedback/pair_settings.h"
#include "core/online/preference_pair.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// How many of the shown documents a user is taken to have looked at: up to and including the first one
/// without a click after the last click; none without a click.
std::int64_t examined_documents(std::span<const std::uint8_t> clicks);

/// The preferences that clicks express. PairRule::kMatched and kExpected draw a matching from `coins`; the
/// others draw nothing. Pairs come in the order of ranks (kAdjacent, kAll: by winner, then loser) or of the
/// draw.
void preference_pairs(PairRule rule, std::span<const std::int32_t> shown,
                      std::span<const std::uint8_t> clicks, RngStream coins,
                      std::vector<PreferencePair>& pairs);

/// What the loss takes of a round: pairs, all of one weight.
struct LossPairs {
  std::vector<PreferencePair> pairs;
  double weight = 1.0;
};

/// `drawn` is what preference_pairs() found. PairRule::kExpected stands for the mean over all matchings
/// that could have been drawn: every clicked against every unclicked document, each with the probability
/// that a matching has it, 1/max(clicked, unclicked). Else the loss takes the pairs as they were drawn.
void loss_pairs(PairRule rule, std::span<const std::int32_t> shown, std::span<const std::uint8_t> clicks,
                std::span<const PreferencePair> drawn, LossPairs& loss);

}  // namespace olrank
