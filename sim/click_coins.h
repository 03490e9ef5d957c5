#pragma once

#include <cstdint>

#include "core/random/rng_stream.h"
#include "sim/external_user.h"

namespace olrank {

/// How often an examined document's click is observed, flipped or not.
inline double observed_click_rate(double click, double noise) {
  return click * (1.0 - noise) + (1.0 - click) * noise;
}

/// A document's random draws in one round. Each decision has its own position, so decisions are
/// independent, and a document gets the same draws at every rank and for every ranker.
class ClickCoins {
 public:
  ClickCoins(PhiloxKey key, std::uint32_t round, std::int32_t doc)
      : key_(key), round_(round), doc_(static_cast<std::uint32_t>(doc)) {}

  bool click(double probability) const { return lands(UserDecision::kClick, probability); }
  bool stop(double probability) const { return lands(UserDecision::kStop, probability); }
  bool noise(double probability) const { return lands(UserDecision::kNoise, probability); }
  bool examination(double probability) const { return lands(UserDecision::kExamination, probability); }
  bool perseverance(double probability) const { return lands(UserDecision::kPerseverance, probability); }

  /// The observed click of an examined document: the user's click, flipped with probability `noise`.
  bool observed_click(double probability, double noise_probability) const {
    return click(probability) != noise(noise_probability);
  }

  /// The draw of a decision, in [0, 1).
  double draw(std::uint32_t decision) const { return RngStream(key_, round_, doc_, decision).uniform(); }

 private:
  /// 0 never lands and 1 always does.
  bool lands(UserDecision decision, double probability) const {
    return probability > 0.0 && draw(static_cast<std::uint32_t>(decision)) < probability;
  }

  PhiloxKey key_;
  std::uint32_t round_;
  std::uint32_t doc_;
};

}  // namespace olrank
