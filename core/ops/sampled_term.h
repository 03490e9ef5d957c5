#pragma once

#include <cstdint>

#include "core/math/normal.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// A folded pair of a sample of the history, and where its weight comes from.
struct SampledTerm {
  std::int32_t term = 0;    // of the history; −1 is padding
  double own_weight = 0.0;  // of the round's own pairs
  double own_labels = 0.0;
  double drawn_weight = 0.0;  // of pairs from the history, scaled to stand for all; negative: forgotten
  double drawn_labels = 0.0;
  double others_weight = 0.0;  // of all of the term's pairs but for its own and the forgotten ones
};

/// The labels of a sampled term's parts.
struct SampledLabels {
  double own = 0.0;
  double drawn = 0.0;
};

/// With the noise of an ensemble member since `noise_round`, the round of its latest training on the whole
/// history. As pairs come and are forgotten, a term of weight W has the noise that this training would give
/// it now, ν √W times one draw, so that its variance is ν² W at any time: pairs that come or go take the
/// difference with them, and drawn ones have their share.
OLRANK_HOST_DEVICE inline SampledLabels noisy_sampled_labels(const SampledTerm& source, PhiloxKey key,
                                                             std::uint32_t noise_round, double deviation) {
  const auto term = static_cast<std::uint32_t>(source.term);
  const double normal = RngStream(key, noise_round, term).normal();
  const double others = source.others_weight;
  const double own_noise = noise_change(others, others + source.own_weight, deviation, normal);
  const double drawn =
      source.drawn_weight < 0.0
          ? exact_add(source.drawn_labels,
                      noise_change(others - source.drawn_weight, others, deviation, normal))
          : noisy_labels_of_share(source.drawn_labels, source.drawn_weight, others, deviation, normal);
  return {exact_add(source.own_labels, own_noise), drawn};
}

}  // namespace olrank
