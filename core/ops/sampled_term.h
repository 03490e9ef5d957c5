#pragma once

#include <cstdint>

#include "core/math/label_noise.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// A folded pair of a sample of the history, and where its weight comes from.
struct SampledTerm {
  std::int32_t term = 0;    // of the history; −1 is padding
  double own_weight = 0.0;  // of the round's own pairs
  double own_labels = 0.0;
  double drawn_weight = 0.0;  // of pairs from the history, scaled to stand for all; negative: forgotten
  double drawn_labels = 0.0;
  double others_weight = 0.0;  // of all of the term's pairs that those were drawn or forgotten from
  std::int64_t others = 0;     // how many these are
};

/// The labels of a sampled term's parts.
struct SampledLabels {
  double own = 0.0;
  double drawn = 0.0;
};

/// With the noise of an ensemble member since `noise_round`, the round of its latest training on the whole
/// history. That of the other pairs is what they had in that training; an own pair's goes by how many came
/// before it.
OLRANK_HOST_DEVICE inline SampledLabels noisy_sampled_labels(const SampledTerm& source, PhiloxKey key,
                                                             std::uint32_t noise_round, double deviation) {
  const auto term = static_cast<std::uint32_t>(source.term);
  RngStream own(key, noise_round, term, static_cast<std::uint32_t>(source.others));
  RngStream others(key, noise_round, term);
  return {noisy_labels(source.own_labels, source.own_weight, deviation, own.normal()),
          noisy_labels_of_share(source.drawn_labels, source.drawn_weight, source.others_weight, deviation,
                                others.normal())};
}

}  // namespace olrank
